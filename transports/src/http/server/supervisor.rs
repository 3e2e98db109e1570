//! The supervisor of one ACP connection.
//!
//! Owns: the agent's seat, the router's, those of all streams or of the WebSocket, and the guard
//! that cleans up however this actor dies. Supervised by: the server.
//! Children, and what their death means: each is restarted, nothing lost; one that dies too often
//! ends the connection. The end of the agent ends the connection behind what it said last; the end
//! of a WebSocket ends its connection; the end of an SSE stream's socket ends nothing.
//! It never waits for the agent, a socket or a client: whatever takes time is a task that reports
//! back.

use std::sync::Arc;

use greenroom_actors::runtime::{Child, Children, Death, Live, LiveCount, Mailbox, Node, Outcome, Seat, death_of};
use greenroom_actors::{BoxFuture, EndOfInput, Inbound};
use greenroom_protocol::{Error, Result};
use hyper::upgrade::OnUpgrade;
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant};

use super::agent::{AgentStage, RouterStage};
use super::connection::{Connection, Shape};
use super::registry::Registry;
use super::stream::{Stream, StreamStage};
use super::websocket::{Socket, WebSocketStage, upgrade};

/// Everything about a connection before it runs.
pub(super) struct Kit {
    pub(super) connection: Arc<Connection>,
    pub(super) registry: Arc<Registry>,
    pub(super) agent: BoxFuture<'static, Result<()>>,
    pub(super) from_agent: Mailbox<Inbound>,
    pub(super) node: Arc<Node>,
    pub(super) server: Arc<Node>,
    pub(super) live: LiveCount,
}

/// What the supervisor is told.
pub(super) enum ConnectionMessage {
    /// The back-off of a child is over.
    Restart(usize),
    /// A stream needs its actor.
    AddStream(Arc<Stream>),
    /// A client asked for a WebSocket.
    Upgrade(OnUpgrade),
    /// The WebSocket is up.
    Attach(Box<Socket>),
    /// The agent said its last word; clients may fetch what is queued.
    AgentEnded,
    /// End now: there is nobody to wait for.
    Abort,
    /// End now, for this reason; the streams say it.
    Fail(&'static str),
}

#[cfg(feature = "cluster")]
impl ractor::Message for ConnectionMessage {}

/// Owns the guard. `ractor` sends an actor's state to its supervisor inside of the event that tells
/// its death; the guard must not depend on when that is looked at. So it is no state: it is dropped
/// with the actor itself.
#[derive(Default)]
pub(super) struct ConnectionSupervisor {
    /// Never contended: an actor does one thing at a time.
    guard: Mutex<Option<Guard>>,
}

/// Its `Drop` is the only cleanup.
struct Guard {
    connection: Arc<Connection>,
    registry: Arc<Registry>,
    children: Children,
    from_agent: Mailbox<Inbound>,
    agent: usize,
    socket: Option<usize>,
    node: Arc<Node>,
    server: Arc<Node>,
    live: LiveCount,
    tasks: Vec<JoinHandle<()>>,
    _live: Live,
}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for ConnectionSupervisor {
    type Msg = ConnectionMessage;
    type State = ();
    type Arguments = Kit;

    async fn pre_start(
        &self,
        me: ActorRef<ConnectionMessage>,
        kit: Kit,
    ) -> std::result::Result<(), ActorProcessingErr> {
        let Kit { connection, registry, agent, from_agent, node, server, live } = kit;
        node.started_as(me.get_cell());
        connection.supervised_by(me);
        let counted = live.enter();
        let mut guard = Guard {
            connection: connection.clone(),
            registry,
            children: Children::new(Vec::new()),
            from_agent: from_agent.clone(),
            agent: 0,
            socket: None,
            node: node.clone(),
            server,
            live: live.clone(),
            tasks: Vec::new(),
            _live: counted,
        };
        let mut first = Vec::new();
        let seat = Seat::new(AgentStage::new(agent), Mailbox::new(), node.child("agent", "agent"), live.clone());
        let restart = connection.options.restart;
        first.push(Child::stage(seat, restart));
        if connection.shape == Shape::Http {
            let router = RouterStage::new(connection.clone());
            let seat = Seat::new(router, from_agent, node.child("router", "router"), live);
            first.push(Child::stage(seat, restart));
            first.push(guard.stream_child(&connection.connection_stream()));
        }
        guard.children = Children::new(first);
        *self.guard.lock().await = Some(guard);
        Ok(())
    }

    async fn post_start(
        &self,
        me: ActorRef<ConnectionMessage>,
        _state: &mut (),
    ) -> std::result::Result<(), ActorProcessingErr> {
        if let Some(guard) = &mut *self.guard.lock().await {
            guard.children.start_all(&me.get_cell()).await?;
            if guard.connection.shape == Shape::Http {
                guard.watch_idleness(&me);
            }
        }
        Ok(())
    }

    async fn handle(
        &self,
        me: ActorRef<ConnectionMessage>,
        message: ConnectionMessage,
        _state: &mut (),
    ) -> std::result::Result<(), ActorProcessingErr> {
        let mut guard = self.guard.lock().await;
        let Some(state) = &mut *guard else { return Ok(()) };
        // Boxed, because it happens rarely and an actor keeps room for its largest future.
        Box::pin(state.told(message, &me)).await;
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<ConnectionMessage>,
        event: SupervisionEvent,
        _state: &mut (),
    ) -> std::result::Result<(), ActorProcessingErr> {
        if let Some(actor) = death_of(event)
            && let Some(state) = &mut *self.guard.lock().await
            && let Some(death) = state.children.died(actor)
        {
            Box::pin(state.death(death, &me)).await;
        }
        Ok(())
    }
}

impl Guard {
    async fn told(&mut self, message: ConnectionMessage, me: &ActorRef<ConnectionMessage>) {
        match message {
            ConnectionMessage::Restart(child) => self.restart(child, me).await,
            ConnectionMessage::AddStream(stream) => self.add_stream(&stream, me).await,
            ConnectionMessage::Upgrade(socket) => self.upgrade(socket, me),
            ConnectionMessage::Attach(socket) => self.attach(*socket, me).await,
            ConnectionMessage::AgentEnded => self.linger(me),
            ConnectionMessage::Abort => me.stop(None),
            ConnectionMessage::Fail(reason) => self.fail(reason, me),
        }
    }

    fn stream_child(&self, stream: &Arc<Stream>) -> Child {
        let limits = &self.connection.options.limits;
        // No session ids in the tree: they are the application's.
        let name = if stream.session.is_some() { "session" } else { "stream" };
        let stage = StreamStage::new(stream.clone(), self.connection.clone(), limits.keep_alive);
        let node = self.node.child(name, "sse-stream");
        let seat = Seat::new(stage, stream.mailbox.clone(), node, self.live.clone());
        Child::stage(seat, self.connection.options.restart)
    }

    async fn add_stream(&mut self, stream: &Arc<Stream>, me: &ActorRef<ConnectionMessage>) {
        let child = self.stream_child(stream);
        if self.children.start(child, &me.get_cell()).await.is_err() {
            self.fail("a stream could not be started", me);
        }
    }

    fn upgrade(&mut self, socket: OnUpgrade, me: &ActorRef<ConnectionMessage>) {
        let (target, limits) = (me.clone(), self.connection.options.limits.clone());
        self.task(async move {
            let socket = tokio::time::timeout(limits.upgrade_deadline, upgrade(socket, &limits)).await;
            let _ = target.cast(match socket {
                Ok(Some(socket)) => ConnectionMessage::Attach(Box::new(socket)),
                Ok(None) | Err(_) => ConnectionMessage::Abort,
            });
        });
    }

    async fn attach(&mut self, socket: Socket, me: &ActorRef<ConnectionMessage>) {
        let stage = WebSocketStage::new(socket, self.connection.clone());
        let node = self.node.child("websocket", "websocket");
        let seat = Seat::new(stage, self.from_agent.clone(), node, self.live.clone());
        let child = Child::stage(seat, self.connection.options.restart);
        match self.children.start(child, &me.get_cell()).await {
            Ok(child) => {
                self.socket = Some(child);
                // The upgrade is done; its task would keep its memory as long as its handle.
                self.tasks = Vec::new();
            }
            Err(_) => me.stop(None),
        }
    }

    async fn death(&mut self, death: Death, me: &ActorRef<ConnectionMessage>) {
        match death {
            Death::Restart(child, Duration::ZERO) => self.restart(child, me).await,
            Death::Restart(child, after) => self.later(after, me, ConnectionMessage::Restart(child)),
            Death::Ended(child, outcome) => self.ended(child, outcome, me),
            Death::GaveUp(child) => self.gave_up(child, "an actor of the connection died too often", me),
        }
    }

    async fn restart(&mut self, child: usize, me: &ActorRef<ConnectionMessage>) {
        match self.children.restart(child, &me.get_cell()).await {
            None => {}
            Some(Death::Ended(child, outcome)) => self.ended(child, outcome, me),
            Some(Death::Restart(child, after)) => {
                self.later(after.max(Duration::from_millis(1)), me, ConnectionMessage::Restart(child));
            }
            Some(Death::GaveUp(child)) => self.gave_up(child, "an actor of the connection could not be restarted", me),
        }
    }

    fn ended(&mut self, child: usize, outcome: Outcome, me: &ActorRef<ConnectionMessage>) {
        if self.socket == Some(child) {
            return me.stop(None);
        }
        if child == self.agent {
            let error = match outcome {
                Outcome::Finished => None,
                Outcome::Failed(error) => {
                    tracing::debug!(code = i32::from(error.code), "the agent of an HTTP connection failed");
                    Some(error)
                }
            };
            // Behind what it said last. Most agents have sent an end of their own.
            let _ = self.from_agent.send(Inbound::Eof(EndOfInput { error, exit: None }));
            return;
        }
        if let Some(node) = self.children.remove(child) {
            self.node.disown(&node);
        }
    }

    /// Gives clients a while to fetch what is queued, then ends.
    fn linger(&mut self, me: &ActorRef<ConnectionMessage>) {
        let (target, connection) = (me.clone(), self.connection.clone());
        let deadline = Instant::now() + connection.options.limits.linger;
        self.task(async move {
            let drained = async {
                // A WebSocket ends its connection itself, behind its close.
                if connection.shape == Shape::WebSocket {
                    std::future::pending::<()>().await;
                }
                while !connection.is_drained() {
                    connection.drained.notified().await;
                }
            };
            let _ = tokio::time::timeout_at(deadline, drained).await;
            let _ = target.cast(ConnectionMessage::Abort);
        });
    }

    fn gave_up(&mut self, child: usize, reason: &'static str, me: &ActorRef<ConnectionMessage>) {
        if self.socket == Some(child) {
            // Nobody is left who could say so.
            return me.stop(None);
        }
        self.fail(reason, me);
    }

    fn fail(&mut self, reason: &'static str, me: &ActorRef<ConnectionMessage>) {
        self.connection.end_input(Some(Error::internal_error().data(reason)));
        self.connection.end_streams(reason);
        if self.connection.shape == Shape::WebSocket {
            // As a stream, it ends behind everything that was said.
            let _ = self.from_agent.send(Inbound::Eof(EndOfInput { error: None, exit: None }));
        }
        self.registry.remove(&self.connection.id);
        self.linger(me);
    }

    /// Ends the connection when nobody has listened or asked for too long.
    fn watch_idleness(&mut self, me: &ActorRef<ConnectionMessage>) {
        let (target, connection) = (me.clone(), self.connection.clone());
        let idle = connection.options.limits.idle;
        self.task(async move {
            loop {
                let since = connection.idle_since().unwrap_or_else(Instant::now);
                let end = since + idle;
                if end <= Instant::now() {
                    break;
                }
                tokio::time::sleep_until(end).await;
            }
            tracing::debug!("an idle HTTP connection expired");
            let _ = target.cast(ConnectionMessage::Abort);
        });
    }

    fn later(&mut self, after: Duration, me: &ActorRef<ConnectionMessage>, message: ConnectionMessage) {
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

impl Drop for Guard {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        self.children.kill_all();
        self.connection.close();
        drop(self.from_agent.close());
        self.server.disown(&self.node);
        self.registry.remove(&self.connection.id);
    }
}
