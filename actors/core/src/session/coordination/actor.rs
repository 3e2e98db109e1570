//! The actor of a coordination: what the application wants, what the agent says, in one order.
//!
//! Owns: the policy, the logs, the ways to those who wait. Supervised by: the connection's sessions.
//! When it dies: restarted as often as `ConnectionOptions::session_restart` allows, both queues go on;
//! then every load and every log ends with an error that says so, and the connection goes on.
//! Ordering promise: commands go before events that were not worked off when they were given; updates
//! and answers in wire order.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use greenroom_protocol::schema::v2::{
    AbsolutePath, CloseSessionRequest, ReplayFrom, ReplayFromStart, ResumeSessionRequest, ResumeSessionResponse,
    SessionId, SessionUpdate,
};
use greenroom_protocol::{Error, Result};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::handle::{Delivered, End};
use super::log::SessionLog;
use super::policy::{Effect, Load, Operation, Policy};
use crate::connection::Shared;
use crate::connection_to::ConnectionTo;
use crate::handlers::DynamicHandlerGuard;
use crate::request::PreparedRequest;
use crate::role::HasPeer;
use crate::role::acp::Agent;
use crate::runtime::{Flow, Inbox, Mailbox, Stage};

/// Commands that are taken out of their queue at once.
const BATCH: usize = 64;

/// Sessions of which updates are wanted. Shared with the handler that looks for them.
pub(super) type Wanted = Arc<Mutex<HashSet<Arc<str>>>>;

/// What the application wants.
pub(super) enum Command {
    Load(SessionId, Load, oneshot::Sender<Result<Delivered>>),
    Release(SessionId, Load),
    /// Nobody is left who could want anything.
    LetGo,
}

/// What the agent said.
pub(super) enum Event {
    /// An update of a session, and its size.
    Update(SessionId, Box<SessionUpdate>, usize),
    Resumed(SessionId, Operation, Result<ResumeSessionResponse>),
    Closed(SessionId, Operation, Result<()>),
    /// There are commands.
    Commands,
    /// Nothing more comes, for this reason.
    End(Error),
}

/// What is known of a session that somebody uses.
struct Replay {
    operation: Operation,
    log: SessionLog,
    response: Option<Arc<ResumeSessionResponse>>,
}

/// The stage of the actor.
pub(super) struct Coordination<C: HasPeer<Agent>> {
    pub(super) connection: Weak<Shared>,
    pub(super) counterpart: C,
    pub(super) number: u64,
    pub(super) cwd: PathBuf,
    pub(super) cap: usize,
    pub(super) events: Mailbox<Event>,
    pub(super) commands: Mailbox<Command>,
    pub(super) wanted: Wanted,
    pub(super) end: Arc<End>,
    /// Keeps the handler registered that sees the updates.
    pub(super) observer: Option<DynamicHandlerGuard<C>>,
    pub(super) state: State,
}

/// What the actor knows.
#[derive(Default)]
pub(super) struct State {
    policy: Policy,
    replays: HashMap<SessionId, Replay>,
    waiting: HashMap<Load, oneshot::Sender<Result<Delivered>>>,
    at_hand: VecDeque<Command>,
}

impl<C: HasPeer<Agent>> Coordination<C> {
    fn next_command(&mut self) -> Option<Command> {
        let at_hand = &mut self.state.at_hand;
        if at_hand.is_empty() {
            self.commands.take(at_hand, BATCH);
        }
        at_hand.pop_front()
    }

    /// False when nobody is left.
    fn command(&mut self, command: Command) -> bool {
        let effects = match command {
            Command::Load(session, load, answer) => {
                self.state.waiting.insert(load, answer);
                self.state.policy.load(&session, load)
            }
            Command::Release(session, load) => {
                self.state.waiting.remove(&load);
                self.state.policy.release(&session, load)
            }
            Command::LetGo => return false,
        };
        self.apply(effects);
        true
    }

    /// False when nothing more comes.
    fn event(&mut self, event: Event) -> bool {
        let effects = match event {
            Event::Update(session, update, size) => self.update(&session, *update, size),
            Event::Resumed(session, operation, outcome) => {
                let refused = match outcome {
                    Ok(response) => {
                        if let Some(replay) = self.replay(&session, operation) {
                            replay.response = Some(Arc::new(response));
                        }
                        None
                    }
                    Err(error) => Some(error),
                };
                self.state.policy.resumed(&session, operation, refused)
            }
            Event::Closed(session, operation, outcome) => {
                if let Err(error) = &outcome {
                    let code = i32::from(error.code);
                    tracing::warn!(coordination = self.number, code, "a session could not be closed");
                }
                self.state.policy.closed(&session, operation, outcome.err())
            }
            Event::Commands => Vec::new(),
            Event::End(error) => {
                self.end.set(error.clone());
                let effects = self.state.policy.end(&error);
                self.apply(effects);
                return false;
            }
        };
        self.apply(effects);
        true
    }

    fn update(&mut self, session: &SessionId, update: SessionUpdate, size: usize) -> Vec<Effect> {
        if !self.state.policy.keeps(session) {
            return Vec::new();
        }
        match self.state.replays.get(session).map(|replay| replay.log.append(update, size)) {
            Some(Err(error)) => {
                tracing::warn!(coordination = self.number, "the log of a session is full");
                self.state.policy.overflowed(session, &error)
            }
            _ => Vec::new(),
        }
    }

    fn replay(&mut self, session: &SessionId, operation: Operation) -> Option<&mut Replay> {
        self.state.replays.get_mut(session).filter(|replay| replay.operation == operation)
    }

    fn apply(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Resume(session, operation) => self.resume(session, operation),
                Effect::Close(session, operation) => {
                    let request = CloseSessionRequest::new(session.clone());
                    self.send(request, move |outcome| Event::Closed(session, operation, outcome.map(drop)));
                }
                Effect::Discard(session) => {
                    if let Some(replay) = self.state.replays.remove(&session) {
                        replay.log.end(&Error::internal_error().data("nobody uses this session any more"));
                    }
                }
                Effect::Deliver(session, load) => self.deliver(&session, load),
                Effect::Fail(load, error) => {
                    if let Some(answer) = self.state.waiting.remove(&load) {
                        // Who left has released the load as well.
                        let _ = answer.send(Err(error));
                    }
                }
                Effect::Forget(session) => drop(self.wanted.lock().remove(&*session.0)),
            }
        }
    }

    fn resume(&mut self, session: SessionId, operation: Operation) {
        let replay = Replay { operation, log: SessionLog::new(self.cap), response: None };
        self.state.replays.insert(session.clone(), replay);
        // Before the request is sent: its replay must find somebody.
        self.wanted.lock().insert(session.0.clone());
        let mut request = ResumeSessionRequest::new(session.clone(), AbsolutePath::from(self.cwd.as_path()));
        request.replay_from = Some(ReplayFrom::Start(ReplayFromStart::new()));
        self.send(request, move |outcome| Event::Resumed(session, operation, outcome));
    }

    fn deliver(&mut self, session: &SessionId, load: Load) {
        let Some(answer) = self.state.waiting.remove(&load) else { return };
        let replay = self.state.replays.get(session);
        let Some((log, response)) = replay.and_then(|replay| Some((replay.log.clone(), replay.response.clone()?)))
        else {
            let _ = answer.send(Err(self.end.error()));
            return;
        };
        // Who left has released the load as well.
        let _ = answer.send(Ok(Delivered { log, response }));
    }

    /// Sends a request; its answer comes back as an event, in wire order.
    fn send<Req>(&self, request: Req, event: impl FnOnce(Result<Req::Response>) -> Event + Send + 'static)
    where
        Req: greenroom_protocol::JsonRpcRequest<Response: Send>,
    {
        // The connection is gone: the end comes, or came.
        let Some(shared) = self.connection.upgrade() else { return };
        let connection = ConnectionTo::new(shared, self.counterpart.clone());
        let prepared: PreparedRequest<Req::Response> = connection.prepare_request_to(Agent, request);
        let events = self.events.clone();
        // Not sent when the connection is over: then the end comes, which settles everything.
        let _ = prepared.on_receiving_result(async move |outcome| {
            let _ = events.send(event(outcome));
            Ok(())
        });
    }

    /// Whoever still waits is told, in whatever way the coordination ended. Repeatable.
    fn let_go(&mut self) {
        self.observer = None;
        // Dropped outside of the lock; what is loaded now fails.
        drop(self.commands.close());
        self.state.at_hand.clear();
        self.state.waiting.clear();
        let error = self.end.error();
        for (_, replay) in self.state.replays.drain() {
            replay.log.end(&error);
        }
        self.end.tell();
    }

    /// Nothing is worked off any more.
    fn finish(&mut self) -> Flow {
        self.let_go();
        drop(self.events.close());
        if let Some(shared) = self.connection.upgrade() {
            shared.sessions.leave(self.number);
        }
        Flow::Finished
    }
}

impl<C: HasPeer<Agent>> Stage for Coordination<C> {
    type Item = Event;

    async fn run(&mut self, inbox: &mut Inbox<Event>) -> Flow {
        loop {
            while let Some(command) = self.next_command() {
                if !self.command(command) {
                    return self.finish();
                }
            }
            let Some(event) = inbox.take() else { return Flow::Idle };
            if !self.event(event) {
                return self.finish();
            }
        }
    }

    fn quarantine(&mut self, item: Event) {
        drop(item);
    }
}

impl<C: HasPeer<Agent>> Drop for Coordination<C> {
    /// The only thing that runs when the actor died too often.
    fn drop(&mut self) {
        self.let_go();
    }
}

#[cfg(test)]
mod tests;
