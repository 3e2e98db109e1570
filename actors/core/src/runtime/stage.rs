//! The one generic actor, and what it runs.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use greenroom_protocol::{BoxFuture, Error};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr};

use super::live::{Live, LiveCount};
use super::mailbox::Mailbox;
use super::node::{Fault, Node, Order, Outcome};
use super::slot::{Lease, Slot};

/// Items that a stage takes from its mailbox at once. Between two batches, stop requests and
/// supervision get their turn.
const BATCH: usize = 64;

/// An item that broke its stage this often is set aside.
const QUARANTINE_AFTER: u32 = 2;

/// What travels through `ractor`'s own mailbox: never data.
#[derive(Debug)]
pub enum Control {
    /// Start working.
    Run,
}

#[cfg(feature = "cluster")]
impl ractor::Message for Control {}

/// What one actor of the tree does.
///
/// A stage's file holds its items, its state and one method an item. It sees no wake-ups, leases
/// or restarts. Its state survives the actor: whatever the stage keeps in `self` across an
/// `.await` must still make sense when the future of [`run`](Self::run) is dropped there.
pub trait Stage: Send + 'static {
    /// What waits in the mailbox.
    type Item: Send + 'static;

    /// Works on the inbox. Returns when the batch is used up, or earlier to let control messages
    /// pass. Dropped at any `.await` when the actor is killed; then called again.
    fn run(&mut self, inbox: &mut Inbox<Self::Item>) -> impl Future<Output = Flow> + Send;

    /// Takes over an item during which this stage panicked twice, so that whoever waits for it
    /// gets an error. Must not panic.
    fn quarantine(&mut self, item: Self::Item);
}

/// How a stage goes on.
#[derive(Debug)]
pub enum Flow {
    /// The batch is used up: wake me when there is more. Nothing else is waited for, so the actor
    /// may be passivated.
    Idle,
    /// Call me again soon, there may be more to do.
    Again,
    /// The stage's work is complete; it is not restarted.
    Finished,
    /// The stage cannot go on, and a restart would not help.
    Failed(Error),
}

/// The items at hand, part of the leased state.
///
/// Pure stages use [`begin`](Self::begin) and [`commit`](Self::commit): an item stays at the
/// front until its effects are done, so a panic in between repeats it. Stages whose work must not
/// be repeated, such as user handlers, [`take`](Self::take) it first.
pub struct Inbox<T> {
    batch: VecDeque<T>,
    mailbox: Mailbox<T>,
    /// Set between `begin` and `commit`.
    working: bool,
    /// Panics on the front item.
    attempts: u32,
    /// A panic that a test ordered for the middle of the next item that has not broken yet: an
    /// ordered fault must not make an item look like one that breaks its stage.
    fault: bool,
}

impl<T> Inbox<T> {
    fn new(mailbox: Mailbox<T>) -> Self {
        Self { batch: VecDeque::new(), mailbox, working: false, attempts: 0, fault: false }
    }

    /// An inbox around given items, for testing a stage without a runtime.
    pub fn of(items: impl IntoIterator<Item = T>) -> Self {
        Self { batch: items.into_iter().collect(), ..Self::new(Mailbox::new()) }
    }

    /// The item at the front, which stays there until [`commit`](Self::commit).
    #[inline]
    pub fn begin(&mut self) -> Option<&mut T> {
        if self.batch.is_empty() {
            return None;
        }
        self.working = true;
        self.break_on_purpose();
        self.batch.front_mut()
    }

    #[inline]
    fn break_on_purpose(&mut self) {
        if self.fault && self.attempts == 0 {
            self.fault = false;
            panic!("fault injected in the middle of an item");
        }
    }

    /// Ends the work on the front item and hands it over.
    #[inline]
    pub fn commit(&mut self) -> Option<T> {
        self.working = false;
        self.attempts = 0;
        self.batch.pop_front()
    }

    /// The front item by value: from now on it is the stage's, and never repeated.
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        if !self.batch.is_empty() {
            self.break_on_purpose();
        }
        self.attempts = 0;
        self.batch.pop_front()
    }

    /// Looks at the front item without starting on it.
    #[must_use]
    pub fn front(&self) -> Option<&T> {
        self.batch.front()
    }

    /// Moves more items from the mailbox into the batch.
    #[inline]
    pub fn refill(&mut self) {
        if self.batch.len() < BATCH {
            self.mailbox.take(&mut self.batch, BATCH);
        }
    }

    /// Waits until the mailbox has more, or an order for this actor: then let control messages
    /// pass by returning [`Flow::Again`]. For stages that wait for something else at the same
    /// time. Cancel-safe.
    pub async fn more(&self) {
        self.mailbox.wait().await;
    }

    /// Items taken from the mailbox and not yet worked on.
    #[must_use]
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// Whether nothing is at hand.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }
}

impl<T> fmt::Debug for Inbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("at_hand", &self.batch.len()).finish_non_exhaustive()
    }
}

/// What is leased: the stage and its inbox.
struct Core<S: Stage> {
    stage: S,
    inbox: Inbox<S::Item>,
}

/// A place in the tree: everything that is needed to start the stage's actor again and again.
pub struct Seat<S: Stage> {
    slot: Slot<Core<S>>,
    mailbox: Mailbox<S::Item>,
    node: Arc<Node>,
    live: LiveCount,
}

impl<S: Stage> Seat<S> {
    /// A seat for this stage, reading this mailbox, shown in the tree as this node.
    pub fn new(stage: S, mailbox: Mailbox<S::Item>, node: Arc<Node>, live: LiveCount) -> Self {
        node.observe(mailbox.clone());
        let core = Core { stage, inbox: Inbox::new(mailbox.clone()) };
        Self { slot: Slot::new(core), mailbox, node, live }
    }

    /// The place in the tree.
    #[must_use]
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Works off what is left in the mailbox, after the last incarnation ended and the mailbox was
    /// closed. Stops at the first item that the stage waits with.
    pub async fn wind_up(&self) {
        let _live = self.live.enter();
        let Ok(mut core) = self.slot.lease().await else { return };
        // What the last incarnation was told and did not do any more.
        self.mailbox.taken_over();
        let Core { stage, inbox } = &mut *core;
        inbox.fault = false;
        loop {
            inbox.refill();
            match stage.run(inbox).await {
                // Orders are for incarnations: none is taken here, however late it comes.
                Flow::Idle | Flow::Again if !inbox.is_empty() || self.mailbox.depth() > 0 => {}
                Flow::Idle | Flow::Again | Flow::Finished | Flow::Failed(_) => return,
            }
        }
    }

    /// Starts an incarnation below `supervisor`.
    pub fn spawn(&self, supervisor: ActorCell) -> BoxFuture<'static, Result<ActorCell, SpawnErr>> {
        let seat = self.clone();
        Box::pin(async move {
            let node = seat.node.clone();
            let start: Start = Box::new(move |me| Box::pin(seat.take(me)));
            let (actor, _join) = Actor::spawn_linked(None, StageActor, start, supervisor).await?;
            let cell = actor.get_cell();
            node.started_as(cell.clone());
            Ok(cell)
        })
    }
}

impl<S: Stage> Clone for Seat<S> {
    fn clone(&self) -> Self {
        Self {
            slot: self.slot.clone(),
            mailbox: self.mailbox.clone(),
            node: self.node.clone(),
            live: self.live.clone(),
        }
    }
}

impl<S: Stage> fmt::Debug for Seat<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("node", &self.node.path()).finish_non_exhaustive()
    }
}

/// Everything that one incarnation does, from the lease to the end.
type Work = BoxFuture<'static, ()>;

/// Waits for the lease and gives the work.
type Start = Box<dyn FnOnce(ActorRef<Control>) -> BoxFuture<'static, Result<Work, ActorProcessingErr>> + Send>;

/// The one actor that runs every stage. It knows nothing of the stage's type: `ractor`'s message
/// loop then exists once in the program and stays in the processor's caches, instead of once a
/// stage (measured: a fifth of what a hop between two processes costs).
struct StageActor;

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for StageActor {
    type Msg = Control;
    /// Holds the lease. Dropping it, in whatever way the actor ends, returns it.
    type State = Work;
    type Arguments = Start;

    async fn pre_start(&self, me: ActorRef<Control>, start: Start) -> Result<Work, ActorProcessingErr> {
        let work = start(me.clone()).await?;
        // The one message that this actor ever gets: from then on it waits at its own mailbox.
        me.cast(Control::Run)?;
        Ok(work)
    }

    async fn handle(
        &self,
        _me: ActorRef<Control>,
        message: Control,
        work: &mut Work,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Control::Run => work.await,
        }
        Ok(())
    }
}

impl<S: Stage> Seat<S> {
    /// Leases the core and makes it ready for a new incarnation.
    async fn take(self, me: ActorRef<Control>) -> Result<Work, ActorProcessingErr> {
        let mut core = self.slot.lease().await?;
        let Core { stage, inbox } = &mut *core;
        // Orders are for one incarnation.
        inbox.fault = false;
        if inbox.attempts >= QUARANTINE_AFTER
            && let Some(item) = inbox.commit()
        {
            tracing::error!(actor = self.node.path(), "an item broke its actor twice and was set aside");
            stage.quarantine(item);
        }
        self.mailbox.taken_over();
        let mut incarnation = Incarnation { core, mailbox: self.mailbox, node: self.node, _live: self.live.enter() };
        Ok(Box::pin(async move { incarnation.run(&me).await }))
    }
}

/// A stage at work.
struct Incarnation<S: Stage> {
    core: Lease<Core<S>>,
    mailbox: Mailbox<S::Item>,
    node: Arc<Node>,
    _live: Live,
}

impl<S: Stage> Drop for Incarnation<S> {
    /// Only a panic tells something about the item at the front. A kill or a stop in the middle of
    /// it does not: a message that waits long at an await is no worse than others.
    fn drop(&mut self) {
        let inbox = &mut self.core.inbox;
        if std::mem::take(&mut inbox.working) && std::thread::panicking() {
            inbox.attempts += 1;
        }
    }
}

impl<S: Stage> Incarnation<S> {
    /// Works until the stage is done or the actor is told to stop. A kill drops this future at
    /// any of its awaits.
    async fn run(&mut self, me: &ActorRef<Control>) {
        // Whether the stage waits for nothing but its mailbox.
        let mut idle = false;
        loop {
            let Core { stage, inbox } = &mut *self.core;
            while let Some(order) = self.mailbox.take_turn(&mut inbox.batch, BATCH) {
                match order {
                    Order::Stop => return me.stop(None),
                    Order::Passivate(demand) => {
                        if idle && inbox.is_empty() && self.mailbox.leave(demand) {
                            inbox.batch = VecDeque::new();
                            self.node.passivated();
                            return me.stop(None);
                        }
                    }
                    Order::Break(Fault::Panic) => panic!("fault injected between two items"),
                    Order::Break(Fault::PanicInside) => inbox.fault = true,
                    Order::Break(Fault::Stall(time)) => tokio::time::sleep(time).await,
                }
            }
            idle = false;
            match stage.run(inbox).await {
                Flow::Idle if inbox.is_empty() => {
                    idle = true;
                    self.mailbox.turn().await;
                }
                // Others get their turn between two batches.
                Flow::Idle | Flow::Again => requeue().await,
                Flow::Finished => return self.finish(me, Outcome::Finished),
                Flow::Failed(error) => return self.finish(me, Outcome::Failed(error)),
            }
        }
    }

    /// Records the outcome where it survives the actor, then ends it. The reason of a stop is
    /// lossy in `ractor` (the first stop wins), so it carries nothing.
    fn finish(&self, me: &ActorRef<Control>, outcome: Outcome) {
        self.node.set_outcome(outcome);
        me.stop(None);
    }
}

/// Lets every task that is ready run first. Unlike tokio's `yield_now`, it does not go through
/// the I/O driver: a busy actor would pay a system call for each batch.
async fn requeue() {
    let mut polled = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::Inbox;

    #[test]
    fn an_ordered_fault_does_not_break_the_same_item_again() {
        let mut inbox = Inbox::of([1, 2]);
        inbox.fault = true;
        catch_unwind(AssertUnwindSafe(|| _ = inbox.begin())).expect_err("ordered");
        inbox.attempts = 1;
        inbox.fault = true;
        assert_eq!(inbox.begin(), Some(&mut 1));
        inbox.commit();
        catch_unwind(AssertUnwindSafe(|| _ = inbox.begin())).expect_err("the next one breaks");
    }
}
