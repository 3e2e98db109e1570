//! The children of a supervisor: starting them, and deciding about their deaths.

use std::sync::Arc;
use std::task::Waker;

use greenroom_protocol::BoxFuture;
use ractor::{ActorCell, ActorId, SpawnErr, SupervisionEvent};
use tokio::time::{Duration, Instant};

use super::node::{Node, Outcome};
use super::restart::{RestartBudget, RestartPolicy, Verdict};
use super::stage::{Seat, Stage};

/// How much more rarely children are looked at that are in the middle of something.
const BUSY: u32 = 20;

type Spawn = Box<dyn Fn(ActorCell) -> BoxFuture<'static, Result<ActorCell, SpawnErr>> + Send + Sync>;

/// One child of a supervisor.
pub struct Child {
    node: Arc<Node>,
    spawn: Spawn,
    budget: RestartBudget,
    current: Option<ActorId>,
    /// Set for a child that ends while it has nothing to do.
    passivation: Option<Passivation>,
}

/// What is known of a child that ends while it has nothing to do.
#[derive(Default)]
struct Passivation {
    /// How often it had nothing to do when it was last looked at, if it had nothing to do then.
    pauses: Option<u32>,
    /// It was called for before its end was told.
    wanted: bool,
}

impl Child {
    /// A child that runs a stage.
    pub fn stage<S: Stage>(seat: Seat<S>, policy: RestartPolicy) -> Self {
        let node = seat.node().clone();
        Self::new(node, policy, move |supervisor| seat.spawn(supervisor))
    }

    /// A child of any kind.
    pub fn new(
        node: Arc<Node>,
        policy: RestartPolicy,
        spawn: impl Fn(ActorCell) -> BoxFuture<'static, Result<ActorCell, SpawnErr>> + Send + Sync + 'static,
    ) -> Self {
        Self { node, spawn: Box::new(spawn), budget: RestartBudget::new(policy), current: None, passivation: None }
    }

    /// Lets the child end while it has nothing to do: see [`Children::passivate`].
    #[must_use]
    pub fn passivated(mut self) -> Self {
        self.passivation = Some(Passivation::default());
        self
    }
}

/// What a supervisor has to do about a child's end.
#[derive(Debug)]
pub enum Death {
    /// Start child number `.0` again after `.1`.
    Restart(usize, Duration),
    /// Child number `.0` ended by its own decision.
    Ended(usize, Outcome),
    /// Child number `.0` died too often.
    GaveUp(usize),
}

/// The children of one supervisor.
pub struct Children {
    /// A place is free after its child was removed.
    children: Vec<Option<Child>>,
    since: Instant,
}

/// Which actor a supervision event says is dead. Consumes the event: it carries the dead actor's
/// state, and with it the lease that the next incarnation needs.
#[must_use]
pub fn death_of(event: SupervisionEvent) -> Option<ActorId> {
    match event {
        SupervisionEvent::ActorTerminated(cell, state, _) => {
            drop(state);
            Some(cell.get_id())
        }
        SupervisionEvent::ActorFailed(cell, error) => {
            // Not its text: a panic may quote what it was looking at.
            drop(error);
            tracing::warn!(actor = %cell.get_id(), "an actor failed");
            Some(cell.get_id())
        }
        SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => None,
        #[allow(unreachable_patterns, reason = "cluster adds variants for the whole build")]
        _ => None,
    }
}

impl Children {
    /// These children, none started yet.
    #[must_use]
    pub fn new(children: Vec<Child>) -> Self {
        let mut children: Vec<_> = children.into_iter().map(Some).collect();
        children.shrink_to_fit();
        Self { children, since: Instant::now() }
    }

    /// Starts every child below `supervisor`.
    ///
    /// # Errors
    /// The first child that does not start.
    pub async fn start_all(&mut self, supervisor: &ActorCell) -> Result<(), SpawnErr> {
        for child in self.children.iter_mut().flatten() {
            let cell = (child.spawn)(supervisor.clone()).await?;
            child.current = Some(cell.get_id());
        }
        Ok(())
    }

    /// Adds a child later in life, starts it and returns its number.
    ///
    /// # Errors
    /// When the child does not start; then it is not added.
    pub async fn start(&mut self, mut child: Child, supervisor: &ActorCell) -> Result<usize, SpawnErr> {
        let cell = (child.spawn)(supervisor.clone()).await?;
        child.current = Some(cell.get_id());
        if let Some(free) = self.children.iter().position(Option::is_none) {
            self.children[free] = Some(child);
            return Ok(free);
        }
        self.children.push(Some(child));
        Ok(self.children.len() - 1)
    }

    /// Forgets a child that ended, or kills it. Its number may be given to another child.
    pub fn remove(&mut self, index: usize) -> Option<Arc<Node>> {
        let child = self.children.get_mut(index)?.take()?;
        child.node.kill();
        Some(child.node)
    }

    /// Decides about a death. `None` for actors that are no children (any more).
    pub fn died(&mut self, actor: ActorId) -> Option<Death> {
        let index =
            self.children.iter().position(|child| child.as_ref().is_some_and(|child| child.current == Some(actor)))?;
        let child = self.children[index].as_mut()?;
        child.current = None;
        if let Some(outcome) = child.node.outcome() {
            return Some(Death::Ended(index, outcome));
        }
        if let Some(passivation) = child.passivation.as_mut().filter(|_| child.node.is_passive()) {
            // Nothing died, so nothing counts.
            return std::mem::take(&mut passivation.wanted).then_some(Death::Restart(index, Duration::ZERO));
        }
        Some(verdict(index, child, self.since))
    }

    /// Starts child number `index` again, and says what to do when that fails: a start that fails
    /// counts as another death. `None`: it runs.
    ///
    /// # Panics
    /// When there is no such child.
    pub async fn restart(&mut self, index: usize, supervisor: &ActorCell) -> Option<Death> {
        // The child may have been removed while its restart waited.
        let child = self.children.get_mut(index)?.as_mut()?;
        if child.current.is_some() {
            return None;
        }
        match (child.spawn)(supervisor.clone()).await {
            Ok(cell) => {
                child.current = Some(cell.get_id());
                None
            }
            Err(_) => {
                tracing::warn!(actor = child.node.path(), "an actor did not start");
                Some(verdict(index, child, self.since))
            }
        }
    }

    /// Ends those children that are [`passivated`](Child::passivated) and had nothing to do since
    /// this was called last, which was `pause` ago. Each takes the waker that `demand` gives for it,
    /// and wakes it when there is something for it again; then [`wanted`](Self::wanted) has to be
    /// called. Its end is no death.
    ///
    /// Returns when to call this again: `None` as long as no child is started.
    pub fn passivate(&mut self, pause: Duration, demand: impl Fn(usize) -> Waker) -> Option<Duration> {
        let mut again = None;
        for (index, child) in self.children.iter_mut().enumerate() {
            let Some(child) = child else { continue };
            let Some(passivation) = child.passivation.as_mut().filter(|_| child.current.is_some()) else { continue };
            let pauses = child.node.pauses();
            if pauses.is_some() && passivation.pauses == pauses && !child.node.is_passive() {
                child.node.passivate(demand(index));
            }
            passivation.pauses = pauses;
            // A child that waits for long in the middle of its work is not to keep a processor awake.
            let next = if pauses.is_some() { pause } else { pause.saturating_mul(BUSY) };
            again = Some(again.map_or(next, |again: Duration| again.min(next)));
        }
        again
    }

    /// Starts child number `index`, which ended because it had nothing to do, or is about to. What is
    /// returned is as with [`restart`](Self::restart).
    pub async fn wanted(&mut self, index: usize, supervisor: &ActorCell) -> Option<Death> {
        let child = self.children.get_mut(index)?.as_mut()?;
        if child.current.is_some() {
            child.passivation.as_mut()?.wanted = true;
            return None;
        }
        self.restart(index, supervisor).await
    }

    /// The place of child number `index` in the tree.
    ///
    /// # Panics
    /// When there is no such child.
    #[must_use]
    pub fn node(&self, index: usize) -> &Arc<Node> {
        &self.children[index].as_ref().expect("the child was not removed").node
    }

    /// Kills every child that is alive. `ractor` itself leaves children alone that are draining
    /// or in `post_stop` when their parent dies.
    pub fn kill_all(&self) {
        for child in self.children.iter().flatten() {
            child.node.kill();
        }
    }
}

fn verdict(index: usize, child: &mut Child, since: Instant) -> Death {
    match child.budget.death(since.elapsed()) {
        Verdict::Restart(after) => Death::Restart(index, after),
        Verdict::GiveUp => Death::GaveUp(index),
    }
}

impl std::fmt::Debug for Children {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.children.iter().flatten().map(|child| child.node.path())).finish()
    }
}
