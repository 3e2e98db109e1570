//! One run: two trees, joined by a small pipe or a channel, talk while a monkey breaks their actors.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use greenroom::link::Link;
use greenroom::runtime::{Node, RestartPolicy};
use greenroom::{
    Agent, Channel, Client, Connection, ConnectionOptions, ConnectionTo, Error, Result, UntypedMessage,
    on_receive_notification, on_receive_request,
};
use ractor::{Actor, ActorCell};
use tokio::io::DuplexStream;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::ending::{Ending, Reader, STUCK, Waiting, late_request};
use super::ledger::Ledger;
use super::parent::Parent;
use super::random::Random;
use super::report::Report;
#[cfg(feature = "unstable_protocol_v2")]
use super::second::Second;
use super::workload::Worker;

/// One run.
#[derive(Clone, Debug)]
pub struct Soak {
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// Messages that are sent, each direction half.
    pub messages: usize,
    /// How long all of them may take.
    pub patience: Duration,
    /// False to lose the mailbox of every actor that is attacked. Then the run must fail.
    pub durable: bool,
    /// The only kinds of actors to attack; `None` for all.
    pub targets: Option<Vec<&'static str>>,
    /// The version of the protocol whose sessions are used.
    pub protocol: Protocol,
    /// How long an actor has nothing to do before it ends. Never, by default: who is not there cannot
    /// be attacked.
    pub passivate_after: Duration,
}

/// The version of the protocol whose sessions a run uses. The plain traffic is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Version 1, without a handshake.
    One,
    /// Version 2, with the handshake that it requires.
    #[cfg(feature = "unstable_protocol_v2")]
    Two,
}

impl Protocol {
    /// Every version that is compiled in.
    pub const ALL: &'static [Self] = &[
        Self::One,
        #[cfg(feature = "unstable_protocol_v2")]
        Self::Two,
    ];
}

/// A run that went wrong, with what is needed to do it again.
#[derive(Debug)]
pub struct Fault {
    seed: u64,
    faults: Vec<String>,
}

impl Fault {
    pub(super) fn new(seed: u64, faults: Vec<String>) -> Self {
        Self { seed, faults }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the run with seed {} went wrong:", self.seed)?;
        self.faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}

impl std::error::Error for Fault {}

/// The two connections of a run, and who looks after them.
pub(super) struct Stage {
    pub(super) linked: Connection<Client>,
    parent: ActorCell,
    parent_done: JoinHandle<()>,
    pub(super) driven: ConnectionTo<Agent>,
    driving: JoinHandle<Result<()>>,
    finish: oneshot::Sender<()>,
    /// Handles what the driven side sends.
    pub(super) agent: Worker,
    /// Handles what the linked side sends.
    pub(super) client: Worker,
    /// Whether one session has to fail: then its coordinator may die as often as usual, and the others
    /// are spared.
    pub(super) dooms: bool,
    /// Sessions of version 2, and the handle to use them with.
    #[cfg(feature = "unstable_protocol_v2")]
    pub(super) second: Option<(Second, greenroom::V2ConnectionTo<Agent>)>,
}

impl Soak {
    /// A run with this seed, under the usual conditions.
    #[must_use]
    pub fn new(seed: u64, messages: usize) -> Self {
        Self {
            seed,
            messages,
            patience: Duration::from_secs(60),
            durable: true,
            targets: None,
            protocol: Protocol::One,
            passivate_after: Duration::MAX,
        }
    }

    /// Does the run. Nothing else may run in the runtime: every task that is left is a fault.
    ///
    /// # Errors
    /// Everything that was lost, repeated, out of order, late, unanswered or left over.
    pub async fn run(&self) -> Result<Report, Fault> {
        let fail = |faults: Vec<String>| Err(Fault::new(self.seed, faults));
        let before = Handle::current().metrics().num_alive_tasks();
        let mut random = Random::new(self.seed);
        let dooms = self.seed % 5 == 2;
        let stage = match Stage::set(&mut random, dooms, self.protocol, self.passivate_after).await {
            Ok(stage) => stage,
            Err(error) => return fail(vec![format!("the connections did not start: {error}")]),
        };
        let trees = [stage.linked.tree(), stage.driven.tree()];
        let mut report = Report::default();
        report.runs = 1;
        let sessions = match self.traffic(&stage, &trees, &mut random, &mut report).await {
            Ok(sessions) => sessions,
            Err(faults) => return fail(faults),
        };
        let mut faults = stage.end(Ending::of(self.seed), sessions, &mut report).await;
        faults.extend(nothing_left(&trees, before).await);
        if faults.is_empty() { Ok(report) } else { fail(faults) }
    }
}

impl Stage {
    async fn set(random: &mut Random, dooms: bool, protocol: Protocol, passivate_after: Duration) -> Result<Self> {
        let (left, right) = links(random);
        let agent = Worker::new(Arc::new(Ledger::new("driven to linked")));
        let client = Worker::new(Arc::new(Ledger::new("linked to driven")));
        // Old deaths are forgiven soon: what is tested is surviving them, not giving up.
        let window = Duration::from_micros(*random.pick(&[1, 100, 5_000]));
        let mut options = ConnectionOptions::default();
        options.restart = RestartPolicy { deaths: usize::MAX, window };
        if !dooms {
            options.session_restart = options.restart;
        }
        options.incoming_credit = 1 << (10 + random.below(8));
        options.drain = Duration::from_millis(100);
        options.passivate_after = passivate_after;
        let (parent, done) = Actor::spawn(None, Parent, ()).await.map_err(Error::into_internal_error)?;
        let parent = parent.get_cell();
        let parent_done = tokio::spawn(async move { drop(done.await) });
        let (finish, finished) = oneshot::channel();
        let (linked, driving, driven);
        #[cfg(feature = "unstable_protocol_v2")]
        let mut second = None;
        match protocol {
            Protocol::One => {
                linked = start_linked(left, agent.clone(), options, parent.clone()).await?;
                let (tell, told) = oneshot::channel();
                driving = tokio::spawn(drive(right, client.clone(), options, tell, finished));
                driven = told.await.map_err(Error::into_internal_error)?;
            }
            #[cfg(feature = "unstable_protocol_v2")]
            Protocol::Two => {
                let both = Second::default();
                linked = both.start_linked(left, agent.clone(), options, parent.clone()).await?;
                let (tell, told) = oneshot::channel();
                let (driver, client) = (both.clone(), client.clone());
                driving = tokio::spawn(async move { driver.drive(right, client, options, tell, finished).await });
                let handle;
                (driven, handle) = told.await.map_err(Error::into_internal_error)?;
                second = Some((both, handle));
            }
        }
        Ok(Self {
            linked,
            parent,
            parent_done,
            driven,
            driving,
            finish,
            agent,
            client,
            dooms,
            #[cfg(feature = "unstable_protocol_v2")]
            second,
        })
    }

    /// The books of everything that is said.
    pub(super) fn books(&self) -> Vec<Arc<Ledger>> {
        let books = [&self.agent, &self.client].into_iter().flat_map(Worker::books);
        #[cfg(feature = "unstable_protocol_v2")]
        let books = books.chain(self.second.iter().flat_map(|(second, _)| second.books()));
        books.collect()
    }

    /// Ends both connections while requests and the readers of these sessions wait. Returns what is
    /// wrong.
    async fn end(self, ending: Ending, sessions: Vec<Reader>, report: &mut Report) -> Vec<String> {
        report.ended(ending.to_string());
        let mut faults = Vec::new();
        let linked = self.linked.connection();
        let (from_linked, mut from_driven) =
            match (Waiting::send("linked", linked), Waiting::send("driven", &self.driven)) {
                (Ok(linked), Ok(driven)) => (linked, driven),
                (Err(error), _) | (_, Err(error)) => return vec![format!("requests were refused: {error}")],
            };
        sessions.into_iter().for_each(|session| from_driven.read(session));
        self.agent.stuck(STUCK).await;
        self.client.stuck(STUCK).await;
        match ending {
            Ending::KillLinked => drop(self.linked.tree().kill()),
            Ending::StopLinked => drop(self.linked.tree().stop()),
            Ending::KillDriven => drop(self.driven.tree().kill()),
            Ending::StopDriven => drop(self.driven.tree().stop()),
            Ending::KillBoth => drop((self.linked.tree().kill(), self.driven.tree().kill())),
            Ending::KillParent => self.parent.kill(),
            Ending::DropDriven => self.driving.abort(),
            Ending::Finish => drop(self.finish.send(())),
        }
        let (linked_faults, driven_faults) = tokio::join!(from_linked.fail(), from_driven.fail());
        faults.extend(linked_faults);
        faults.extend(driven_faults);
        // Which side ended first is no matter; the other one hears it through the pipe.
        self.driving.abort();
        let over = Duration::from_secs(2);
        if timeout(over, self.linked.closed()).await.is_err() {
            faults.push(format!("the linked connection does not close:\n{}", self.linked.snapshot()));
        }
        if timeout(over, self.driving).await.is_err() {
            faults.push(format!("the driven connection does not close:\n{}", self.driven.snapshot()));
        }
        for late in [late_request("linked", linked).await, late_request("driven", &self.driven).await] {
            match late {
                Ok(fault) => faults.extend(fault),
                Err(error) => faults.push(format!("a late request cannot be written: {error}")),
            }
        }
        self.agent.release();
        self.client.release();
        self.parent.stop(None);
        let _ = self.parent_done.await;
        faults
    }
}

/// What joins the two sides: mostly a small pipe, now and then the documented channel.
fn links(random: &mut Random) -> (Link, Link) {
    if random.once_in(4) {
        let (left, right) = Channel::duplex();
        return (Link::channel(left), Link::channel(right));
    }
    let (left, right) = tokio::io::duplex(256 << random.below(5));
    (bytes(left), bytes(right))
}

fn bytes(stream: DuplexStream) -> Link {
    let (reader, writer) = tokio::io::split(stream);
    Link::bytes(reader, writer)
}

/// The side whose handlers run inside its dispatch actor.
async fn start_linked(
    link: Link,
    worker: Worker,
    options: ConnectionOptions,
    parent: ActorCell,
) -> Result<Connection<Client>> {
    let notes = worker.clone();
    Agent
        .builder()
        .options(options)
        .on_receive_request(
            async move |request: UntypedMessage, responder, cx: ConnectionTo<Client>| {
                worker.serve(request, responder, cx).await
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, cx| notes.note(note, cx).await,
            on_receive_notification!(),
        )
        .spawn_linked(link, parent)
        .await
}

/// The side whose handlers run in the future of its caller.
async fn drive(
    link: Link,
    worker: Worker,
    options: ConnectionOptions,
    tell: oneshot::Sender<ConnectionTo<Agent>>,
    finished: oneshot::Receiver<()>,
) -> Result<()> {
    let notes = worker.clone();
    Client
        .builder()
        .options(options)
        .on_receive_request(
            async move |request: UntypedMessage, responder, cx: ConnectionTo<Agent>| {
                worker.serve(request, responder, cx).await
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, cx| notes.note(note, cx).await,
            on_receive_notification!(),
        )
        .connect_with(link, async move |cx: ConnectionTo<Agent>| {
            let _ = tell.send(cx);
            let _ = finished.await;
            Ok(())
        })
        .await
}

/// Waits for the last actors and tasks to be gone; says which are not.
pub(super) async fn nothing_left(trees: &[Arc<Node>], before: usize) -> Vec<String> {
    let metrics = Handle::current().metrics();
    for _ in 0..500 {
        if metrics.num_alive_tasks() <= before {
            break;
        }
        sleep(Duration::from_millis(2)).await;
    }
    let mut faults = Vec::new();
    let left = metrics.num_alive_tasks();
    if left > before {
        faults.push(format!("{} tasks are left", left - before));
    }
    let alive = trees
        .iter()
        .flat_map(Node::flatten)
        .filter(|node| node.cell().is_some_and(|cell| cell.get_status() != ractor::ActorStatus::Stopped));
    faults.extend(alive.map(|node| format!("{} is left", node.path())));
    faults
}
