//! The live tree: where every actor stands, how it does, and how to break it on purpose.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;

use greenroom_protocol::Error;
use parking_lot::Mutex;
use ractor::{ActorCell, ActorStatus};
use tokio::time::Duration;

/// How an actor's work came to its end.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Everything is done.
    Finished,
    /// It cannot go on.
    Failed(Error),
}

/// A way to break an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Panic between two items.
    Panic,
    /// Panic in the middle of the next item. One item is broken so only once, because an item that
    /// breaks its actor twice is set aside: a second fault breaks the item behind it.
    PanicInside,
    /// Do nothing for a while. A kill still reaches the actor; a stop waits for it.
    Stall(Duration),
}

/// What a stage's actor is told beside its items. Orders are for one incarnation and die with it.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// End this incarnation in order.
    Stop,
    /// End this incarnation if there is nothing to do. The next item calls for another one.
    Passivate(Waker),
    /// Break.
    #[cfg_attr(not(feature = "chaos"), expect(dead_code, reason = "only tests give this order"))]
    Break(Fault),
}

/// What an actor is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Not started yet, or between two incarnations.
    Down,
    /// Running.
    Up,
    /// It had nothing to do for a while and holds no actor until there is something again.
    Passive,
    /// Ended in order; it does not come back.
    Finished,
    /// Ended by an error; it does not come back.
    Failed,
}

/// A picture of one actor and everything below it. `Display` writes one line for each actor.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Names from the root, joined by `/`.
    pub path: String,
    /// What the actor is, for example `writer`.
    pub kind: &'static str,
    /// What it is doing.
    pub status: Status,
    /// How often it was started again.
    pub restarts: u32,
    /// Items waiting in its mailbox, without those that it took out to work on (at most 64).
    pub mailbox_depth: usize,
    /// How long the actor has been behind: since the first item that came after it last had nothing
    /// to do. Zero when it waits for items.
    pub mailbox_age: Duration,
    /// Open requests that it is responsible for: `pending` counts ours that wait for an answer,
    /// `dispatch` those of the peer; zero for all others.
    pub in_flight: usize,
    /// The actors that it supervises.
    pub children: Vec<Snapshot>,
}

/// What a node knows about its actor's mailbox.
pub(super) trait Queue: Send + Sync {
    /// Items that wait, and for how long there have been any.
    fn backlog(&self) -> (usize, Duration);

    /// Tells the reader something, ahead of its items.
    fn order(&self, order: Order);

    /// How often the reader had nothing to do; `None` while it has something.
    fn pauses(&self) -> Option<u32>;

    /// Loses everything that waits, as a mailbox does that dies with its actor.
    #[cfg(feature = "chaos")]
    fn lose(&self) -> usize;
}

type Count = Box<dyn Fn() -> usize + Send + Sync>;

/// A place in the tree, whichever incarnation fills it. It keeps no actor alive, and stays when its
/// actor has ended.
pub struct Node {
    path: String,
    kind: &'static str,
    starts: AtomicU32,
    children: Mutex<Vec<Arc<Node>>>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    cell: Option<ActorCell>,
    /// Set while there is no actor because there is nothing to do.
    passive: bool,
    /// Boxed, because an error is large and most never have one.
    outcome: Option<Box<Outcome>>,
    mailbox: Option<Box<dyn Queue>>,
    in_flight: Option<Count>,
}

impl Node {
    /// The root of a tree.
    #[must_use]
    pub fn root(name: impl Into<String>, kind: &'static str) -> Arc<Self> {
        Arc::new(Self {
            path: name.into(),
            kind,
            starts: AtomicU32::new(0),
            children: Mutex::new(Vec::new()),
            inner: Mutex::new(Inner::default()),
        })
    }

    /// A new place below this one.
    pub fn child(self: &Arc<Self>, name: &str, kind: &'static str) -> Arc<Self> {
        let child = Self::root(format!("{}/{name}", self.path), kind);
        self.children.lock().push(child.clone());
        child
    }

    /// Hangs an existing tree below this place, for looking at it: supervision does not change.
    pub fn adopt(&self, child: Arc<Self>) {
        self.children.lock().push(child);
    }

    /// Takes a place out of the tree.
    pub fn disown(&self, child: &Arc<Self>) {
        self.children.lock().retain(|known| !Arc::ptr_eq(known, child));
    }

    /// Names from the root, joined by `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What stands here.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The places below this one.
    #[must_use]
    pub fn children(&self) -> Vec<Arc<Self>> {
        self.children.lock().clone()
    }

    /// How often the actor here was started again.
    #[must_use]
    pub fn restarts(&self) -> u32 {
        self.starts.load(Ordering::Relaxed).saturating_sub(1)
    }

    /// How the work here ended, if it did: for good, not by a death that is followed by a restart.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        self.inner.lock().outcome.as_deref().cloned()
    }

    pub(crate) fn set_outcome(&self, outcome: Outcome) {
        self.inner.lock().outcome.get_or_insert_with(|| Box::new(outcome));
    }

    pub(super) fn observe(&self, mailbox: impl Queue + 'static) {
        self.inner.lock().mailbox = Some(Box::new(mailbox));
    }

    /// Says how to count the open requests that this actor is responsible for. `count` is called
    /// under the node's lock: it must be short, and must not look at this node.
    pub fn count_in_flight(&self, count: impl Fn() -> usize + Send + Sync + 'static) {
        self.inner.lock().in_flight = Some(Box::new(count));
    }

    /// A new incarnation stands here.
    pub fn started_as(&self, cell: ActorCell) {
        let mut inner = self.inner.lock();
        // One that was called for is no restart: nothing had died.
        if !std::mem::take(&mut inner.passive) {
            self.starts.fetch_add(1, Ordering::Relaxed);
        }
        inner.cell = Some(cell);
    }

    /// The actor that stands here ends because it has nothing to do. What it is made of goes with it,
    /// so it is not kept here.
    pub(super) fn passivated(&self) {
        let mut inner = self.inner.lock();
        inner.passive = true;
        inner.cell = None;
    }

    /// Whether no actor stands here because there is nothing to do.
    pub(super) fn is_passive(&self) -> bool {
        self.inner.lock().passive
    }

    /// How often the actor here had nothing to do; `None` while it has something.
    pub(super) fn pauses(&self) -> Option<u32> {
        self.inner.lock().mailbox.as_ref().and_then(|mailbox| mailbox.pauses())
    }

    /// Lets the actor here end, if it has nothing to do. The next item wakes `demand`.
    pub(super) fn passivate(&self, demand: Waker) {
        if let Some(mailbox) = &self.inner.lock().mailbox {
            mailbox.order(Order::Passivate(demand));
        }
    }

    /// The `ractor` actor that stands here now.
    #[must_use]
    pub fn cell(&self) -> Option<ActorCell> {
        self.inner.lock().cell.clone()
    }

    /// Kills the actor that stands here now, at its next `.await`. Returns at once. It is restarted
    /// if its supervisor allows; the end of a supervisor is the end of what it supervises. False
    /// when none runs here.
    pub fn kill(&self) -> bool {
        self.running().inspect(ActorCell::kill).is_some()
    }

    /// Stops the actor that stands here now, after the message it is working on. Returns at once.
    /// For a supervisor's decision that is a death like any other. False when none runs here.
    pub fn stop(&self) -> bool {
        let Some(cell) = self.running() else { return false };
        match &self.inner.lock().mailbox {
            Some(mailbox) => mailbox.order(Order::Stop),
            None => cell.stop(None),
        }
        true
    }

    fn running(&self) -> Option<ActorCell> {
        self.cell().filter(|cell| cell.get_status() < ActorStatus::Stopping)
    }

    /// Breaks the actor that stands here now, ahead of its items. Returns at once. The fault is for
    /// this incarnation: one that dies first takes it along. False when it does not take faults (a
    /// supervisor) or is down.
    #[cfg(feature = "chaos")]
    pub fn inject(&self, fault: Fault) -> bool {
        let up = self.running().is_some();
        match &self.inner.lock().mailbox {
            Some(mailbox) if up => mailbox.order(Order::Break(fault)),
            _ => return false,
        }
        true
    }

    /// Throws away what waits in the mailbox here and says how much that was: for tests of tests,
    /// which must notice the loss.
    #[cfg(feature = "chaos")]
    pub fn lose_mailbox(&self) -> usize {
        self.inner.lock().mailbox.as_ref().map_or(0, |mailbox| mailbox.lose())
    }

    /// A picture of this place and everything below it.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let (status, (mailbox_depth, mailbox_age), in_flight) = {
            let inner = self.inner.lock();
            let up = inner.cell.as_ref().is_some_and(|cell| cell.get_status() < ActorStatus::Stopping);
            let status = match (inner.outcome.as_deref(), up) {
                (Some(Outcome::Finished), _) => Status::Finished,
                (Some(Outcome::Failed(_)), _) => Status::Failed,
                (None, true) => Status::Up,
                (None, false) if inner.passive => Status::Passive,
                (None, false) => Status::Down,
            };
            let mailbox = inner.mailbox.as_ref().map_or((0, Duration::ZERO), |mailbox| mailbox.backlog());
            (status, mailbox, inner.in_flight.as_ref().map_or(0, |count| count()))
        };
        Snapshot {
            path: self.path.clone(),
            kind: self.kind,
            status,
            restarts: self.restarts(),
            mailbox_depth,
            mailbox_age,
            in_flight,
            children: self.children().iter().map(|child| child.snapshot()).collect(),
        }
    }

    /// This place and all below it.
    #[must_use]
    pub fn flatten(self: &Arc<Self>) -> Vec<Arc<Self>> {
        let mut all = vec![self.clone()];
        for child in self.children() {
            all.extend(child.flatten());
        }
        all
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("path", &self.path).field("restarts", &self.restarts()).finish_non_exhaustive()
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.path, self.status)?;
        if self.restarts > 0 {
            write!(f, " restarts={}", self.restarts)?;
        }
        if self.mailbox_depth > 0 {
            write!(f, " mailbox={} age={:?}", self.mailbox_depth, self.mailbox_age)?;
        }
        if self.in_flight > 0 {
            write!(f, " in-flight={}", self.in_flight)?;
        }
        for child in &self.children {
            write!(f, "\n{child}")?;
        }
        Ok(())
    }
}
