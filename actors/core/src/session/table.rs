//! The open sessions of one connection: from a session id to its coordinator.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use greenroom_protocol::schema::SessionId;
use greenroom_protocol::{Error, RemoteStyle};
use parking_lot::Mutex;
use ractor::ActorRef;
use tokio::runtime::Handle;
use tokio::time::{Duration, Instant};

use super::coordinator::{Coordinator, SessionItem};
use super::queue::SharedQueue;
use super::supervisor::SessionsMessage;
use crate::connection::{ConnectionMessage, Shared};
use crate::handlers::Delivery;
use crate::options::ConnectionOptions;
use crate::runtime::{Mailbox, Node, RestartBudget, RestartPolicy, Seat, Verdict};

/// Three deaths are forgiven; the fourth in a minute is the session's end.
const RESTART: RestartPolicy = RestartPolicy { deaths: 3, window: Duration::from_secs(60) };

/// Ids of ended sessions that are remembered, so that what comes late is dropped and not kept.
const REMEMBERED: usize = 1024;

/// One open session.
pub(crate) struct SessionEntry {
    id: Arc<str>,
    /// When it was opened, counted with the handlers that were added to the connection.
    number: u64,
    mailbox: Mailbox<SessionItem>,
    queue: SharedQueue,
    pub(super) seat: Seat<Coordinator>,
    node: Arc<Node>,
    budget: Mutex<RestartBudget>,
    since: Instant,
}

impl SessionEntry {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn queue(&self) -> &SharedQueue {
        &self.queue
    }

    pub(super) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Tells the coordinator; gives the item back when the session has ended.
    pub(crate) fn tell(&self, item: SessionItem) -> Result<(), SessionItem> {
        self.mailbox.send(item)
    }

    /// Hands a message of the agent over. One that comes too late is dropped, which answers a
    /// request.
    pub(crate) fn deliver(&self, delivery: Delivery) {
        if let Err(SessionItem::Message(delivery)) = self.tell(SessionItem::Message(delivery)) {
            tracing::debug!(
                session = self.number,
                method = delivery.method(),
                "a message came after the session's end"
            );
        }
    }

    pub(super) fn death(&self) -> Verdict {
        self.budget.lock().death(self.since.elapsed())
    }

    /// Ends the session in order: the reader gets what came before.
    fn end(&self, error: Error) {
        self.mailbox.send_last(SessionItem::End(error));
    }

    /// Ends the session although its coordinator cannot work any more.
    pub(super) fn fail(&self, error: Error) {
        self.queue.end(error);
        drop(self.mailbox.close());
        self.node.kill();
    }
}

/// The sessions of one connection.
pub(crate) struct SessionTable {
    open: Mutex<Open>,
    /// How many there are: most connections have none and should not pay for looking.
    count: AtomicUsize,
    cap: usize,
    deadline: Duration,
}

#[derive(Default)]
struct Open {
    sessions: HashMap<Arc<str>, Arc<SessionEntry>>,
    /// Opened, and not seen by the supervisor yet.
    fresh: Vec<Arc<SessionEntry>>,
    supervisor: Option<ActorRef<SessionsMessage>>,
    node: Option<Arc<Node>>,
    ended: HashSet<Arc<str>>,
    ended_order: VecDeque<Arc<str>>,
    closed: Option<Error>,
}

impl SessionTable {
    pub(crate) fn new(options: &ConnectionOptions) -> Self {
        Self {
            open: Mutex::new(Open::default()),
            count: AtomicUsize::new(0),
            cap: options.session_cap,
            deadline: options.cancel_deadline,
        }
    }

    /// Opens a session. An older one with the same id ends: its reader is told.
    ///
    /// # Errors
    /// When the connection is over.
    pub(super) fn open(&self, connection: &Arc<Shared>, id: SessionId) -> Result<Arc<SessionEntry>, Error> {
        let number = connection.dynamic.next_number();
        let (entry, replaced, supervisor) = {
            let mut open = self.open.lock();
            if let Some(error) = &open.closed {
                return Err(error.clone());
            }
            let node = open.node.get_or_insert_with(|| connection.node.child("sessions", "sessions")).clone();
            let node = node.child(&format!("session-{number}"), "session");
            let entry = self.entry(connection, &id, number, node);
            let replaced = open.sessions.insert(id.0.clone(), entry.clone());
            if open.ended.remove(&*id.0) {
                open.ended_order.retain(|ended| *ended != id.0);
            }
            open.fresh.push(entry.clone());
            self.count.store(open.sessions.len(), Ordering::Release);
            (entry, replaced, open.supervisor.clone())
        };
        if let Some(replaced) = replaced {
            replaced.end(Error::internal_error().data("this session was opened again on the same connection"));
            self.disown(&replaced);
        }
        let told = supervisor.is_some_and(|supervisor| supervisor.cast(SessionsMessage::Opened).is_ok());
        if !told && let Some(supervisor) = connection.supervisor.get() {
            let _ = supervisor.cast(ConnectionMessage::SessionOpened);
        }
        Ok(entry)
    }

    fn entry(&self, connection: &Arc<Shared>, id: &SessionId, number: u64, node: Arc<Node>) -> Arc<SessionEntry> {
        let (mailbox, queue) = (Mailbox::new(), SharedQueue::default());
        let weak: Weak<Shared> = Arc::downgrade(connection);
        let stage = Coordinator::new(weak, number, mailbox.clone(), queue.clone(), self.cap, self.deadline);
        let seat = Seat::new(stage, mailbox.clone(), node.clone(), connection.live.clone());
        let (budget, since) = (Mutex::new(RestartBudget::new(RESTART)), Instant::now());
        Arc::new(SessionEntry { id: id.0.clone(), number, mailbox, queue, seat, node, budget, since })
    }

    /// The session that a message of the agent belongs to.
    pub(crate) fn of(&self, delivery: &Delivery) -> Option<Arc<SessionEntry>> {
        if self.count.load(Ordering::Acquire) == 0 || delivery.peer() == RemoteStyle::Predecessor {
            return None;
        }
        self.find(&delivery.session_id()?)
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<SessionEntry>> {
        self.open.lock().sessions.get(id).cloned()
    }

    /// Whether messages of this session come too late for anybody.
    pub(crate) fn has_ended(&self, id: &str) -> bool {
        self.open.lock().ended.contains(id)
    }

    /// Nobody reads the session any more.
    pub(super) fn close(&self, entry: &Arc<SessionEntry>) {
        {
            let mut open = self.open.lock();
            if open.sessions.get(&*entry.id).is_some_and(|known| Arc::ptr_eq(known, entry)) {
                open.sessions.remove(&*entry.id);
                open.remember(&entry.id);
            }
            self.count.store(open.sessions.len(), Ordering::Release);
        }
        entry.end(Error::internal_error().data("the session was dropped"));
        self.disown(entry);
    }

    /// Its coordinator is no longer part of the tree.
    fn disown(&self, entry: &Arc<SessionEntry>) {
        if let Some(node) = &self.open.lock().node {
            node.disown(&entry.node);
        }
    }

    /// The connection hears nothing more: every reader is told, after what came before.
    pub(crate) fn end_all(&self, error: &Error) {
        let sessions = {
            let mut open = self.open.lock();
            open.closed.get_or_insert_with(|| error.clone());
            open.sessions.values().cloned().collect::<Vec<_>>()
        };
        for session in sessions {
            session.end(error.clone());
        }
    }

    /// The connection is gone, and the coordinators with it. What they had not handed to the readers
    /// yet is handed over, then the readers are told.
    pub(crate) fn kill_all(&self, error: &Error, runtime: &Handle) {
        let sessions = {
            let mut open = self.open.lock();
            open.closed.get_or_insert_with(|| error.clone());
            open.supervisor = None;
            open.fresh.clear();
            self.count.store(0, Ordering::Release);
            std::mem::take(&mut open.sessions)
        };
        for session in sessions.into_values() {
            session.end(error.clone());
            session.node.kill();
            let last = Last { session, error: error.clone() };
            runtime.spawn(async move { last.session.seat.wind_up().await });
        }
    }

    // --- for the supervisor ---------------------------------------------------------------------

    /// A supervisor takes over: every session, to be started.
    pub(super) fn supervised_by(&self, supervisor: ActorRef<SessionsMessage>) -> Vec<Arc<SessionEntry>> {
        let mut open = self.open.lock();
        open.supervisor = Some(supervisor);
        // What was closed and not started yet still has to work off its mailbox.
        let mut all = std::mem::take(&mut open.fresh);
        all.extend(open.sessions.values().filter(|known| known.node.outcome().is_none()).cloned());
        all.sort_by_key(|entry| entry.number);
        all.dedup_by_key(|entry| entry.number);
        all
    }

    /// The sessions that were opened since.
    pub(super) fn fresh(&self) -> Vec<Arc<SessionEntry>> {
        std::mem::take(&mut self.open.lock().fresh)
    }

    /// Where the supervisor stands in the tree, once there is a session.
    pub(crate) fn node(&self) -> Option<Arc<Node>> {
        self.open.lock().node.clone()
    }
}

/// Tells a reader the end, whatever becomes of the task that hands over what is left.
struct Last {
    session: Arc<SessionEntry>,
    error: Error,
}

impl Drop for Last {
    fn drop(&mut self) {
        self.session.queue.end(self.error.clone());
    }
}

impl Open {
    fn remember(&mut self, id: &Arc<str>) {
        if self.ended.insert(id.clone()) {
            self.ended_order.push_back(id.clone());
        }
        if self.ended_order.len() > REMEMBERED
            && let Some(oldest) = self.ended_order.pop_front()
        {
            self.ended.remove(&oldest);
        }
    }
}
