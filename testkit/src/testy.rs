//! An agent of protocol version 1 that does exactly what a prompt tells it to.

use std::collections::HashMap;
use std::sync::Arc;

use greenroom::schema::ProtocolVersion;
use greenroom::schema::v1::{
    CancelNotification, ContentBlock, ContentChunk, Implementation, InitializeRequest, InitializeResponse,
    NewSessionRequest, NewSessionResponse, PromptRequest, PromptResponse, SessionId, SessionNotification,
    SessionUpdate, StopReason, TextContent,
};
use greenroom::{
    Agent, Client, ConnectTo, ConnectionTo, Error, Responder, Result, on_receive_notification, on_receive_request,
};
use parking_lot::Mutex;
use tokio::sync::watch;

const HELP: &str = "echo <message>: say the message; any other text is said as it is
help: list the commands
wait_for_cancel: work until the turn is cancelled";

/// A deterministic agent. Sessions are named `session-1`, `session-2` and so on.
///
/// A prompt's text is a command:
/// - `echo <message>` answers with one message chunk that holds the message; so does any text that
///   is no command;
/// - `help` answers with the list of commands;
/// - `wait_for_cancel` does not end before `session/cancel` (then the stop reason is `cancelled`)
///   or `$/cancel_request` for the prompt itself (then the answer is the error `-32800`).
///
/// Prompts run beside the dispatch loop, so one that waits holds nothing up.
#[must_use]
pub fn testy() -> impl ConnectTo<Client> {
    let sessions = Sessions::default();
    let (for_new, for_prompt, for_cancel) = (sessions.clone(), sessions.clone(), sessions);
    Agent
        .builder()
        .name("testy")
        .on_receive_request(
            async |_request: InitializeRequest, responder: Responder<InitializeResponse>, _client| {
                let info = Implementation::new("testy", env!("CARGO_PKG_VERSION"));
                responder.respond(InitializeResponse::new(ProtocolVersion::V1).agent_info(info))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_request: NewSessionRequest, responder: Responder<NewSessionResponse>, _client| {
                responder.respond(NewSessionResponse::new(for_new.open()))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |prompt: PromptRequest, responder: Responder<PromptResponse>, client: ConnectionTo<Client>| {
                // Before the turn is spawned: a cancellation right behind the prompt belongs to it.
                let turn = for_prompt.begin_turn(&prompt.session_id)?;
                let task = run(prompt, turn, responder, client.clone());
                client.spawn(task)
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |cancel: CancelNotification, _client| {
                for_cancel.cancel(&cancel.session_id);
                Ok(())
            },
            on_receive_notification!(),
        )
}

/// Works a prompt off.
async fn run(
    prompt: PromptRequest,
    mut turn: Turn,
    responder: Responder<PromptResponse>,
    client: ConnectionTo<Client>,
) -> Result<()> {
    let text = text_of(&prompt.prompt);
    if text == "wait_for_cancel" {
        let marker = responder.cancellation();
        let cancelled = async {
            turn.cancelled().await;
            Ok(PromptResponse::new(StopReason::Cancelled))
        };
        let outcome = marker.run_until_cancelled(cancelled).await;
        return responder.respond_with_result(outcome);
    }
    let answer = match text.strip_prefix("echo ") {
        Some(message) => message,
        None if text == "help" => HELP,
        None => &text,
    };
    let chunk = ContentChunk::new(ContentBlock::Text(TextContent::new(answer)));
    client.send_notification(SessionNotification::new(prompt.session_id, SessionUpdate::AgentMessageChunk(chunk)))?;
    responder.respond(PromptResponse::new(StopReason::EndTurn))
}

fn text_of(prompt: &[ContentBlock]) -> String {
    let texts = prompt.iter().filter_map(|block| match block {
        ContentBlock::Text(content) => Some(content.text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// The sessions of one agent. Clones share them.
#[derive(Clone, Default)]
struct Sessions {
    shared: Arc<Mutex<Table>>,
}

#[derive(Default)]
struct Table {
    opened: u64,
    /// How often each session was cancelled.
    cancels: HashMap<SessionId, watch::Sender<u64>>,
}

/// One prompt between its arrival and its answer.
struct Turn {
    cancels: watch::Receiver<u64>,
}

impl Sessions {
    fn open(&self) -> SessionId {
        let mut table = self.shared.lock();
        table.opened += 1;
        let id = SessionId::new(format!("session-{}", table.opened));
        table.cancels.insert(id.clone(), watch::Sender::new(0));
        id
    }

    /// What is cancelled from now on concerns this turn.
    fn begin_turn(&self, session: &SessionId) -> Result<Turn> {
        match self.shared.lock().cancels.get(session) {
            Some(cancels) => Ok(Turn { cancels: cancels.subscribe() }),
            None => Err(Error::invalid_params().data(serde_json::json!({ "reason": "unknown session" }))),
        }
    }

    fn cancel(&self, session: &SessionId) {
        if let Some(cancels) = self.shared.lock().cancels.get(session) {
            cancels.send_modify(|count| *count += 1);
        }
    }
}

impl Turn {
    async fn cancelled(&mut self) {
        // An agent that is gone has nobody left to answer.
        let _ = self.cancels.changed().await;
    }
}
