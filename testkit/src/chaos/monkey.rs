//! The monkey: picks an actor and a fault, again and again.

use std::collections::BTreeSet;
use std::panic;
use std::sync::{Arc, Once};
use std::time::Duration;

use greenroom::runtime::{Fault, Node};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::random::Random;
use super::report::Report;

/// The kinds of actors that others are restarted by. Only an ending kills one on purpose.
const SUPERVISORS: [&str; 3] = ["connection", "http-server", "http-connection"];

/// How an actor is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// Killed at its next await.
    Kill,
    /// A panic between two items.
    Panic,
    /// A panic in the middle of an item.
    PanicInside,
    /// Stopped behind the message that it works on.
    Stop,
    /// Busy with nothing for a moment.
    Stall,
}

impl FaultKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Kill, Self::Panic, Self::PanicInside, Self::Stop, Self::Stall];

    /// The name in a report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Panic => "panic",
            Self::PanicInside => "panic-inside",
            Self::Stop => "stop",
            Self::Stall => "stall",
        }
    }

    /// Whether the actor took the fault: one that is down does not.
    fn strike(self, node: &Node, random: &mut Random) -> bool {
        match self {
            Self::Kill => node.kill(),
            Self::Stop => node.stop(),
            Self::Panic => node.inject(Fault::Panic),
            Self::PanicInside => node.inject(Fault::PanicInside),
            Self::Stall => node.inject(Fault::Stall(Duration::from_micros(random.below(2_000)))),
        }
    }
}

/// Attacks the actors of the trees it is let loose on. Decides by its seed alone: the same seed
/// strikes the same targets in the same order.
#[derive(Clone, Debug)]
pub struct Monkey {
    seed: u64,
    pace: u64,
    kinds: Vec<FaultKind>,
    targets: Option<Vec<&'static str>>,
    /// Whether a kind of which there are few is struck as often as one of which there are many.
    evenly: bool,
    durable: bool,
}

/// A monkey at work.
#[derive(Debug)]
pub struct Attack {
    stop: oneshot::Sender<()>,
    work: JoinHandle<Report>,
}

impl Monkey {
    /// A monkey that strikes every actor but the supervisors, in every way.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, pace: 40, kinds: FaultKind::ALL.to_vec(), targets: None, evenly: false, durable: true }
    }

    /// How many turns the rest of the program gets between two attacks, on average.
    #[must_use]
    pub fn pace(mut self, turns: u64) -> Self {
        self.pace = turns.max(1);
        self
    }

    /// The only kinds of faults to use.
    #[must_use]
    pub fn kinds(mut self, kinds: impl Into<Vec<FaultKind>>) -> Self {
        self.kinds = kinds.into();
        self
    }

    /// The only kinds of actors to attack, for example `writer`.
    #[must_use]
    pub fn targets(mut self, targets: impl Into<Vec<&'static str>>) -> Self {
        self.targets = Some(targets.into());
        self
    }

    /// Strikes each kind of actor as often as the others, however many there are of it.
    #[must_use]
    pub fn evenly(mut self) -> Self {
        self.evenly = true;
        self
    }

    /// Loses the mailbox of each actor with the actor, as if mailboxes were not durable. For the
    /// proof that a loss is noticed.
    #[must_use]
    pub fn losing_mailboxes(mut self) -> Self {
        self.durable = false;
        self
    }

    /// Starts to attack the actors below these roots, as a task. From now on, panics that a monkey
    /// ordered are not printed in this process.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn attack(self, roots: Vec<Arc<Node>>) -> Attack {
        hide_ordered_panics();
        let (stop, stopped) = oneshot::channel();
        Attack { stop, work: tokio::spawn(self.rage(roots, stopped)) }
    }

    async fn rage(self, roots: Vec<Arc<Node>>, mut stopped: oneshot::Receiver<()>) -> Report {
        let mut random = Random::new(self.seed);
        let mut report = Report::default();
        while stopped.try_recv() == Err(oneshot::error::TryRecvError::Empty) {
            self.wait(&mut random).await;
            // Timers and sockets get their turn as well, not only what is ready.
            if random.once_in(4) {
                tokio::time::sleep(Duration::from_micros(random.below(1_500))).await;
            }
            let Some((target, fault)) = self.choose(&roots, &mut random) else { continue };
            // An actor that keeps up dies with nothing in its mailbox: some are held up first.
            let hold_up = self.kinds.contains(&FaultKind::Stall) && (!self.durable || random.once_in(3));
            if hold_up && FaultKind::Stall.strike(&target, &mut random) {
                report.attacked(target.kind(), FaultKind::Stall);
                self.wait(&mut random).await;
            }
            if fault.strike(&target, &mut random) {
                report.attacked(target.kind(), fault);
                if !self.durable {
                    target.lose_mailbox();
                }
            }
        }
        report
    }

    /// Gives the rest of the program some turns.
    async fn wait(&self, random: &mut Random) {
        for _ in 0..=random.below(self.pace * 2) {
            tokio::task::yield_now().await;
        }
    }

    /// Whom to strike next, and how.
    fn choose(&self, roots: &[Arc<Node>], random: &mut Random) -> Option<(Arc<Node>, FaultKind)> {
        // Looked up each time: trees grow and shrink.
        let mut targets: Vec<_> = roots.iter().flat_map(Node::flatten).filter(|node| self.wants(node)).collect();
        if self.evenly {
            let kinds: BTreeSet<_> = targets.iter().map(|node| node.kind()).collect();
            let kinds = Vec::from_iter(kinds);
            if !kinds.is_empty() {
                let kind = *random.pick(&kinds);
                targets.retain(|node| node.kind() == kind);
            }
        }
        if targets.is_empty() || self.kinds.is_empty() {
            return None;
        }
        Some((random.pick(&targets).clone(), *random.pick(&self.kinds)))
    }

    fn wants(&self, node: &Node) -> bool {
        match &self.targets {
            Some(targets) => targets.contains(&node.kind()),
            None => !SUPERVISORS.contains(&node.kind()),
        }
    }
}

/// A soak panics thousands of times; each would be printed, with a backtrace.
fn hide_ordered_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let ordered = info.payload().downcast_ref::<&str>().is_some_and(|text| text.starts_with("fault injected"));
            if !ordered {
                print(info);
            }
        }));
    });
}

impl Attack {
    /// Ends the attack and says what was done.
    ///
    /// # Panics
    /// When the monkey itself broke.
    pub async fn stop(self) -> Report {
        // A monkey that is gone already is found by the join.
        let _ = self.stop.send(());
        self.work.await.expect("the monkey survives its own attacks")
    }
}
