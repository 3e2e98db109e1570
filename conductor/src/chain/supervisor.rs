//! The supervisor of one chain.
//!
//! Owns: the router's seat, the components before and after they run, the guard that cleans up
//! however this actor dies. Supervised by: whoever runs the conductor, or nobody.
//! Children, and what their death means: the router is restarted, nothing lost; a connection's
//! death comes to the router as a message and ends the chain in order.
//! It never waits for a component: starting them is a task that reports back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use greenroom::link::Link;
use greenroom::runtime::{Child, Children, Death, Live, LiveCount, Mailbox, Node, Seat, Snapshot, death_of};
use greenroom::{BoxFuture, ConnectionOptions, Error, LocalError, Origin, Result};
use greenroom_protocol::Frame;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::Duration;

use super::message::{ChainMessage, Traffic};
use super::opener::Opener;
use super::traffic::TrafficStage;
use crate::component::Components;
use crate::component::sealed::Started;
use crate::router::{ChainShape, Hop, ProxyDialect, Router};
use crate::trace::{Record, Tap, TraceStage, TraceWriter};

/// Starts the components for the first initialize.
pub(crate) type Instantiate = Box<dyn FnOnce(Frame) -> BoxFuture<'static, Result<Started>> + Send>;

/// Everything about a chain before it runs.
pub(crate) struct ChainSpec {
    pub(crate) name: String,
    pub(crate) shape: ChainShape,
    pub(crate) dialects: Option<Vec<ProxyDialect>>,
    pub(crate) instantiate: Instantiate,
    pub(crate) options: ConnectionOptions,
    pub(crate) trace: Option<TraceWriter>,
}

/// The place of the actor that writes the chain's recording.
struct Recording {
    mailbox: Mailbox<Record>,
    seat: Seat<TraceStage>,
}

/// The children of a chain's supervisor, by number.
const ROUTER: usize = 0;

/// How long the end of a chain waits for its recording.
const RECORDING_END: Duration = Duration::from_secs(2);

/// A chain that runs.
///
/// Dropping the handle leaves the chain alone when it hangs below an actor of the embedding
/// program, and ends it otherwise.
pub struct RunningChain {
    node: Arc<Node>,
    live: LiveCount,
    end: watch::Receiver<Option<Result<()>>>,
    actor: ActorCell,
    traffic: Mailbox<Traffic>,
    owned: bool,
}

impl RunningChain {
    /// The live tree of the chain's actors.
    #[must_use]
    pub fn tree(&self) -> Arc<Node> {
        self.node.clone()
    }

    /// A picture of the chain's actors: status, restarts, mailboxes.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.node.snapshot()
    }

    /// The actor that supervises the chain.
    #[must_use]
    pub fn actor(&self) -> &ActorCell {
        &self.actor
    }

    /// Ends the chain as if the client had closed its input: what is accepted is answered, then
    /// the components are ended, then the client's connection.
    pub fn finish(&self) {
        let _ = self.traffic.send(Traffic::Inbound(Hop::Client, 0, greenroom::Inbound::Eof(Default::default())));
    }

    /// Waits until the chain is over and nothing of it is left: no actor, no process. Cancel-safe.
    ///
    /// # Errors
    /// What ended the chain: the component that died, with its exit status; a broken connection.
    pub async fn closed(&self) -> Result<()> {
        let mut end = self.end.clone();
        let result = match end.wait_for(Option::is_some).await {
            Ok(result) => result.clone().unwrap_or(Ok(())),
            Err(_) => Ok(()),
        };
        self.live.none().await;
        result
    }
}

impl std::fmt::Debug for RunningChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningChain").field("tree", &self.node).finish_non_exhaustive()
    }
}

impl Drop for RunningChain {
    fn drop(&mut self) {
        if self.owned {
            self.actor.kill();
        }
    }
}

static NEXT_CHAIN: AtomicU64 = AtomicU64::new(1);

/// Starts a chain on an upstream link.
pub(crate) async fn start(spec: ChainSpec, upstream: Link, supervisor: Option<ActorCell>) -> Result<RunningChain> {
    let id = NEXT_CHAIN.fetch_add(1, Ordering::Relaxed);
    let node = Node::root(format!("conductor-{id}"), "conductor");
    let live = LiveCount::new();
    let traffic = Mailbox::new();
    let end = watch::Sender::new(None);
    let ended = end.subscribe();
    let opener = Opener {
        traffic: traffic.clone(),
        node: node.clone(),
        live: live.clone(),
        options: spec.options,
        dialects: spec.dialects,
    };
    let kit = Kit {
        name: spec.name,
        router: Some(Router::new(&spec.shape)),
        trace: spec.trace,
        opener: opener.clone(),
        instantiate: Some(spec.instantiate),
        end,
    };
    let owned = supervisor.is_none();
    let spawned = match supervisor {
        Some(supervisor) => Actor::spawn_linked(None, ChainSupervisor::default(), kit, supervisor).await,
        None => Actor::spawn(None, ChainSupervisor::default(), kit).await,
    };
    let (actor, _join) =
        spawned.map_err(|error| LocalError::new(Origin::Transport, format!("the chain did not start: {error}")))?;
    let actor = actor.get_cell();
    let chain = RunningChain { node, live, end: ended, actor: actor.clone(), traffic: traffic.clone(), owned };
    match opener.connect(Hop::Client, 0, "upstream", upstream, actor.clone()).await {
        Ok(connection) => {
            let _ = traffic.send(Traffic::Upstream(connection));
            Ok(chain)
        }
        Err(error) => {
            actor.kill();
            Err(error)
        }
    }
}

struct Kit {
    name: String,
    router: Option<Router>,
    trace: Option<TraceWriter>,
    opener: Opener,
    instantiate: Option<Instantiate>,
    end: watch::Sender<Option<Result<()>>>,
}

/// Owns the guard. `ractor` sends an actor's state to its supervisor inside of the event that tells
/// its death; the guard must not depend on when that supervisor, which may be any actor of the
/// embedding program, looks at the event. So it is no state: it is dropped with the actor itself.
#[derive(Default)]
struct ChainSupervisor {
    /// Never contended: an actor does one thing at a time.
    guard: Mutex<Option<ChainGuard>>,
}

/// Its `Drop` is the only cleanup.
struct ChainGuard {
    kit: Kit,
    children: Children,
    recording: Option<Recording>,
    components: Arc<Mutex<Components>>,
    tasks: Vec<JoinHandle<()>>,
    result: Option<Result<()>>,
    _live: Live,
}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for ChainSupervisor {
    type Msg = ChainMessage;
    type State = ();
    type Arguments = Kit;

    async fn pre_start(&self, me: ActorRef<ChainMessage>, mut kit: Kit) -> std::result::Result<(), ActorProcessingErr> {
        let opener = &kit.opener;
        opener.node.started_as(me.get_cell());
        let mut router = kit.router.take().ok_or("a chain supervisor starts once")?;
        let recording = kit.trace.take().map(|writer| {
            router.listen();
            let mailbox = Mailbox::new();
            let node = opener.node.child("trace", "trace");
            let seat = Seat::new(TraceStage::new(writer), mailbox.clone(), node, opener.live.clone());
            Recording { mailbox, seat }
        });
        let tap = recording.as_ref().map(|recording| Tap::new(recording.mailbox.clone()));
        let stage = TrafficStage::new(router, me, opener.traffic.clone(), tap);
        let node = opener.node.child("router", "router");
        let seat = Seat::new(stage, opener.traffic.clone(), node, opener.live.clone());
        let policy = opener.options.restart;
        let mut children = vec![Child::stage(seat, policy)];
        children.extend(recording.as_ref().map(|recording| Child::stage(recording.seat.clone(), policy)));
        let children = Children::new(children);
        let live = opener.live.enter();
        *self.guard.lock().await = Some(ChainGuard {
            kit,
            children,
            recording,
            components: Arc::default(),
            tasks: Vec::new(),
            result: None,
            _live: live,
        });
        Ok(())
    }

    async fn post_start(
        &self,
        me: ActorRef<ChainMessage>,
        _state: &mut (),
    ) -> std::result::Result<(), ActorProcessingErr> {
        if let Some(guard) = &mut *self.guard.lock().await {
            guard.children.start_all(&me.get_cell()).await?;
        }
        Ok(())
    }

    async fn handle(
        &self,
        me: ActorRef<ChainMessage>,
        message: ChainMessage,
        _state: &mut (),
    ) -> std::result::Result<(), ActorProcessingErr> {
        let mut guard = self.guard.lock().await;
        let Some(state) = &mut *guard else { return Ok(()) };
        match message {
            ChainMessage::Restart(child) => state.restart(child, &me).await,
            ChainMessage::Open(initialize) => state.open(initialize, &me),
            ChainMessage::Recreate(component, generation) => state.recreate(component, generation, &me),
            ChainMessage::Conclude(result) => state.conclude(result, &me),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<ChainMessage>,
        event: SupervisionEvent,
        _state: &mut (),
    ) -> std::result::Result<(), ActorProcessingErr> {
        // Connections below this actor report their end to the router themselves.
        if let Some(actor) = death_of(event)
            && let Some(state) = &mut *self.guard.lock().await
            && let Some(death) = state.children.died(actor)
        {
            state.death(death, &me).await;
        }
        Ok(())
    }
}

impl ChainGuard {
    async fn death(&mut self, death: Death, me: &ActorRef<ChainMessage>) {
        match death {
            Death::Restart(child, Duration::ZERO) => self.restart(child, me).await,
            Death::Restart(child, after) => self.later(after, me, ChainMessage::Restart(child)),
            Death::Ended(..) => {}
            Death::GaveUp(ROUTER) => {
                let error = Error::internal_error().data("the router of the chain died too often");
                self.conclude(Err(error), me);
            }
            Death::GaveUp(_) => self.give_recording_up(),
        }
    }

    async fn restart(&mut self, child: usize, me: &ActorRef<ChainMessage>) {
        match self.children.restart(child, &me.get_cell()).await {
            None | Some(Death::Ended(..)) => {}
            Some(Death::Restart(child, after)) => {
                self.later(after.max(Duration::from_millis(1)), me, ChainMessage::Restart(child));
            }
            Some(Death::GaveUp(ROUTER)) => {
                let error = Error::internal_error().data("the router of the chain could not be restarted");
                self.conclude(Err(error), me);
            }
            Some(Death::GaveUp(_)) => self.give_recording_up(),
        }
    }

    /// The chain goes on without its recording.
    fn give_recording_up(&mut self) {
        if let Some(recording) = self.recording.take() {
            let missing = recording.mailbox.close().len();
            tracing::error!(missing, "the trace's actor died too often: nothing more is recorded");
        }
    }

    /// Lets the recording be written to its end, while nothing else of the chain is left.
    fn finish_recording(&mut self) {
        let Some(Recording { mailbox, seat }) = self.recording.take() else { return };
        mailbox.send_last(Record::End);
        let live = self.kit.opener.live.enter();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if tokio::time::timeout(RECORDING_END, seat.wind_up()).await.is_err() {
                    tracing::warn!("the end of the trace could not be written in time");
                }
                drop(live);
            });
        }
    }

    fn open(&mut self, initialize: Frame, me: &ActorRef<ChainMessage>) {
        let Some(instantiate) = self.kit.instantiate.take() else { return };
        let (opener, components, chain) = (self.kit.opener.clone(), self.components.clone(), me.get_cell());
        self.task(async move {
            let mut components = components.lock().await;
            let outcome = match instantiate(initialize).await {
                Ok(Started(started)) => {
                    *components = started;
                    opener.open(&mut components, chain).await
                }
                Err(error) => Err(error),
            };
            let _ = opener.traffic.send(Traffic::Opened(outcome));
        });
    }

    fn recreate(&mut self, index: usize, generation: u32, me: &ActorRef<ChainMessage>) {
        let (opener, components, chain) = (self.kit.opener.clone(), self.components.clone(), me.get_cell());
        self.task(async move {
            let mut components = components.lock().await;
            let proxies = components.proxies.len();
            let component = if index < proxies { components.proxies.get_mut(index) } else { components.agent.as_mut() };
            let outcome = match component {
                Some(component) => opener.component(index, generation, component, chain).await,
                None => Err(Error::internal_error().data("there is no such component")),
            };
            let _ = opener.traffic.send(Traffic::Recreated(index, outcome));
        });
    }

    fn conclude(&mut self, result: Result<()>, me: &ActorRef<ChainMessage>) {
        self.result.get_or_insert(result);
        me.stop(None);
    }

    fn later(&mut self, after: Duration, me: &ActorRef<ChainMessage>, message: ChainMessage) {
        let target = me.clone();
        self.task(async move {
            tokio::time::sleep(after).await;
            let _ = target.cast(message);
        });
    }

    fn task(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.retain(|task| !task.is_finished());
        self.tasks.push(tokio::spawn(work));
    }
}

impl Drop for ChainGuard {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        drop(self.kit.opener.traffic.close());
        self.children.kill_all();
        self.finish_recording();
        // `ractor` kills the connections below; their places tell who they are.
        for node in self.kit.opener.node.children() {
            node.kill();
        }
        let result = self.result.take().unwrap_or_else(|| {
            Err(Error::internal_error().with_origin(Origin::Terminated).data("the chain's supervisor died"))
        });
        if let Err(error) = &result {
            tracing::debug!(chain = %self.kit.name, code = i32::from(error.code), reason = error.reason(), "the chain ended with an error");
        }
        self.kit.end.send_replace(Some(result));
    }
}
