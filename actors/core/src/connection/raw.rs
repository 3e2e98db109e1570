//! A connection without protocol: frames out of a link into an outlet, messages into a link.
//! Relays are made of these; the conductor hangs one below each of its components.
//!
//! Owns: reader, writer and driver of one link, and the guard that cleans up however it dies.
//! Supervised by: the relay that started it. When it dies: the link is over.

use std::fmt;
use std::sync::Arc;

use greenroom_protocol::{Error, Origin, Outbound};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Duration;

use super::driver::{Driver, FinishDriver};
use super::last_words::{GRACE, LastWords};
use super::message::Wire;
use super::outgoing::WireSink;
use super::reader::{ChannelReader, Outlet, PortReader, Reader, StopInput, for_link, stop_port};
use super::start::not_started;
use super::writer::{ChannelWriter, Writer};
use crate::link::{Ends, Link};
use crate::options::ConnectionOptions;
use crate::port::{EndOfInput, Inbound};
use crate::runtime::{
    Child, Children, Credit, Death, Live, LiveCount, Mailbox, Node, Outcome, Permit, Seat, Stage, death_of,
};

/// Called exactly once, at the end of a raw connection, with how it ended.
pub type OnEnd = Box<dyn FnOnce(Result<(), Error>) + Send + Sync>;

/// A handle to a raw connection: frames in, messages out, no protocol. Clones reach the same one;
/// dropping them changes nothing.
///
/// Reader, writer and driver are restarted like those of a protocol connection. Nothing is answered
/// here: what a dead link owes is for the owner of the outlet to say.
#[derive(Clone)]
pub struct RawConnection {
    sink: WireSink,
    actor: ActorRef<RawMessage>,
    driven: bool,
}

impl RawConnection {
    /// Opens the link and starts its actors below `supervisor`; `node` is their place in the tree.
    /// Frames go to `outlet`, in order, the end of the input last.
    ///
    /// # Errors
    /// When the link does not open or the actors do not start; then `on_end` is not called.
    pub async fn start(
        link: Link,
        outlet: Outlet,
        on_end: OnEnd,
        node: Arc<Node>,
        live: LiveCount,
        options: &ConnectionOptions,
        supervisor: Option<ActorCell>,
    ) -> Result<Self, Error> {
        let link = link.open().await?;
        let max_frame = link.max_frame();
        let outlet = for_link(link.batches, outlet);
        let mut assembly = Assembly { node: node.clone(), live: live.clone(), children: Vec::new(), options };
        let mut seats = RawSeats::default();
        let mut closing: Box<dyn Fn() + Send + Sync> = Box::new(|| {});
        // A byte stream ends by itself.
        let mut stop_input: StopInput = Box::new(|| {});
        let credit = Credit::new(options.incoming_credit);
        let sink = match link.ends {
            Ends::Bytes { reader, writer } => {
                let reader = Reader::new(reader, max_frame, link.tap.clone(), link.exit, credit.clone(), outlet);
                seats.reader = assembly.add("reader", reader, Mailbox::new());
                let wire = Mailbox::new();
                seats.writer = Some(assembly.add("writer", Writer::new(writer, link.tap), wire.clone()));
                WireSink::Writer(wire)
            }
            Ends::Channel(channel) => {
                let (reader, far) = ChannelReader::new(channel, outlet);
                stop_input = reader.stopper();
                seats.reader = assembly.add("reader", reader, Mailbox::new());
                let wire = Mailbox::new();
                seats.writer = Some(assembly.add("writer", ChannelWriter::new(far), wire.clone()));
                WireSink::Writer(wire)
            }
            Ends::Port(port) => {
                seats.reader = assembly.add("reader", PortReader::new(outlet), port.incoming.clone());
                stop_input = stop_port(&port.incoming);
                let (ours, theirs) = (port.incoming, port.outgoing.clone());
                closing = Box::new(move || {
                    let _ = theirs.send(Inbound::Eof(EndOfInput::default()));
                    drop(ours.close());
                });
                WireSink::Port(port.outgoing)
            }
            Ends::Opening(_) => return Err(Error::internal_error().data("the link did not open")),
        };
        let finish_driver: Arc<FinishDriver> = Arc::default();
        if let Some(driver) = link.driver {
            let stage = Driver::new(driver, finish_driver.clone());
            seats.driver = Some(assembly.add(link.driver_kind, stage, Mailbox::new()));
        }
        let driven = seats.driver.is_some();
        let kit = RawKit {
            children: Children::new(assembly.children),
            seats,
            sink: sink.clone(),
            finish_driver,
            stop_input,
            last_words: LastWords::new(credit),
            closing,
            on_end: Some(on_end),
            node,
            live,
        };
        let spawned = match supervisor {
            Some(supervisor) => Actor::spawn_linked(None, RawSupervisor::default(), kit, supervisor).await,
            None => Actor::spawn(None, RawSupervisor::default(), kit).await,
        };
        let (actor, _join) = spawned.map_err(not_started)?;
        Ok(Self { sink, actor, driven })
    }

    /// Queues a message behind everything sent before. Never blocks; after the end it goes nowhere.
    /// `permit` is held until the message is written.
    pub fn send(&self, message: Outbound, permit: Option<Permit>) {
        self.sink.message(message, permit);
    }

    /// Closes the outgoing half behind everything that was sent. The connection ends when that is
    /// written and the driver, if there is one, has ended.
    pub fn close(&self) {
        let _ = self.actor.cast(RawMessage::Close);
    }

    /// Whether a driver stands behind the link, whose end is the end of the far side.
    pub(crate) fn is_driven(&self) -> bool {
        self.driven
    }

    /// Closes the outgoing half behind everything that was sent, and goes on reading. The connection
    /// ends when its driver has; without a driver, when both directions have ended.
    pub(crate) fn half_close(&self) {
        let _ = self.actor.cast(RawMessage::HalfClose);
    }

    /// Takes nothing more than what the far side has sent by now, where that can be told: for byte
    /// streams it cannot.
    pub(crate) fn stop_input(&self) {
        let _ = self.actor.cast(RawMessage::StopInput);
    }

    /// Ends the connection at once.
    pub fn kill(&self) {
        self.actor.kill();
    }

    /// The actor that supervises the connection.
    #[must_use]
    pub fn actor(&self) -> ActorCell {
        self.actor.get_cell()
    }
}

impl fmt::Debug for RawConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawConnection").finish_non_exhaustive()
    }
}

/// Collects the children while they are wired.
struct Assembly<'a> {
    node: Arc<Node>,
    live: LiveCount,
    children: Vec<Child>,
    options: &'a ConnectionOptions,
}

impl Assembly<'_> {
    fn add<S: Stage>(&mut self, kind: &'static str, stage: S, mailbox: Mailbox<S::Item>) -> usize {
        let node = self.node.child(kind, kind);
        let seat = Seat::new(stage, mailbox, node, self.live.clone());
        self.children.push(Child::stage(seat, self.options.restart));
        self.children.len() - 1
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct RawSeats {
    reader: usize,
    writer: Option<usize>,
    driver: Option<usize>,
}

struct RawKit {
    children: Children,
    seats: RawSeats,
    sink: WireSink,
    finish_driver: Arc<FinishDriver>,
    stop_input: StopInput,
    last_words: LastWords,
    closing: Box<dyn Fn() + Send + Sync>,
    on_end: Option<OnEnd>,
    node: Arc<Node>,
    live: LiveCount,
}

/// What the supervisor is told.
#[derive(Debug)]
pub(crate) enum RawMessage {
    Restart(usize),
    Close,
    HalfClose,
    StopInput,
    GraceOver,
}

#[cfg(feature = "cluster")]
impl ractor::Message for RawMessage {}

/// Owns the guard. `ractor` sends an actor's state to its supervisor inside of the event that tells
/// its death; the guard must not depend on when that supervisor, which may be any actor of the
/// embedding program, looks at the event. So it is no state: it is dropped with the actor itself.
#[derive(Default)]
struct RawSupervisor {
    /// Never contended: an actor does one thing at a time.
    guard: Mutex<Option<RawGuard>>,
}

struct RawGuard {
    kit: RawKit,
    timers: Vec<JoinHandle<()>>,
    result: Option<Result<(), Error>>,
    input_ended: bool,
    sealing: bool,
    sealed: bool,
    closing: bool,
    driver_ended: bool,
    broken: Option<Error>,
    _live: Live,
}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for RawSupervisor {
    type Msg = RawMessage;
    type State = ();
    type Arguments = RawKit;

    async fn pre_start(&self, me: ActorRef<RawMessage>, kit: RawKit) -> Result<(), ActorProcessingErr> {
        kit.node.started_as(me.get_cell());
        let live = kit.live.enter();
        *self.guard.lock().await = Some(RawGuard {
            kit,
            timers: Vec::new(),
            result: None,
            input_ended: false,
            sealing: false,
            sealed: false,
            closing: false,
            driver_ended: false,
            broken: None,
            _live: live,
        });
        Ok(())
    }

    async fn post_start(&self, me: ActorRef<RawMessage>, _state: &mut ()) -> Result<(), ActorProcessingErr> {
        if let Some(guard) = &mut *self.guard.lock().await {
            guard.kit.children.start_all(&me.get_cell()).await?;
        }
        Ok(())
    }

    async fn handle(
        &self,
        me: ActorRef<RawMessage>,
        message: RawMessage,
        _state: &mut (),
    ) -> Result<(), ActorProcessingErr> {
        let mut guard = self.guard.lock().await;
        let Some(state) = &mut *guard else { return Ok(()) };
        match message {
            RawMessage::Restart(child) => state.restart(child, &me).await,
            RawMessage::Close => state.close(&me),
            RawMessage::HalfClose => state.seal(&me),
            RawMessage::StopInput => (state.kit.stop_input)(),
            RawMessage::GraceOver if !state.input_ended && state.kit.last_words.still_come() => {
                state.later(GRACE, &me, RawMessage::GraceOver);
            }
            RawMessage::GraceOver => state.conclude(&me),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<RawMessage>,
        event: SupervisionEvent,
        _state: &mut (),
    ) -> Result<(), ActorProcessingErr> {
        if let Some(actor) = death_of(event)
            && let Some(state) = &mut *self.guard.lock().await
            && let Some(death) = state.kit.children.died(actor)
        {
            state.death(death, &me).await;
        }
        Ok(())
    }
}

impl RawGuard {
    async fn death(&mut self, death: Death, me: &ActorRef<RawMessage>) {
        match death {
            Death::Restart(child, Duration::ZERO) => self.restart(child, me).await,
            Death::Restart(child, after) => self.later(after, me, RawMessage::Restart(child)),
            Death::Ended(child, outcome) => self.ended(child, outcome, me),
            Death::GaveUp(child) => self.gave_up(child, me),
        }
    }

    async fn restart(&mut self, child: usize, me: &ActorRef<RawMessage>) {
        match self.kit.children.restart(child, &me.get_cell()).await {
            None => {}
            Some(Death::Restart(child, after)) => {
                self.later(after.max(Duration::from_millis(1)), me, RawMessage::Restart(child));
            }
            Some(Death::Ended(child, outcome)) => self.ended(child, outcome, me),
            Some(Death::GaveUp(child)) => self.gave_up(child, me),
        }
    }

    fn gave_up(&mut self, child: usize, me: &ActorRef<RawMessage>) {
        self.broken = Some(Error::internal_error().with_origin(Origin::Transport).data(serde_json::json!({
            "reason": "an actor of the connection died too often",
            "actor": self.kit.children.node(child).kind(),
        })));
        self.conclude(me);
    }

    fn close(&mut self, me: &ActorRef<RawMessage>) {
        if std::mem::replace(&mut self.closing, true) {
            return;
        }
        if self.sealed { self.after_seal(me) } else { self.seal(me) }
    }

    /// Closes the outgoing half behind everything that was sent.
    fn seal(&mut self, me: &ActorRef<RawMessage>) {
        if std::mem::replace(&mut self.sealing, true) {
            return;
        }
        self.kit.sink.seal();
        if self.kit.seats.writer.is_none() {
            // Another tree of this process: nothing is written, it ends by itself.
            self.sealed = true;
            self.after_seal(me);
        }
    }

    /// The outgoing half is closed.
    fn after_seal(&mut self, me: &ActorRef<RawMessage>) {
        let driven = self.kit.seats.driver.is_some() && !self.driver_ended;
        match (driven, self.closing) {
            (true, true) => self.kit.finish_driver.finish(),
            // It sees the end of its input, and decides.
            (true, false) => {}
            (false, true) => self.conclude(me),
            (false, false) if self.input_ended => self.conclude(me),
            (false, false) => {}
        }
    }

    fn ended(&mut self, child: usize, outcome: Outcome, me: &ActorRef<RawMessage>) {
        let seats = self.kit.seats;
        let is_driver = seats.driver == Some(child);
        match outcome {
            Outcome::Finished if child == seats.reader => {
                self.input_ended = true;
                let driven = self.kit.seats.driver.is_some();
                if self.broken.is_some() || self.driver_ended || (self.sealed && !driven) {
                    self.conclude(me);
                }
            }
            Outcome::Finished if seats.writer == Some(child) => {
                self.sealed = true;
                self.after_seal(me);
            }
            Outcome::Finished if is_driver => {
                self.driver_ended = true;
                (self.kit.stop_input)();
                self.hear_out(me);
            }
            Outcome::Finished => {}
            Outcome::Failed(error) => {
                if is_driver {
                    self.driver_ended = true;
                    (self.kit.stop_input)();
                }
                if is_driver || self.broken.is_none() {
                    self.broken = Some(error);
                }
                self.hear_out(me);
            }
        }
    }

    /// Nobody says anything any more, but what was said last may still be on the way.
    fn hear_out(&mut self, me: &ActorRef<RawMessage>) {
        if self.input_ended {
            return self.conclude(me);
        }
        if self.kit.last_words.begin() {
            self.later(GRACE, me, RawMessage::GraceOver);
        }
    }

    fn conclude(&mut self, me: &ActorRef<RawMessage>) {
        if self.result.is_none() {
            let broken = self.broken.take();
            let clean = broken.as_ref().is_none_or(|error| error.origin() == Origin::PeerGone && self.input_ended);
            self.result = Some(if clean { Ok(()) } else { broken.map_or(Ok(()), Err) });
        }
        me.stop(None);
    }

    fn later(&mut self, after: Duration, me: &ActorRef<RawMessage>, message: RawMessage) {
        self.timers.retain(|timer| !timer.is_finished());
        let target = me.clone();
        self.timers.push(tokio::spawn(async move {
            tokio::time::sleep(after).await;
            let _ = target.cast(message);
        }));
    }
}

impl Drop for RawGuard {
    fn drop(&mut self) {
        if let WireSink::Writer(wire) = &self.kit.sink {
            let dropped: std::collections::VecDeque<Wire> = wire.close();
            drop(dropped);
        }
        (self.kit.closing)();
        self.kit.children.kill_all();
        for timer in &self.timers {
            timer.abort();
        }
        let result = self.result.take().unwrap_or_else(|| {
            Err(Error::internal_error().with_origin(Origin::Terminated).data("the connection's supervisor died"))
        });
        if let Some(on_end) = self.kit.on_end.take() {
            on_end(result);
        }
    }
}
