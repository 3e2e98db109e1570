//! The supervisor of one server: the listener, if the server has one, and every ACP connection.
//!
//! Owns: the guard that ends everything below, however this actor dies. Supervised by: nobody; the
//! handles of the server end it. Children, and what their death means: the listener is restarted,
//! with its sockets; a connection's death is its own.
//! It starts with the first request or listener, because a server can be built outside of a
//! runtime.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt as _;
use greenroom_actors::link::Link;
use greenroom_actors::runtime::{Child, Children, Death, Live, LiveCount, Node, RestartPolicy, Seat, death_of};
use greenroom_actors::{Client, ConnectTo as _, DynConnectTo};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::{Mutex, OnceCell, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Duration;

use super::answer::Refusal;
use super::connection::{Connection, Shape};
use super::listener::ListenerStage;
use super::options::ServerOptions;
use super::registry::Registry;
use super::supervisor::{ConnectionMessage, ConnectionSupervisor, Kit};

/// Makes an agent for each connection.
pub(super) type Factory = Arc<dyn Fn() -> DynConnectTo<Client> + Send + Sync>;

/// What all requests to one server share.
pub(super) struct Root {
    pub(super) options: Arc<ServerOptions>,
    pub(super) registry: Arc<Registry>,
    pub(super) node: Arc<Node>,
    pub(super) live: LiveCount,
    factory: Factory,
    actor: OnceCell<ActorRef<RootMessage>>,
    next: AtomicU64,
}

impl Root {
    pub(super) fn new(factory: Factory, options: ServerOptions) -> Self {
        Self {
            options: Arc::new(options),
            registry: Arc::default(),
            node: Node::root("http-server", "http-server"),
            live: LiveCount::new(),
            factory,
            actor: OnceCell::new(),
            next: AtomicU64::new(1),
        }
    }

    /// The supervisor, started if it does not run yet.
    pub(super) async fn actor(&self, parent: Option<ActorCell>) -> Result<&ActorRef<RootMessage>, Refusal> {
        let start = async {
            let kit = RootKit { node: self.node.clone(), live: self.live.clone(), restart: self.options.restart };
            match parent {
                Some(parent) => Actor::spawn_linked(None, RootSupervisor::default(), kit, parent).await,
                None => Actor::spawn(None, RootSupervisor::default(), kit).await,
            }
        };
        let actor = self.actor.get_or_try_init(|| async { start.await.map(|(actor, _join)| actor) }).await;
        actor.map_err(|_| Refusal::text(500, "the server did not start"))
    }

    /// Opens a connection: a new agent, below the actor of a new connection.
    pub(super) async fn open(&self, shape: Shape) -> Result<(Arc<Connection>, ActorRef<ConnectionMessage>), Refusal> {
        let actor = self.actor(None).await?.get_cell();
        let (link, from_agent, to_agent) = Link::mailboxes();
        let connection = Arc::new(Connection::new(shape, self.options.clone(), to_agent));
        // Before the agent is made, so that nobody makes agents without number.
        self.registry.insert(&connection)?;
        let agent = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (self.factory)()));
        let Ok(agent) = agent else {
            self.registry.remove(&connection.id);
            return Err(Refusal::text(500, "the agent could not be made"));
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let node = self.node.child(&format!("connection-{number}"), "http-connection");
        let kit = Kit {
            connection: connection.clone(),
            registry: self.registry.clone(),
            agent: agent.connect_to(link).boxed(),
            from_agent,
            node: node.clone(),
            server: self.node.clone(),
            live: self.live.clone(),
        };
        match Actor::spawn_linked(None, ConnectionSupervisor::default(), kit, actor).await {
            Ok((supervisor, _join)) => Ok((connection, supervisor)),
            Err(_) => {
                self.node.disown(&node);
                self.registry.remove(&connection.id);
                Err(Refusal::text(500, "the connection did not start"))
            }
        }
    }

    /// Kills everything.
    pub(super) fn kill(&self) {
        if let Some(actor) = self.actor.get() {
            actor.kill();
        }
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        self.kill();
    }
}

struct RootKit {
    node: Arc<Node>,
    live: LiveCount,
    restart: RestartPolicy,
}

/// What the supervisor is told.
pub(super) enum RootMessage {
    /// Serve these sockets; say when that begins, and when it ends.
    Listen(Box<ListenerStage>, oneshot::Sender<()>, watch::Sender<bool>),
    /// The back-off of a child is over.
    Restart(usize),
}

#[cfg(feature = "cluster")]
impl ractor::Message for RootMessage {}

/// Owns the guard, which is no state: see the supervisor of a connection.
#[derive(Default)]
struct RootSupervisor {
    /// Never contended: an actor does one thing at a time.
    guard: Mutex<Option<RootGuard>>,
}

struct RootGuard {
    kit: RootKit,
    children: Children,
    stopped: Option<watch::Sender<bool>>,
    timers: Vec<JoinHandle<()>>,
    _live: Live,
}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for RootSupervisor {
    type Msg = RootMessage;
    type State = ();
    type Arguments = RootKit;

    async fn pre_start(&self, me: ActorRef<RootMessage>, kit: RootKit) -> Result<(), ActorProcessingErr> {
        kit.node.started_as(me.get_cell());
        let live = kit.live.enter();
        let children = Children::new(Vec::new());
        *self.guard.lock().await = Some(RootGuard { kit, children, stopped: None, timers: Vec::new(), _live: live });
        Ok(())
    }

    async fn handle(
        &self,
        me: ActorRef<RootMessage>,
        message: RootMessage,
        _state: &mut (),
    ) -> Result<(), ActorProcessingErr> {
        let mut guard = self.guard.lock().await;
        let Some(state) = &mut *guard else { return Ok(()) };
        match message {
            RootMessage::Listen(stage, begun, stopped) => {
                state.listen(*stage, stopped, &me).await;
                let _ = begun.send(());
            }
            RootMessage::Restart(child) => state.restart(child, &me).await,
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<RootMessage>,
        event: SupervisionEvent,
        _state: &mut (),
    ) -> Result<(), ActorProcessingErr> {
        // Connections clean up by themselves.
        if let Some(actor) = death_of(event)
            && let Some(state) = &mut *self.guard.lock().await
            && let Some(death) = state.children.died(actor)
        {
            state.death(death, &me).await;
        }
        Ok(())
    }
}

impl RootGuard {
    async fn listen(&mut self, stage: ListenerStage, stopped: watch::Sender<bool>, me: &ActorRef<RootMessage>) {
        let node = self.kit.node.child("listener", "listener");
        let seat = Seat::new(stage, greenroom_actors::runtime::Mailbox::new(), node, self.kit.live.clone());
        self.stopped = Some(stopped);
        if self.children.start(Child::stage(seat, self.kit.restart), &me.get_cell()).await.is_err() {
            self.over();
        }
    }

    async fn death(&mut self, death: Death, me: &ActorRef<RootMessage>) {
        match death {
            Death::Restart(child, Duration::ZERO) => self.restart(child, me).await,
            Death::Restart(child, after) => self.later(after, me, child),
            Death::Ended(..) | Death::GaveUp(_) => self.over(),
        }
    }

    async fn restart(&mut self, child: usize, me: &ActorRef<RootMessage>) {
        match self.children.restart(child, &me.get_cell()).await {
            None => {}
            Some(Death::Restart(child, after)) => self.later(after.max(Duration::from_millis(1)), me, child),
            Some(Death::Ended(..) | Death::GaveUp(_)) => self.over(),
        }
    }

    fn later(&mut self, after: Duration, me: &ActorRef<RootMessage>, child: usize) {
        let target = me.clone();
        self.timers.retain(|timer| !timer.is_finished());
        self.timers.push(tokio::spawn(async move {
            tokio::time::sleep(after).await;
            let _ = target.cast(RootMessage::Restart(child));
        }));
    }

    /// The listener is no more.
    fn over(&mut self) {
        if let Some(stopped) = &self.stopped {
            stopped.send_replace(true);
        }
    }
}

impl Drop for RootGuard {
    fn drop(&mut self) {
        for timer in &self.timers {
            timer.abort();
        }
        self.children.kill_all();
        // `ractor` kills the connections below, unless they are ending already.
        for node in self.kit.node.children() {
            node.kill();
        }
        self.over();
    }
}
