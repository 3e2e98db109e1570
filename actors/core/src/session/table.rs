//! The open sessions of one connection: from a session id to its coordinator.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom_protocol::schema::SessionId;
use greenroom_protocol::{Error, RemoteStyle};
use parking_lot::Mutex;
use ractor::ActorRef;
use tokio::runtime::Handle;
use tokio::time::Duration;

use super::entry::{ById, Limits, SessionEntry};
use super::member::{Member, retire};
use super::supervisor::SessionsMessage;
use crate::connection::{ConnectionMessage, Shared};
use crate::handlers::Delivery;
use crate::options::ConnectionOptions;
use crate::runtime::{Node, RestartPolicy};

/// Ids of ended sessions that are remembered, so that what comes late is dropped and not kept.
const REMEMBERED: usize = 1024;

/// The sessions of one connection.
pub(crate) struct SessionTable {
    open: Mutex<Open>,
    /// How many there are: most connections have none and should not pay for looking.
    count: AtomicUsize,
    cap: usize,
    deadline: Duration,
    restart: RestartPolicy,
    #[cfg(feature = "unstable_protocol_v2")]
    log_cap: usize,
}

#[derive(Default)]
struct Open {
    sessions: HashSet<ById>,
    /// Dropped or opened again, by their numbers, until their coordinators have worked off what they were
    /// told: whoever reads one waits for its end, and whoever asked in one for an answer.
    leaving: HashMap<u64, Arc<dyn Member>>,
    /// Opened, and not seen by the supervisor yet. They are members already, so that nobody is lost who
    /// is taken out of here.
    fresh: Vec<Arc<dyn Member>>,
    /// Other actors below the same supervisor.
    #[cfg(feature = "unstable_protocol_v2")]
    coordinations: Vec<Arc<dyn Member>>,
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
            restart: options.session_restart,
            #[cfg(feature = "unstable_protocol_v2")]
            log_cap: options.session_log_cap,
        }
    }

    /// How often an actor of the sessions may die.
    #[cfg(feature = "unstable_protocol_v2")]
    pub(super) fn restart(&self) -> RestartPolicy {
        self.restart
    }

    /// Bytes of the log of a shared session.
    #[cfg(feature = "unstable_protocol_v2")]
    pub(super) fn log_cap(&self) -> usize {
        self.log_cap
    }

    /// Opens a session. An older one with the same id ends: its reader is told.
    ///
    /// # Errors
    /// When the connection is over.
    pub(super) fn open(&self, connection: &Arc<Shared>, id: SessionId) -> Result<Arc<SessionEntry>, Error> {
        let number = connection.dynamic.next_number();
        let (entry, replaced) = {
            let mut open = self.open.lock();
            let node = open.place(connection)?.child(&format!("session-{number}"), "session");
            let entry = self.entry(connection, &id, number, node);
            let replaced = open.sessions.replace(ById(entry.clone())).map(|ById(replaced)| replaced);
            if let Some(replaced) = &replaced {
                open.leaves(replaced);
            }
            if open.ended.remove(&*id.0) {
                open.ended_order.retain(|ended| *ended != id.0);
            }
            open.fresh.push(entry.clone());
            self.count.store(open.sessions.len(), Ordering::Release);
            // Under the lock: whoever learns of the new generation and then finds the session knows
            // that it belongs to it.
            entry.belongs_to(connection.dynamic.announce());
            (entry, replaced)
        };
        if let Some(replaced) = replaced {
            replaced.end(Error::internal_error().data("this session was opened again on the same connection"));
            self.disown(replaced.node());
        }
        self.start_fresh(connection);
        Ok(entry)
    }

    /// Starts a coordination, which `make` makes for its number and its place in the tree.
    ///
    /// # Errors
    /// When the connection is over.
    #[cfg(feature = "unstable_protocol_v2")]
    pub(super) fn coordinate(
        &self,
        connection: &Arc<Shared>,
        make: impl FnOnce(u64, Arc<Node>) -> Arc<dyn Member>,
    ) -> Result<(), Error> {
        let number = connection.dynamic.next_number();
        {
            let mut open = self.open.lock();
            let node = open.place(connection)?.child(&format!("coordination-{number}"), "coordination");
            let entry = make(number, node);
            open.coordinations.push(entry.clone());
            open.fresh.push(entry);
        }
        self.start_fresh(connection);
        Ok(())
    }

    /// A coordination is over.
    #[cfg(feature = "unstable_protocol_v2")]
    pub(super) fn leave(&self, number: u64) {
        let gone = {
            let mut open = self.open.lock();
            let position = open.coordinations.iter().position(|entry| entry.number() == number);
            position.map(|position| open.coordinations.swap_remove(position))
        };
        // Dropped outside of the lock: dropping tells whoever waits.
        if let Some(gone) = gone {
            self.disown(gone.node());
        }
    }

    /// Has the supervisor start what was opened; the connection starts that with the first.
    fn start_fresh(&self, connection: &Arc<Shared>) {
        let supervisor = self.open.lock().supervisor.clone();
        let told = supervisor.is_some_and(|supervisor| supervisor.cast(SessionsMessage::Opened).is_ok());
        if !told && let Some(supervisor) = connection.supervisor.get() {
            let _ = supervisor.cast(ConnectionMessage::SessionOpened);
        }
    }

    fn entry(&self, connection: &Arc<Shared>, id: &SessionId, number: u64, node: Arc<Node>) -> Arc<SessionEntry> {
        let limits = Limits { cap: self.cap, deadline: self.deadline, restart: self.restart };
        SessionEntry::new(connection, id.0.clone(), number, node, limits)
    }

    /// Whether no session is open now.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// The session that a message of the agent belongs to.
    pub(crate) fn of(&self, delivery: &Delivery) -> Option<Arc<SessionEntry>> {
        if self.is_empty() || delivery.peer() == RemoteStyle::Predecessor {
            return None;
        }
        self.find(&delivery.session_id()?)
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<SessionEntry>> {
        self.open.lock().sessions.get(id.as_bytes()).map(|ById(entry)| entry.clone())
    }

    /// Whether messages of this session come too late for anybody.
    pub(crate) fn has_ended(&self, id: &str) -> bool {
        self.open.lock().ended.contains(id)
    }

    /// Nobody reads the session any more.
    pub(super) fn close(&self, entry: &Arc<SessionEntry>) {
        {
            let mut open = self.open.lock();
            if open.sessions.get(entry.key()).is_some_and(|ById(known)| Arc::ptr_eq(known, entry)) {
                open.sessions.remove(entry.key());
                open.remember(entry.id());
                open.leaves(entry);
            }
            self.count.store(open.sessions.len(), Ordering::Release);
        }
        let error = Error::internal_error().data("the session was dropped");
        // At once: others may know the session for as long as the agent waits for an answer in it.
        entry.queue().close(error.clone());
        entry.end(error);
        self.disown(entry.node());
    }

    /// This actor is no longer part of the tree.
    fn disown(&self, actor: &Arc<Node>) {
        if let Some(node) = &self.open.lock().node {
            node.disown(actor);
        }
    }

    /// The connection hears nothing more: every reader is told, after what came before.
    pub(crate) fn end_all(&self, error: &Error) {
        let members = {
            let mut open = self.open.lock();
            open.closed.get_or_insert_with(|| error.clone());
            open.members().collect::<Vec<_>>()
        };
        for member in members {
            member.end(error.clone());
        }
    }

    /// The connection is gone, and the coordinators with it. What they had not handed to the readers
    /// yet is handed over, then the readers are told.
    pub(crate) fn kill_all(&self, error: &Error, runtime: &Handle) {
        let (members, _fresh) = {
            let mut open = self.open.lock();
            open.closed.get_or_insert_with(|| error.clone());
            open.supervisor = None;
            self.count.store(0, Ordering::Release);
            let members: Vec<_> = open.members().collect();
            open.sessions.clear();
            open.leaving.clear();
            #[cfg(feature = "unstable_protocol_v2")]
            open.coordinations.clear();
            (members, std::mem::take(&mut open.fresh))
        };
        for member in members {
            retire(member, error, runtime);
        }
    }

    // --- for the supervisor ---------------------------------------------------------------------

    /// A supervisor takes over: every session, to be started, those included that are leaving.
    pub(super) fn supervised_by(&self, supervisor: ActorRef<SessionsMessage>) -> Vec<Arc<dyn Member>> {
        let (mut all, _gone, _fresh) = {
            let mut open = self.open.lock();
            open.supervisor = Some(supervisor);
            let ended = |member: &Arc<dyn Member>| member.node().outcome().is_some();
            // Their ends were told to a supervisor that died.
            let gone: Vec<_> = open.leaving.extract_if(|_, member| ended(member)).collect();
            let all: Vec<_> = open.members().filter(|member| !ended(member)).collect();
            (all, gone, std::mem::take(&mut open.fresh))
        };
        all.sort_by_key(|member| member.number());
        all
    }

    /// The sessions that were opened since.
    pub(super) fn fresh(&self) -> Vec<Arc<dyn Member>> {
        std::mem::take(&mut self.open.lock().fresh)
    }

    /// The actor with this number has ended: nothing of it is left to do.
    pub(super) fn left(&self, number: u64) {
        let gone = self.open.lock().leaving.remove(&number);
        // Outside of the lock: the last one that knows a session drops what is left in it.
        drop(gone);
    }

    /// Where the supervisor stands in the tree, once there is a session.
    pub(crate) fn node(&self) -> Option<Arc<Node>> {
        self.open.lock().node.clone()
    }
}

impl Open {
    /// Where new actors stand in the tree.
    ///
    /// # Errors
    /// When the connection is over.
    fn place(&mut self, connection: &Arc<Shared>) -> Result<Arc<Node>, Error> {
        if let Some(error) = &self.closed {
            return Err(error.clone());
        }
        Ok(self.node.get_or_insert_with(|| connection.node.child("sessions", "sessions")).clone())
    }

    fn members(&self) -> impl Iterator<Item = Arc<dyn Member>> + '_ {
        let sessions = self.sessions.iter().map(|ById(session)| session.clone() as Arc<dyn Member>);
        let sessions = sessions.chain(self.leaving.values().cloned());
        #[cfg(feature = "unstable_protocol_v2")]
        let sessions = sessions.chain(self.coordinations.iter().cloned());
        sessions
    }

    /// A session is nobody's any more. One whose actor has ended has nothing left to do.
    fn leaves(&mut self, entry: &Arc<SessionEntry>) {
        if entry.node().outcome().is_none() {
            self.leaving.insert(entry.opened(), entry.clone());
        }
    }

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

#[cfg(test)]
mod tests;
