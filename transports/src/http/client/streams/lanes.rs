//! What is posted when: the rules of a connection over HTTP, without I/O and without a clock.
//!
//! Two lanes, each with one message under way: calls keep their order; responses do not wait behind
//! calls, so that the request that made the agent ask cannot block the answer. Nothing but responses
//! is posted while a stream is being opened, so that what a call brings about finds its reader.

use std::collections::{HashMap, HashSet, VecDeque};

use greenroom_actors::runtime::Permit;
use greenroom_protocol::method::INITIALIZE;
use greenroom_protocol::{Error, Frame, FrameKind, Outbound, RawId};

use super::super::failure::Failure;
use super::message::{Message, Scope, Session};
use super::routes::{Refused, Route, answered_sessions, route};
use crate::http::scope::{is_connection_scoped, opens_session, result_session};

/// Requests of the agent that are remembered for the header of their answers. An agent that leaves
/// more open than this gets the rest of the answers without one.
const MAX_ASKED: usize = 65_536;

/// One of the two orders in which messages are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Requests and notifications.
    Calls,
    /// Answers to the agent.
    Responses,
}

/// What has to be done next.
#[derive(Debug)]
pub(super) enum Step {
    /// Post the first message of a new connection.
    Initialize(Message),
    /// Post one message of a lane.
    Post(Lane, Message),
    /// Open a stream of events.
    Open(Scope),
    /// Read this session's stream no further: the session is over.
    Leave(Session),
    /// Answer the local connection: its message cannot be posted.
    Refuse(Frame),
}

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    /// There is no connection at the server.
    Fresh,
    /// The server is asked for one.
    Initializing,
    /// There is one.
    Ready,
}

/// What the answer to a request of ours means for the streams.
#[derive(Debug)]
enum Outcome {
    /// A result names a new session.
    Opens,
    /// A result ends this session.
    Ends(Session),
}

#[derive(Debug)]
struct Call {
    message: Message,
    /// The sessions whose streams have to be open.
    streams: Vec<Session>,
}

/// The state of both lanes and of all streams.
#[derive(Debug)]
pub(super) struct Lanes {
    phase: Phase,
    calls: VecDeque<Call>,
    responses: VecDeque<Message>,
    calling: bool,
    responding: bool,
    /// Whether each stream is open; those that are absent were never asked for.
    streams: HashMap<Scope, bool>,
    /// Streams being opened.
    opening: usize,
    /// Steps that are decided already.
    decided: VecDeque<Step>,
    initialize: Option<RawId>,
    awaited: HashMap<RawId, Outcome>,
    /// The sessions of the agent's open requests. Ids may repeat; then the oldest is answered first.
    asked: HashMap<RawId, VecDeque<Option<Session>>>,
    /// How many those are.
    open_asked: usize,
    /// Sessions that ended while their stream was open: its end is no failure.
    over: Vec<Session>,
    /// Streams that broke and are asked for again.
    unheard: HashSet<Scope>,
}

impl Lanes {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Fresh,
            calls: VecDeque::new(),
            responses: VecDeque::new(),
            calling: false,
            responding: false,
            streams: HashMap::new(),
            opening: 0,
            decided: VecDeque::new(),
            initialize: None,
            awaited: HashMap::new(),
            asked: HashMap::new(),
            open_asked: 0,
            over: Vec::new(),
            unheard: HashSet::new(),
        }
    }

    /// Takes a message of the local connection.
    pub(super) fn accept(&mut self, frame: Frame, permit: Option<Permit>) {
        match route(&frame) {
            Ok(Route::Call { session, streams }) => {
                self.await_outcome(&frame);
                self.calls.push_back(Call { message: Message { frame, session, permit }, streams });
            }
            Ok(Route::Responses) => {
                let session = answered_sessions(&frame, |id| self.asked_by(id));
                self.responses.push_back(Message { frame, session, permit });
            }
            Ok(Route::Nowhere) => tracing::warn!(bytes = frame.text().len(), "what is no JSON text was not posted"),
            Err(refused) => self.refuse(&frame, refused),
        }
    }

    /// What has to be done next; `None` until something else happens.
    ///
    /// # Errors
    /// When the first message is no `initialize`.
    pub(super) fn next(&mut self) -> Result<Option<Step>, Failure> {
        if let Some(step) = self.decided.pop_front() {
            return Ok(Some(step));
        }
        match self.phase {
            Phase::Initializing => Ok(None),
            Phase::Fresh => self.first(),
            Phase::Ready => Ok(self.later()),
        }
    }

    fn first(&mut self) -> Result<Option<Step>, Failure> {
        // What stands before it belongs to an `initialize` that failed.
        while self.calls.front().is_some_and(|call| is_connection_scoped(&call.message.frame)) {
            self.calls.pop_front();
        }
        let Some(call) = self.calls.pop_front() else {
            return if self.responses.is_empty() { Ok(None) } else { Err(Failure::FirstMessage) };
        };
        if !is_initialize(&call.message.frame) {
            return Err(Failure::FirstMessage);
        }
        self.phase = Phase::Initializing;
        self.initialize = call.message.frame.raw_id();
        Ok(Some(Step::Initialize(call.message)))
    }

    fn later(&mut self) -> Option<Step> {
        if !self.responding
            && let Some(message) = self.responses.pop_front()
        {
            self.responding = true;
            return Some(Step::Post(Lane::Responses, message));
        }
        while self.opening == 0 && !self.calling {
            let call = self.calls.front()?;
            if let Some(missing) = call.streams.iter().find(|session| !self.has_stream(session)) {
                let scope = Scope::Session(missing.clone());
                return Some(self.open(scope));
            }
            let message = self.calls.pop_front()?.message;
            if is_initialize(&message.frame) {
                self.refuse(&message.frame, Refused::SecondInitialize);
                return self.decided.pop_front();
            }
            if self.cancels_initialize(&message.frame) {
                tracing::debug!("an `initialize` over HTTP cannot be cancelled");
                continue;
            }
            self.calling = true;
            return Some(Step::Post(Lane::Calls, message));
        }
        None
    }

    /// The answer to `initialize` came; with a connection, or with an error from the agent.
    pub(super) fn initialized(&mut self, connected: bool) {
        if connected {
            self.phase = Phase::Ready;
            let open = self.open(Scope::Connection);
            self.decided.push_back(open);
        } else {
            self.phase = Phase::Fresh;
        }
    }

    /// A stream is open.
    pub(super) fn opened(&mut self, scope: &Scope) {
        self.opening -= 1;
        if let Some(open) = self.streams.get_mut(scope) {
            *open = true;
        }
    }

    /// A message of this lane was posted.
    pub(super) fn posted(&mut self, lane: Lane) {
        match lane {
            Lane::Calls => self.calling = false,
            Lane::Responses => self.responding = false,
        }
    }

    /// The agent says this, on that stream.
    pub(super) fn received(&mut self, frame: &Frame, from: &Scope) {
        match frame.kind() {
            FrameKind::Request => {
                if let Some(id) = frame.raw_id()
                    && self.open_asked < MAX_ASKED
                {
                    let session = super::routes::asking_session(frame, from);
                    self.asked.entry(id).or_default().push_back(session);
                    self.open_asked += 1;
                }
            }
            FrameKind::Result | FrameKind::Error => self.answered(frame, from),
            FrameKind::Batch => frame.entries().iter().for_each(|entry| self.received(entry, from)),
            FrameKind::Notification | FrameKind::Malformed | FrameKind::Noise => {}
        }
    }

    /// Whether somebody may still wait for something on this stream.
    pub(super) fn needs(&self, scope: &Scope) -> bool {
        let over = scope.session().is_some_and(|session| self.over.contains(session));
        self.streams.contains_key(scope) && !over
    }

    /// Whether somebody reads this stream, or it is about to go on behind its last event.
    pub(super) fn is_heard(&mut self, scope: &Scope, heard: bool) {
        if heard {
            self.unheard.remove(scope);
        } else {
            self.unheard.insert(scope.clone());
        }
    }

    /// A stream is at its end. False when somebody may still wait for something on it.
    pub(super) fn ended(&mut self, scope: &Scope) -> bool {
        self.unheard.remove(scope);
        // One that was left already may end before anybody notices.
        let open = self.streams.remove(scope).is_some();
        let over = scope.session().and_then(|session| self.over.iter().position(|other| other == session));
        match over {
            Some(at) => {
                self.over.swap_remove(at);
                true
            }
            None => !open,
        }
    }

    /// Whether everything accepted is posted.
    pub(super) fn is_drained(&self) -> bool {
        self.phase != Phase::Initializing
            && !self.calling
            && !self.responding
            && self.calls.is_empty()
            && self.responses.is_empty()
    }

    /// Whether nothing waits but the answer to `initialize`.
    pub(super) fn only_initializes(&self) -> bool {
        self.phase == Phase::Initializing && self.calls.is_empty() && self.responses.is_empty()
    }

    fn has_stream(&self, session: &Session) -> bool {
        self.streams.contains_key(&Scope::Session(session.clone()))
    }

    fn open(&mut self, scope: Scope) -> Step {
        self.opening += 1;
        if let Some(session) = scope.session() {
            self.over.retain(|over| over != session);
        }
        self.streams.insert(scope.clone(), false);
        Step::Open(scope)
    }

    /// Remembers what the answers to these calls will mean.
    fn await_outcome(&mut self, frame: &Frame) {
        frame.entries().iter().for_each(|entry| self.await_outcome(entry));
        if frame.kind() != FrameKind::Request {
            return;
        }
        let outcome = if opens_session(frame.method()) {
            Outcome::Opens
        } else if matches!(frame.method(), "session/close" | "session/delete")
            && let Ok(Route::Call { session: Some(session), .. }) = route(frame)
        {
            Outcome::Ends(session)
        } else {
            return;
        };
        if let Some(id) = frame.raw_id() {
            self.awaited.insert(id, outcome);
        }
    }

    fn answered(&mut self, frame: &Frame, from: &Scope) {
        let Some(outcome) = frame.raw_id().and_then(|id| self.awaited.remove(&id)) else { return };
        if frame.kind() != FrameKind::Result {
            return;
        }
        match outcome {
            Outcome::Opens => {
                let session = result_session(frame).and_then(|id| Session::new(&id));
                if let Some(session) = session.filter(|session| !self.has_stream(session)) {
                    let open = self.open(Scope::Session(session));
                    self.decided.push_back(open);
                }
            }
            Outcome::Ends(session) if from.session() == Some(&session) => {
                // Whatever it had to say came before the answer.
                self.streams.remove(from);
                self.decided.push_back(Step::Leave(session));
            }
            // Nobody reads it, and after the answer there is no reason to go on with that.
            Outcome::Ends(session) if self.unheard.remove(&Scope::Session(session.clone())) => {
                self.streams.remove(&Scope::Session(session.clone()));
                self.decided.push_back(Step::Leave(session));
            }
            // Its own stream may still bring something: its end is its last word.
            Outcome::Ends(session) if self.has_stream(&session) && !self.over.contains(&session) => {
                self.over.push(session);
            }
            Outcome::Ends(_) => {}
        }
    }

    fn asked_by(&mut self, id: &RawId) -> Option<Session> {
        let waiting = self.asked.get_mut(id)?;
        let session = waiting.pop_front();
        self.open_asked -= 1;
        if waiting.is_empty() {
            self.asked.remove(id);
        }
        session.flatten()
    }

    fn cancels_initialize(&self, frame: &Frame) -> bool {
        let member = || frame.part(frame.member(frame.envelope().params, "requestId"));
        frame.method() == greenroom_protocol::method::CANCEL_REQUEST
            && self.initialize.is_some()
            && RawId::from_json(member().as_bytes()) == self.initialize
    }

    /// Answers what cannot be posted, entry by entry; who wants no answer only gets a line in the log.
    fn refuse(&mut self, frame: &Frame, refused: Refused) {
        let calls = frame.entries().iter().chain(std::iter::once(frame));
        let mut answers = 0;
        for id in calls.filter(|call| call.kind() == FrameKind::Request).filter_map(Frame::raw_id) {
            let error: Error = refused.to_error();
            let answer = Outbound::error(&id, error.to_wire().get().as_bytes().to_vec().into());
            self.decided.push_back(Step::Refuse(answer.into_frame()));
            answers += 1;
        }
        if answers == 0 {
            tracing::warn!("a notification without a usable session id was not posted");
        }
    }
}

fn is_initialize(frame: &Frame) -> bool {
    frame.kind() == FrameKind::Request && frame.method() == INITIALIZE
}

#[cfg(test)]
mod tests;
