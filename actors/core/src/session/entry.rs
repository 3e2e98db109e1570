//! One open session, as its connection knows it.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use greenroom_protocol::{BoxFuture, Error};
use parking_lot::Mutex;
use ractor::{ActorCell, SpawnErr};
use tokio::time::{Duration, Instant};

use super::coordinator::{Coordinator, SessionItem};
use super::member::Member;
use super::queue::ReaderQueue;
use crate::connection::Shared;
use crate::handlers::Delivery;
use crate::runtime::{Mailbox, Node, Outcome, RestartBudget, RestartPolicy, Seat, Verdict};

/// One open session.
///
/// What every message needs stands together at the front, in this order: with thousands of sessions
/// nothing of one is in the caches when a message of it comes, and each other place costs a look into
/// the memory (measured: 0.2 to 0.3 µs).
#[repr(C)]
pub(crate) struct SessionEntry {
    key: Key,
    /// The generation of handlers that it began.
    since_generation: AtomicU64,
    /// What the coordinator was told and has not done.
    undone: AtomicUsize,
    cap: usize,
    queue: ReaderQueue,
    /// When it was opened, counted with the handlers that were added to the connection.
    number: u64,
    mailbox: Mailbox<SessionItem>,
    id: Arc<str>,
    seat: Seat<Coordinator>,
    node: Arc<Node>,
    budget: Mutex<RestartBudget>,
    since: Instant,
}

/// What a session may use.
pub(super) struct Limits {
    /// Bytes that wait for its reader.
    pub(super) cap: usize,
    /// Time of a cancelled turn.
    pub(super) deadline: Duration,
    /// How often its coordinator may die.
    pub(super) restart: RestartPolicy,
}

impl SessionEntry {
    pub(super) fn new(
        connection: &Arc<Shared>,
        id: Arc<str>,
        number: u64,
        node: Arc<Node>,
        Limits { cap, deadline, restart }: Limits,
    ) -> Arc<Self> {
        let mailbox = Mailbox::new();
        Arc::new_cyclic(|entry| {
            let weak = Arc::downgrade(connection);
            let stage = Coordinator::new(weak, number, entry.clone(), cap, deadline);
            let seat = Seat::new(stage, mailbox.clone(), node.clone(), connection.live.clone());
            let (budget, since) = (Mutex::new(RestartBudget::new(restart)), Instant::now());
            let (key, queue, since_generation) = (Key::of(&id), ReaderQueue::default(), AtomicU64::new(u64::MAX));
            let undone = AtomicUsize::new(0);
            Self { key, since_generation, undone, cap, queue, number, mailbox, id, seat, node, budget, since }
        })
    }

    pub(super) fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The bytes of the id.
    pub(super) fn key(&self) -> &[u8] {
        self.key.bytes()
    }

    /// It was opened together with the handlers of this generation.
    pub(super) fn belongs_to(&self, generation: u64) {
        self.since_generation.store(generation, Ordering::Release);
    }

    /// When it was opened, counted with the handlers that were added to the connection.
    pub(crate) fn opened(&self) -> u64 {
        self.number
    }

    /// Whether it was there when the handlers of this generation were.
    pub(crate) fn is_known_to(&self, generation: u64) -> bool {
        self.since_generation.load(Ordering::Acquire) <= generation
    }

    /// Why its coordinator was given up, if it was.
    pub(super) fn failure(&self) -> Option<Error> {
        match self.node.outcome() {
            Some(Outcome::Failed(error)) => Some(error),
            Some(Outcome::Finished) | None => None,
        }
    }

    pub(super) fn queue(&self) -> &ReaderQueue {
        &self.queue
    }

    /// Tells the coordinator; gives the item back when the session has ended.
    pub(crate) fn tell(&self, item: SessionItem) -> Result<(), SessionItem> {
        self.undone.fetch_add(1, Ordering::AcqRel);
        self.mailbox.send(item)
    }

    /// The coordinator did what it was told. If it does not come to that, all messages take the way
    /// through it: slower, and as good.
    pub(super) fn done(&self) {
        self.undone.fetch_sub(1, Ordering::AcqRel);
    }

    /// Hands a message of the agent over; only the connection's dispatch loop does. One that comes too
    /// late is dropped, which answers a request.
    ///
    /// While the coordinator has nothing to do it is not woken: then there is nothing that the message
    /// would have to be put in order with, and it goes to the reader at once.
    pub(crate) fn deliver(&self, mut delivery: Delivery) {
        // The reader takes its time, and the connection must not wait for it.
        let permit = delivery.take_credit();
        let mut delivery = Box::new(delivery);
        if self.undone.load(Ordering::Acquire) == 0 {
            match self.queue.offer(delivery, self.cap) {
                Ok(()) => return,
                Err(refused) => delivery = refused,
            }
        }
        delivery.put_credit(permit);
        if let Err(SessionItem::Message(delivery)) = self.tell(SessionItem::Message(delivery)) {
            tracing::debug!(
                session = self.number,
                method = delivery.method(),
                "a message came after the session's end"
            );
        }
    }
}

impl Member for SessionEntry {
    fn number(&self) -> u64 {
        self.number
    }

    fn node(&self) -> &Arc<Node> {
        &self.node
    }

    fn spawn(&self, supervisor: ActorCell) -> BoxFuture<'static, Result<ActorCell, SpawnErr>> {
        self.seat.spawn(supervisor)
    }

    fn death(&self) -> Verdict {
        self.budget.lock().death(self.since.elapsed())
    }

    /// The reader gets what came before.
    fn end(&self, error: Error) {
        self.undone.fetch_add(1, Ordering::AcqRel);
        self.mailbox.send_last(SessionItem::End(error));
    }

    fn fail(&self, error: Error) {
        self.queue.end(error);
        drop(self.mailbox.close());
        self.node.kill();
    }

    fn wind_up<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(self.seat.wind_up())
    }
}

/// A session in a set, found by the bytes of its id.
pub(super) struct ById(pub(super) Arc<SessionEntry>);

impl Borrow<[u8]> for ById {
    fn borrow(&self) -> &[u8] {
        self.0.key()
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl Eq for ById {}

impl Hash for ById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key().hash(state);
    }
}

/// Bytes of an id that are kept in place: a UUID and a bit.
const SHORT: usize = 46;

/// An id next to what it leads to.
enum Key {
    Short(u8, [u8; SHORT]),
    Long(Arc<str>),
}

impl Key {
    fn of(id: &Arc<str>) -> Self {
        let mut bytes = [0; SHORT];
        match (bytes.get_mut(..id.len()), u8::try_from(id.len())) {
            (Some(place), Ok(len)) => {
                place.copy_from_slice(id.as_bytes());
                Self::Short(len, bytes)
            }
            _ => Self::Long(id.clone()),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Short(len, bytes) => &bytes[..usize::from(*len)],
            Self::Long(id) => id.as_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_any_length_is_its_own_key() {
        for length in [0, 1, SHORT - 1, SHORT, SHORT + 1, 300] {
            let id: Arc<str> = "s".repeat(length).into();
            let key = Key::of(&id);
            assert_eq!(key.bytes(), id.as_bytes());
            assert_eq!(matches!(key, Key::Short(..)), length <= SHORT, "{length}");
        }
    }
}
