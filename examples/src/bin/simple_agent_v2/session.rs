//! One session: its conversation, and what is done in it.
//!
//! The caller holds the session's lock, so nothing comes between the updates of one call.

use std::collections::{HashMap, VecDeque};

use greenroom::schema::v2::{
    AbsolutePath, AgentMessage, IdempotencyKey, IdleStateUpdate, MessageId, PromptRequest, PromptResponse,
    ReplayComplete, RunningStateUpdate, SessionId, SessionUpdate, StateUpdate, StopReason, UpdateSessionNotification,
    UserMessage,
};
use greenroom::{Client, Error, Responder, Result, V2ConnectionTo};

use super::turn::Turn;

pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) cwd: AbsolutePath,
    pub(super) open: bool,
    /// Whether a task works the prompts off.
    worker: bool,
    /// The turn that is not over yet.
    active: Option<u64>,
    turns: u64,
    /// Prompts that have no place in the conversation yet.
    waiting: VecDeque<(PromptRequest, Responder<PromptResponse>)>,
    inserted: HashMap<IdempotencyKey, MessageId>,
    /// Complete messages, as the updates that tell them again.
    history: Vec<SessionUpdate>,
}

impl Session {
    pub(super) fn new(id: SessionId, cwd: AbsolutePath) -> Self {
        let (waiting, inserted, history) = (VecDeque::new(), HashMap::new(), Vec::new());
        Self { id, cwd, open: true, worker: false, active: None, turns: 0, waiting, inserted, history }
    }

    /// Takes a prompt; true if somebody has to begin to work.
    pub(super) fn submit(&mut self, request: PromptRequest, responder: Responder<PromptResponse>) -> bool {
        self.waiting.push_back((request, responder));
        !std::mem::replace(&mut self.worker, true)
    }

    /// Inserts the next prompt that waits. `None`: there is nothing to do any more.
    pub(super) fn begin(&mut self, client: &V2ConnectionTo<Client>) -> Result<Option<Turn>> {
        while let Some((request, responder)) = self.waiting.pop_front() {
            if responder.cancellation().is_cancelled() {
                responder.respond_with_error(Error::request_cancelled())?;
                continue;
            }
            // The same submission once more: it keeps its place.
            if let Some(id) = request.idempotency_key.as_ref().and_then(|key| self.inserted.get(key)) {
                responder.respond(PromptResponse::new(id.clone()))?;
                continue;
            }
            self.turns += 1;
            let id = MessageId::new(format!("user-{}", self.turns));
            self.inserted.extend(request.idempotency_key.map(|key| (key, id.clone())));
            responder.respond(PromptResponse::new(id.clone()))?;
            let turn = Turn::new(self.turns, &request.prompt);
            self.tell(SessionUpdate::UserMessage(UserMessage::new(id).content(request.prompt)), client)?;
            self.state(StateUpdate::Running(RunningStateUpdate::new()), client)?;
            self.active = Some(self.turns);
            return Ok(Some(turn));
        }
        self.worker = false;
        Ok(None)
    }

    /// Says the answer, unless the turn was cancelled meanwhile.
    pub(super) fn end(&mut self, turn: &Turn, answer: String, client: &V2ConnectionTo<Client>) -> Result<()> {
        if self.active != Some(turn.number) {
            return Ok(());
        }
        self.active = None;
        let message = AgentMessage::new(format!("agent-{}", turn.number)).content(vec![answer.into()]);
        self.tell(SessionUpdate::AgentMessage(message), client)?;
        self.idle(Some(StopReason::EndTurn), client)
    }

    /// Ends the turn, and prompts that wait for theirs.
    pub(super) fn cancel(&mut self, client: &V2ConnectionTo<Client>) -> Result<()> {
        for (_, responder) in self.waiting.drain(..) {
            responder.respond_with_error(Error::request_cancelled())?;
        }
        if self.active.take().is_some() { self.idle(Some(StopReason::Cancelled), client) } else { Ok(()) }
    }

    /// What a client gets that resumes: the conversation, if it wants it, and always the state.
    pub(super) fn resume(&mut self, replay: bool, client: &V2ConnectionTo<Client>) -> Result<()> {
        self.open = true;
        if replay {
            for message in &self.history {
                self.send(message.clone(), client)?;
            }
            self.send(SessionUpdate::ReplayComplete(ReplayComplete::new()), client)?;
        }
        match self.active {
            Some(_) => self.state(StateUpdate::Running(RunningStateUpdate::new()), client),
            None => self.idle(None, client),
        }
    }

    fn tell(&mut self, message: SessionUpdate, client: &V2ConnectionTo<Client>) -> Result<()> {
        self.history.push(message.clone());
        self.send(message, client)
    }

    fn idle(&self, reason: Option<StopReason>, client: &V2ConnectionTo<Client>) -> Result<()> {
        self.state(StateUpdate::Idle(IdleStateUpdate::new().stop_reason(reason)), client)
    }

    fn state(&self, state: StateUpdate, client: &V2ConnectionTo<Client>) -> Result<()> {
        self.send(SessionUpdate::StateUpdate(state), client)
    }

    fn send(&self, update: SessionUpdate, client: &V2ConnectionTo<Client>) -> Result<()> {
        client.send_notification(UpdateSessionNotification::new(self.id.clone(), update))
    }
}
