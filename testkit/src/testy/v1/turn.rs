//! One turn: from a prompt to its answer.

use std::sync::Arc;

use greenroom::schema::v1::{
    ClientCapabilities, ContentBlock, ContentChunk, PromptRequest, PromptResponse, RequestId, SessionId,
    SessionNotification, SessionUpdate, StopReason,
};
use greenroom::{Client, ConnectionTo, Error, JsonRpcRequest, RequestCancellation, Responder, Result};
use tokio::sync::watch;

use super::sessions::{Begun, Sessions};
use super::settings::Settings;
use super::{Testy, scenario};
use crate::testy::command::{TestyCommand, TestyScenario, help};
use crate::testy::root::Root;

/// What a turn has at hand.
pub(super) struct Turn {
    pub(super) session: SessionId,
    /// The id of the prompt itself, for elicitations that belong to it.
    pub(super) request: RequestId,
    pub(super) root: Root,
    pub(super) settings: Settings,
    pub(super) capabilities: ClientCapabilities,
    pub(super) client: ConnectionTo<Client>,
    pub(super) sessions: Sessions,
    number: u64,
    cancels: watch::Receiver<u64>,
    marker: RequestCancellation,
}

/// Why a turn ends before its work is done.
pub(super) enum End {
    /// The session was cancelled, which is no error.
    Cancelled,
    /// The prompt fails.
    Failed(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Turn {
    pub(super) fn new(
        begun: Begun,
        testy: &Testy,
        prompt: &PromptRequest,
        responder: &Responder<PromptResponse>,
        client: &ConnectionTo<Client>,
    ) -> Self {
        let Begun { root, settings, number, cancels } = begun;
        Self {
            session: prompt.session_id.clone(),
            request: responder.id().clone(),
            root,
            settings,
            capabilities: testy.client.lock().clone(),
            client: client.clone(),
            sessions: testy.sessions.clone(),
            number,
            cancels,
            marker: responder.cancellation(),
        }
    }

    pub(super) async fn run(mut self, prompt: PromptRequest, responder: Responder<PromptResponse>) -> Result<()> {
        let outcome = match self.obey(&text_of(&prompt.prompt)).await {
            Ok(()) => Ok(PromptResponse::new(StopReason::EndTurn)),
            Err(End::Cancelled) => Ok(PromptResponse::new(StopReason::Cancelled)),
            Err(End::Failed(error)) => Err(error),
        };
        responder.respond_with_result(outcome)
    }

    async fn obey(&mut self, text: &str) -> Result<(), End> {
        match TestyCommand::parse(text)? {
            TestyCommand::Help => Ok(self.say(help(TestyScenario::ALL))?),
            TestyCommand::Echo { message } => Ok(self.say(message)?),
            TestyCommand::WaitForCancel => self.wait(std::future::pending()).await,
            TestyCommand::RunScenario { scenario } => scenario::run(self, scenario).await,
        }
    }

    /// Waits until `work` is done or the turn is cancelled, in one of the two ways.
    async fn wait<T>(&mut self, work: impl Future<Output = Result<T>>) -> Result<T, End> {
        tokio::select! {
            biased;
            () = self.marker.cancelled() => Err(End::Failed(Error::request_cancelled())),
            // A sender that is gone is a session that was closed or deleted.
            _ = self.cancels.changed() => Err(End::Cancelled),
            result = work => Ok(result?),
        }
    }

    /// Sends a request to the client. One that the end of the turn leaves unanswered is cancelled.
    pub(super) async fn ask<Req: JsonRpcRequest>(&mut self, request: Req) -> Result<Req::Response, End> {
        let asked = self.client.send_request(request);
        self.wait(asked.block_task()).await
    }

    pub(super) fn update(&self, update: SessionUpdate) -> Result<()> {
        self.client.send_notification(SessionNotification::new(self.session.clone(), update))
    }

    /// Says something that the session remembers.
    pub(super) fn say(&self, content: impl Into<ContentBlock>) -> Result<()> {
        let content = content.into();
        self.sessions.said(&self.session, content.clone());
        self.update(SessionUpdate::AgentMessageChunk(ContentChunk::new(content)))
    }

    /// An id that no other turn of the session has.
    pub(super) fn id(&self, name: &str) -> Arc<str> {
        format!("{name}-{}", self.number).into()
    }
}

fn text_of(prompt: &[ContentBlock]) -> String {
    let texts = prompt.iter().filter_map(|block| match block {
        ContentBlock::Text(content) => Some(content.text.as_str()),
        _ => None,
    });
    texts.collect()
}
