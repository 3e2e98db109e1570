//! Putting a connection together: which actors a link needs, and how they are wired.

use std::sync::Arc;

use greenroom_protocol::handshake::Endpoint;
use greenroom_protocol::{Error, LocalError, Origin};
use parking_lot::Mutex;
use ractor::{Actor, ActorCell};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Duration;

use super::dispatch::Dispatch;
use super::driver::{Driver, FinishDriver};
use super::incoming::Incoming;
use super::last_words::LastWords;
use super::message::Wire;
use super::outgoing::{OutgoingProtocol, WireSink};
use super::pending::PendingReplies;
use super::reader::{ChannelReader, Reader, StopInput, for_link, outlet_to, stop_port};
use super::shared::Shared;
use super::supervisor::{ConnectionSupervisor, End, Kit, Seats};
use super::tasks::{TaskSet, Tasks};
use super::writer::{ChannelWriter, Writer};
use crate::connection_to::ConnectionTo;
use crate::handlers::{HandlerPort, Plans, Registry, gone};
use crate::link::{Ends, Link};
use crate::options::ConnectionOptions;
use crate::port::{EndOfInput, Inbound};
use crate::role::{Nature, Role};
use crate::runtime::{Child, Children, Mailbox, Node, Seat, Stage};
use crate::termination::ConnectionTermination;

/// What a connection is made of, beside its link.
pub(crate) struct Spec<C: Role> {
    pub(crate) name: String,
    /// The role of the peer.
    pub(crate) counterpart: C,
    pub(crate) handlers: HandlerPort<C>,
    pub(crate) plans: Plans,
    pub(crate) options: ConnectionOptions,
    /// Whether the end of the input ends the connection.
    pub(crate) auto_finish: bool,
    /// The handshake that is guarded, if any.
    pub(crate) guard: Option<Endpoint>,
    /// Whether notifications of sessions wait for a handler that is not there yet.
    pub(crate) parks: bool,
}

/// A connection that runs.
pub(crate) struct Started {
    pub(crate) shared: Arc<Shared>,
    pub(crate) supervisor: ActorCell,
    pub(crate) end: watch::Receiver<End>,
}

/// Collects the children while they are wired.
struct Assembly {
    shared: Arc<Shared>,
    node: Arc<Node>,
    children: Vec<Child>,
    options: ConnectionOptions,
}

impl Assembly {
    fn add<S: Stage>(&mut self, name: &'static str, stage: S, mailbox: Mailbox<S::Item>) -> usize {
        self.add_kind(name, name, stage, mailbox)
    }

    fn add_kind<S: Stage>(&mut self, name: &str, kind: &'static str, stage: S, mailbox: Mailbox<S::Item>) -> usize {
        let node = self.node.child(name, kind);
        let seat = Seat::new(stage, mailbox, node, self.shared.live.clone());
        self.children.push(Child::stage(seat, self.options.restart));
        self.children.len() - 1
    }

    /// A stage that waits for nothing but its mailbox: its actor ends while it has nothing to do.
    fn add_passivated<S: Stage>(&mut self, kind: &'static str, stage: S, mailbox: Mailbox<S::Item>) -> usize {
        let seat = Seat::new(stage, mailbox, self.node.child(kind, kind), self.shared.live.clone());
        self.children.push(Child::stage(seat, self.options.restart).passivated());
        self.children.len() - 1
    }
}

/// A connection that can be talked to already; what is sent waits until it is open.
pub(crate) struct Prepared<C: Role> {
    spec: Spec<C>,
    node: Arc<Node>,
    dynamic: Arc<Registry<C>>,
    shared: Unopened,
}

/// Closes the connection's shared part unless the actors were started: from then on it is theirs.
struct Unopened(Option<Arc<Shared>>);

impl Drop for Unopened {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.terminate(ConnectionTermination::Dropped);
            shared.close_all();
        }
    }
}

impl<C: Role> Prepared<C> {
    pub(crate) fn new(spec: Spec<C>) -> Self {
        let id = Shared::next_connection();
        let node = Node::root(format!("connection-{id}"), "connection");
        let dynamic = Arc::new(Registry::<C>::default());
        let shared = Shared::new(spec.name.clone(), node.clone(), id, &spec.options, spec.guard, dynamic.clone());
        Self { spec, node, dynamic, shared: Unopened(Some(shared)) }
    }

    /// The handle that application code uses. `None` never happens: only opening takes the part.
    pub(crate) fn connection(&self) -> Option<ConnectionTo<C>> {
        let shared = self.shared.0.clone()?;
        Some(ConnectionTo::new(shared, self.spec.counterpart.clone()))
    }

    /// Opens the link and starts the tree of the connection, below `supervisor` or below nobody.
    pub(crate) async fn open(mut self, link: Link, supervisor: Option<ActorCell>) -> Result<Started, Error> {
        match link.open().await {
            Ok(link) => start(link, self, supervisor).await,
            Err(error) => {
                if let Some(shared) = &self.shared.0 {
                    shared.terminate(ConnectionTermination::TransportError(error.clone()));
                }
                self.shared.0.take().inspect(|shared| shared.close_all());
                Err(error)
            }
        }
    }
}

/// Starts the tree of a connection whose link is open.
async fn start<C: Role>(link: Link, prepared: Prepared<C>, supervisor: Option<ActorCell>) -> Result<Started, Error> {
    let Prepared { spec, node, dynamic, shared: mut unopened } = prepared;
    let auto_finish = spec.auto_finish;
    let two_peers = spec.counterpart.nature() == Nature::Conductor;
    let Some(shared) = unopened.0.clone() else { return Err(gone()) };
    let max_frame = link.max_frame();
    let options = spec.options;
    let mut assembly = Assembly { shared: shared.clone(), node: node.clone(), children: Vec::new(), options };
    let incoming: Mailbox<Inbound>;
    let mut seats = Seats::default();
    let sink: WireSink;
    let on_end: Box<dyn Fn() + Send + Sync>;
    // A byte stream ends by itself.
    let mut stop_input: StopInput = Box::new(|| {});
    let credit = shared.in_credit.clone();
    match link.ends {
        Ends::Bytes { reader, writer } => {
            incoming = Mailbox::new();
            let wire = Mailbox::new();
            let outlet = for_link(link.batches, outlet_to(incoming.clone()));
            let reader = Reader::new(reader, max_frame, link.tap.clone(), link.exit, credit, outlet);
            assembly.add("reader", reader, Mailbox::new());
            seats.writer = Some(assembly.add("writer", Writer::new(writer, link.tap), wire.clone()));
            on_end = closing(incoming.clone(), wire.clone());
            sink = WireSink::Writer(wire);
        }
        Ends::Channel(channel) => {
            incoming = Mailbox::new();
            let wire = Mailbox::new();
            let (reader, far) = ChannelReader::new(channel, for_link(link.batches, outlet_to(incoming.clone())));
            stop_input = reader.stopper();
            assembly.add("reader", reader, Mailbox::new());
            seats.writer = Some(assembly.add("writer", ChannelWriter::new(far), wire.clone()));
            on_end = closing(incoming.clone(), wire.clone());
            sink = WireSink::Writer(wire);
        }
        Ends::Port(port) => {
            incoming = port.incoming;
            stop_input = stop_port(&incoming);
            let (ours, theirs) = (incoming.clone(), port.outgoing.clone());
            on_end = Box::new(move || {
                // However we end, the other tree must hear it; what it sends goes nowhere.
                let _ = theirs.send(Inbound::Eof(EndOfInput::default()));
                drop(ours.close());
            });
            sink = WireSink::Port(port.outgoing);
        }
        // `Link::open` returned: it is open.
        Ends::Opening(_) => return Err(Error::internal_error().data("the link did not open")),
    }
    assembly.add_passivated("incoming", Incoming::new(shared.clone(), two_peers, options.batches), incoming.clone());
    let dispatch = Dispatch::new(shared.clone(), spec, dynamic);
    assembly.add_passivated("dispatch", dispatch, shared.steps.clone());
    seats.outgoing =
        assembly.add_passivated("outgoing", OutgoingProtocol::new(shared.clone(), sink), shared.outgoing.clone());
    let pending = Mailbox::new();
    assembly.add_passivated("pending", PendingReplies::new(shared.clone()), pending.clone());
    let tasks: TaskSet = Arc::new(Mutex::new(JoinSet::new()));
    assembly.add_passivated(
        "tasks",
        Tasks::new(shared.clone(), tasks.clone(), options.end_on_failure),
        shared.tasks.clone(),
    );
    let finish_driver: Arc<FinishDriver> = Arc::default();
    if let Some(driver) = link.driver {
        let kind = link.driver_kind;
        seats.driver = Some(assembly.add_kind(kind, kind, Driver::new(driver, finish_driver.clone()), Mailbox::new()));
    }
    count_in_flight(&node, &shared);

    let end = watch::Sender::new(None);
    let ended = end.subscribe();
    let kit = Kit {
        shared: shared.clone(),
        children: Children::new(assembly.children),
        seats,
        restart: options.restart,
        // Without any pause the supervisor would never rest.
        passivate_after: options.passivate_after.max(Duration::from_micros(1)),
        tasks,
        pending,
        finish_driver,
        stop_input,
        last_words: LastWords::new(shared.in_credit.clone()),
        on_end,
        end,
        auto_finish,
    };
    let spawned = match supervisor {
        Some(supervisor) => Actor::spawn_linked(None, ConnectionSupervisor::default(), kit, supervisor).await,
        None => Actor::spawn(None, ConnectionSupervisor::default(), kit).await,
    };
    let (actor, _join) = spawned.map_err(not_started)?;
    unopened.0 = None;
    Ok(Started { shared, supervisor: actor.get_cell(), end: ended })
}

/// Why the tree of a connection did not come up.
pub(super) fn not_started(failure: ractor::SpawnErr) -> Error {
    // As text: not every build of ractor lets the failure itself cross threads.
    LocalError::new(Origin::Transport, format!("the connection did not start: {failure}")).into()
}

/// Empties what handles to the connection would keep in memory after its end.
fn closing(incoming: Mailbox<Inbound>, wire: Mailbox<Wire>) -> Box<dyn Fn() + Send + Sync> {
    Box::new(move || drop((incoming.close(), wire.close())))
}

fn count_in_flight(node: &Arc<Node>, shared: &Arc<Shared>) {
    // Weak: the tree must not keep the connection's parts alive.
    for child in node.children() {
        let shared = Arc::downgrade(shared);
        match child.kind() {
            "pending" => {
                child.count_in_flight(move || shared.upgrade().map_or(0, |shared| shared.pending.lock().len()))
            }
            "dispatch" => {
                child.count_in_flight(move || shared.upgrade().map_or(0, |shared| shared.open_calls()));
            }
            _ => {}
        }
    }
}

/// How long accepted requests may take after the end of the input, unless configured.
pub(crate) const DRAIN: Duration = Duration::from_secs(5);
