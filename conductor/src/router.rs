//! Where every frame of a chain goes: a state machine without runtime, clock or I/O.

mod action;
mod batch;
mod call;
mod cancel;
mod closing;
mod fault;
mod hash;
mod index;
mod initialize;
mod name;
mod passage;
mod path;
mod probe;
mod relay;
mod table;
mod version;

use std::collections::VecDeque;
use std::fmt;

use greenroom_protocol::Batches;
use greenroom_protocol::{Error, Frame, FrameKind, Outbound, RawId};

use batch::{Groups, Slot};
use passage::Passages;
use path::{CLIENT, Path};
use table::{Link, Links};

pub(crate) use passage::{Party, Passage};

pub use action::{Action, ChainShape, Hop, Instantiated, Mode, ProxyDialect, dropped};
pub use index::ComponentIndex;

/// Whether the components run.
enum Phase {
    /// Nobody asked for them.
    Fresh,
    /// They are being started. Calls from upstream wait, the initialize first.
    Opening {
        waiting: VecDeque<(Frame, Slot)>,
    },
    Running,
    /// They cannot be started; every later request gets this error.
    Failed(Error),
}

/// The routing core of a conductor.
///
/// It decides where each frame goes, under which id and in which spelling, and remembers what is
/// unanswered. It never looks into params, results or errors, with two exceptions: the
/// `protocolVersion` of an initialize and the code of the error that answers a dialect probe.
///
/// Promises:
/// * every request gets exactly one response on the hop it came from, under its own id exactly as
///   spelled there: from the peer that it went to, or from the router when that peer is gone;
/// * calls that go from one hop to another keep their order, also while they wait for a probe;
///   a response is never held back;
/// * the same inputs give the same actions.
///
/// The driver feeds frames in the order in which each hop delivered them and carries out the
/// [`Action`]s in their order. Nothing here is bounded: the driver limits what is in flight
/// ([`in_flight`](Self::in_flight), [`waiting`](Self::waiting)), and how often malformed frames are
/// fed, because each one is answered.
///
/// ```
/// use greenroom_conductor::{Action, ChainShape, Hop, Instantiated, Router};
/// use greenroom_protocol::Frame;
///
/// let mut router = Router::new(&ChainShape::agent(vec![]));
/// let mut actions = Vec::new();
/// let text = r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":1}}"#;
/// router.handle(Hop::Client, &Frame::parse(text.into()), &mut actions);
/// assert!(matches!(actions[..], [Action::Instantiate { .. }]));
///
/// actions.clear();
/// router.instantiated(Ok(Instantiated::default()), &mut actions);
/// let [Action::Send { to: Hop::Component(0), message }] = &actions[..] else { panic!() };
/// assert_eq!(&message.clone().into_text()[..], text.replace("\"a\"", "1").as_bytes());
/// ```
pub struct Router {
    path: Path,
    phase: Phase,
    links: Links,
    groups: Groups,
    batches: Batches,
    lowest_version: u16,
    passages: Passages,
}

impl Router {
    /// A router for a chain whose components do not run yet.
    #[must_use]
    pub fn new(shape: &ChainShape) -> Self {
        let mut links = vec![Link::default()];
        links.extend(shape.proxies.iter().map(|dialect| Link::new(dialect.fixed())));
        if shape.mode == Mode::Agent {
            links.push(Link::default());
        }
        Self {
            path: Path { mode: shape.mode, components: shape.components() },
            phase: Phase::Fresh,
            links: Links::new(links),
            groups: Groups::default(),
            batches: shape.batches,
            lowest_version: shape.lowest_version,
            passages: Passages::default(),
        }
    }

    /// Starts to note what passes, for [`passages`](Self::passages).
    pub(crate) fn listen(&mut self) {
        self.passages.listen();
    }

    /// Whether this component is the final agent.
    pub(crate) fn is_agent(&self, component: usize) -> bool {
        self.path.is_agent(Hop::Component(component).index())
    }

    /// Takes what has passed since the last time.
    pub(crate) fn passages(&mut self) -> std::vec::Drain<'_, Passage> {
        self.passages.drain()
    }

    /// Routes one frame. Appends what there is to do to `out`.
    pub fn handle(&mut self, from: Hop, frame: &Frame, out: &mut Vec<Action>) {
        let from = from.index();
        match self.links.links.get(from) {
            None => return out.push(Action::Drop { reason: dropped::UNKNOWN_HOP }),
            Some(link) if link.is_gone() => return out.push(Action::Drop { reason: dropped::CLOSED }),
            Some(_) => {}
        }
        match frame.kind() {
            FrameKind::Request | FrameKind::Notification => self.call(from, frame, Slot::ALONE, out),
            FrameKind::Result | FrameKind::Error => self.answer(from, frame, out),
            FrameKind::Batch if self.batches == Batches::Accept => self.batch(from, frame, out),
            FrameKind::Batch => {
                let error = fault::misplaced("batches are unsupported");
                self.reply(from, Slot::ALONE, fault::answer_unidentified(&error), out);
            }
            FrameKind::Malformed => match frame.malformation() {
                Some(malformed) if !malformed.response_shaped => {
                    self.reply(from, Slot::ALONE, fault::answer_unidentified(&malformed.error), out);
                }
                _ => out.push(Action::Drop { reason: dropped::MALFORMED_RESPONSE }),
            },
            FrameKind::Noise => out.push(Action::Drop { reason: dropped::NOISE }),
        }
    }

    /// Says how starting the components went, after [`Action::Instantiate`]. An error is final:
    /// it answers the waiting and every later request from upstream. Without effect at any other
    /// time.
    pub fn instantiated(&mut self, outcome: Result<Instantiated, Error>, out: &mut Vec<Action>) {
        self.opened(outcome, out);
    }

    /// Says that a component is gone.
    ///
    /// Every request that waits for it is answered `-32603` with data that names reason, logical
    /// method and `cause`; so is every later one, until [`component_up`](Self::component_up).
    /// Requests that came from it are cancelled and forgotten. While its dialect is being probed
    /// the initialize is spared and [`Action::Recreate`] asks for a new component, once.
    pub fn component_down(&mut self, component: usize, cause: &Error, out: &mut Vec<Action>) {
        let at = Hop::Component(component).index();
        if self.links.links.get(at).is_none_or(Link::is_gone) {
            return;
        }
        if self.probe_closed(at) {
            self.replace(at, cause, out);
            return out.push(Action::Recreate { component });
        }
        self.end(at, cause, out);
    }

    /// Answers [`Action::Recreate`]. An error takes a component down that has closed; the requester
    /// of the initialize is told about [`ProxyDialect`], which would have made the probe unnecessary.
    /// A component that lives goes on, and what it said is the answer.
    pub fn recreated(&mut self, component: usize, outcome: Result<(), Error>, out: &mut Vec<Action>) {
        let at = Hop::Component(component).index();
        if self.links.links.get(at).is_none_or(|link| link.probe.is_none()) {
            return;
        }
        match outcome {
            Ok(()) => self.probe_recreated(at, out),
            Err(_) if self.probe_not_recreated(at, out) => {}
            Err(cause) => {
                let hint = format!(
                    "{}; the component closed when it was asked for its dialect and could not be started again: \
                     set its ProxyDialect to Legacy or Modern",
                    cause.message
                );
                let cause = Error::new(cause.code.into(), hint).with_source(cause);
                self.end(at, &cause, out);
            }
        }
    }

    /// Says that a component that was down runs again, not initialised. Its dialect stays known.
    pub fn component_up(&mut self, component: usize) {
        if let Some(link) = self.links.links.get_mut(Hop::Component(component).index()) {
            link.end = None;
        }
    }

    /// Says that upstream sends nothing more but still reads: requests to it fail, now and later;
    /// its own requests go on. [`in_flight`](Self::in_flight) tells when they are answered.
    pub fn client_finished(&mut self, cause: &Error, out: &mut Vec<Action>) {
        if self.links.links[CLIENT].end.is_none() {
            self.end_input(CLIENT, cause, out);
        }
    }

    /// Says that upstream is gone: as [`component_down`](Self::component_down), for good.
    pub fn client_closed(&mut self, cause: &Error, out: &mut Vec<Action>) {
        if !self.links.links[CLIENT].is_gone() {
            self.end(CLIENT, cause, out);
        }
    }

    /// Whether nothing waits and nothing is remembered: every table is empty.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.in_flight() == 0 && self.waiting() == 0 && self.links.links.iter().all(|link| link.asked.is_empty())
    }

    /// Number of requests without an answer, and of batches without all their answers.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.links.links.iter().map(|link| link.sent.len()).sum::<usize>() + self.groups.len()
    }

    /// Number of messages that wait inside: for the components to start or for a probe to end.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let opening = match &self.phase {
            Phase::Opening { waiting } => waiting.len(),
            Phase::Fresh | Phase::Running | Phase::Failed(_) => 0,
        };
        opening + self.links.links.iter().map(|link| link.held.len()).sum::<usize>()
    }

    /// A response.
    fn answer(&mut self, from: usize, frame: &Frame, out: &mut Vec<Action>) {
        // Ids of ours are small integers; nothing else can be known here.
        let Some(RawId::Int(id)) = frame.raw_id() else {
            return out.push(Action::Drop { reason: dropped::UNKNOWN_RESPONSE });
        };
        let id = id.cast_unsigned();
        let link = &mut self.links.links[from];
        if link.probe.is_some() {
            let sent = |entry: &table::Entry| entry.stage != table::Stage::Held;
            let current = |probe: &mut table::Probe| probe.id == id && link.sent.get(&id).is_some_and(sent);
            if let Some(probe) = link.probe.take_if(current) {
                return self.probe_answered(from, probe, frame, out);
            }
        }
        let Some(entry) = self.links.settle_sent(from, id) else {
            return out.push(Action::Drop { reason: dropped::UNKNOWN_RESPONSE });
        };
        let message = match entry.version {
            Some(sent) if frame.kind() == FrameKind::Result => {
                match version::check_selected(frame.envelope().result.of(frame.text()), sent) {
                    Ok(()) => Outbound::with_id(frame, &entry.id),
                    Err(error) => fault::answer(&entry.id, &error),
                }
            }
            _ => Outbound::with_id(frame, &entry.id),
        };
        self.note_answer(from, &entry, frame);
        self.reply(entry.origin, entry.slot, message, out);
    }

    /// Notes what a peer answered, as it said it.
    fn note_answer(&mut self, at: usize, entry: &table::Entry, frame: &Frame) {
        let is_error = frame.kind() == FrameKind::Error;
        let envelope = frame.envelope();
        let span = if is_error { envelope.error } else { envelope.result };
        self.passages.answered(self.path, at, entry, is_error, || frame.share(span));
    }

    /// Sends a response, or puts it into its place in a batch.
    fn reply(&mut self, to: usize, slot: Slot, message: Outbound, out: &mut Vec<Action>) {
        if slot.is_alone() {
            out.push(Action::Send { to: Hop::at(to), message });
        } else if let Some((to, message)) = self.groups.fill(slot, message) {
            out.push(Action::Send { to: Hop::at(to), message });
        }
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router")
            .field("mode", &self.path.mode)
            .field("components", &self.path.components)
            .field("in_flight", &self.in_flight())
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}
