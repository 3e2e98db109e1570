//! One session, and the work in it.

use greenroom::schema::v2::{
    ContentBlock, ContentChunk, IdleStateUpdate, MessageId, PromptResponse, ReplayComplete, RunningStateUpdate,
    SessionId, SessionUpdate, StateUpdate, StopReason, UpdateSessionNotification,
};
use greenroom::{Client, Error, Responder, Result, V2ConnectionTo};
use tokio::sync::oneshot;

use super::history::{History, Said};
use super::prompts::{Inserted, Prompts, Submitted};
use crate::testy::command::{TestyCommand, TestyScenario, help};
use crate::testy::root::Root;

/// The scenarios that exist in this version.
pub(super) const SCENARIOS: [TestyScenario; 1] = [TestyScenario::CancelStatus];

/// A session, open or closed. Everything that it sends is sent while its owner holds it, so nothing
/// comes between the parts of a replay or of a turn.
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) number: u64,
    pub(super) root: Root,
    pub(super) open: bool,
    cancelled: bool,
    prompts: Prompts<Prompt, Sender>,
    history: History,
}

/// What a prompt asks for.
pub(super) struct Prompt {
    pub(super) content: Vec<ContentBlock>,
    pub(super) command: TestyCommand,
}

/// Whoever waits for the acceptance of a prompt.
pub(super) struct Sender {
    pub(super) responder: Responder<PromptResponse>,
    /// Gone when the wait is over.
    pub(super) _waits: oneshot::Sender<()>,
}

impl Session {
    pub(super) fn new(number: u64, root: Root) -> Self {
        Self {
            id: SessionId::new(format!("session-{number}")),
            number,
            root,
            open: true,
            cancelled: false,
            prompts: Prompts::default(),
            history: History::default(),
        }
    }

    /// Takes a prompt; the ticket is that of one that has to wait.
    pub(super) fn submit(
        &mut self,
        prompt: Prompt,
        key: Option<String>,
        sender: Sender,
        client: &V2ConnectionTo<Client>,
    ) -> Result<Option<u64>> {
        match self.prompts.submit(prompt, key, sender) {
            Submitted::Begins(inserted) => self.work(inserted, client).map(|()| None),
            Submitted::Waits(ticket) => Ok(Some(ticket)),
            Submitted::Known(number, sender) => sender.accept(number).map(|()| None),
        }
    }

    /// Works prompts off until one does not end by itself or none is left.
    fn work(&mut self, first: Inserted<Prompt, Sender>, client: &V2ConnectionTo<Client>) -> Result<()> {
        let mut next = Some(first);
        while let Some(Inserted { number, prompt, senders }) = next {
            for sender in senders {
                sender.accept(number)?;
            }
            let said = Said::ByUser(user_message(number), prompt.content);
            self.history.push(said.clone());
            self.update(said.update(), client)?;
            self.state(StateUpdate::Running(RunningStateUpdate::new()), client)?;
            let answer = match prompt.command {
                TestyCommand::WaitForCancel => return Ok(()),
                TestyCommand::Help => help(&SCENARIOS),
                TestyCommand::Echo { message } => message,
                TestyCommand::RunScenario { .. } => {
                    let received = if self.cancelled { "yes" } else { "no" };
                    format!("session/cancel received: {received}")
                }
            };
            self.say(number, answer, client)?;
            next = self.prompts.finish();
            self.idle(StopReason::EndTurn, client)?;
        }
        Ok(())
    }

    fn say(&mut self, number: u64, text: String, client: &V2ConnectionTo<Client>) -> Result<()> {
        let (id, content) = (format!("agent-message-{number}"), ContentBlock::from(text));
        self.history.push(Said::ByAgent(id.clone(), vec![content.clone()]));
        self.update(SessionUpdate::AgentMessageChunk(ContentChunk::new(content, id)), client)
    }

    /// `session/cancel`: ends the work in the foreground, and prompts that are not inserted yet.
    pub(super) fn cancel(&mut self, client: &V2ConnectionTo<Client>) -> Result<()> {
        self.cancelled = true;
        self.end(client)
    }

    /// After this the session has to be resumed before it takes prompts.
    pub(super) fn close(&mut self, client: &V2ConnectionTo<Client>) -> Result<()> {
        self.open = false;
        self.end(client)
    }

    fn end(&mut self, client: &V2ConnectionTo<Client>) -> Result<()> {
        let (active, senders) = self.prompts.cancel();
        for sender in senders {
            sender.responder.respond_with_error(Error::request_cancelled())?;
        }
        if active { self.idle(StopReason::Cancelled, client) } else { Ok(()) }
    }

    /// `$/cancel_request` for a prompt that waits.
    pub(super) fn withdraw(&mut self, ticket: u64) -> Result<()> {
        match self.prompts.withdraw(ticket) {
            Some(sender) => sender.responder.respond_with_error(Error::request_cancelled()),
            None => Ok(()),
        }
    }

    /// The updates of a resume: the conversation, if the client wants it, then the state.
    pub(super) fn snapshot(&self, replay: bool, client: &V2ConnectionTo<Client>) -> Result<()> {
        if replay {
            for update in self.history.replay() {
                self.update(update, client)?;
            }
            self.update(SessionUpdate::ReplayComplete(ReplayComplete::new()), client)?;
        }
        let state = if self.prompts.active() {
            StateUpdate::Running(RunningStateUpdate::new())
        } else {
            StateUpdate::Idle(IdleStateUpdate::new())
        };
        self.state(state, client)
    }

    fn idle(&self, reason: StopReason, client: &V2ConnectionTo<Client>) -> Result<()> {
        self.state(StateUpdate::Idle(IdleStateUpdate::new().stop_reason(reason)), client)
    }

    fn state(&self, state: StateUpdate, client: &V2ConnectionTo<Client>) -> Result<()> {
        self.update(SessionUpdate::StateUpdate(state), client)
    }

    fn update(&self, update: SessionUpdate, client: &V2ConnectionTo<Client>) -> Result<()> {
        client.send_notification(UpdateSessionNotification::new(self.id.clone(), update))
    }
}

impl Sender {
    fn accept(self, number: u64) -> Result<()> {
        self.responder.respond(PromptResponse::new(MessageId::from(user_message(number))))
    }
}

fn user_message(number: u64) -> String {
    format!("user-message-{number}")
}
