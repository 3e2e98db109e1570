//! An agent on stdin and stdout: it repeats what it is told, one word at a time.
//!
//! A prompt that starts with `delete` asks for permission first. That takes an answer of the same
//! connection, so the work moves from the handler into a task: a handler runs before anything
//! else of its connection is handled, and must not wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use greenroom::schema::{
    ContentBlock, ContentChunk, InitializeRequest, InitializeResponse, NewSessionRequest, NewSessionResponse,
    PermissionOption, PermissionOptionKind, PromptRequest, PromptResponse, ProtocolVersion, RequestPermissionOutcome,
    RequestPermissionRequest, SessionNotification, SessionUpdate, StopReason, ToolCallUpdate, ToolCallUpdateFields,
};
use greenroom::{Agent, Client, ConnectionTo, Responder, Result, Stdio, on_receive_request};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let sessions = Arc::new(AtomicU64::new(0));
    Agent
        .builder()
        .name("simple-agent")
        .on_receive_request(
            async |_: InitializeRequest, responder: Responder<InitializeResponse>, _cx| {
                responder.respond(InitializeResponse::new(ProtocolVersion::V1))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_: NewSessionRequest, responder: Responder<NewSessionResponse>, _cx| {
                let number = sessions.fetch_add(1, Ordering::Relaxed);
                responder.respond(NewSessionResponse::new(format!("session-{number}")))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |prompt: PromptRequest, responder: Responder<PromptResponse>, cx: ConnectionTo<Client>| {
                cx.spawn(answer(prompt, responder, cx.clone()))
            },
            on_receive_request!(),
        )
        .connect_to(Stdio::new())
        .await
}

async fn answer(
    prompt: PromptRequest,
    responder: Responder<PromptResponse>,
    client: ConnectionTo<Client>,
) -> Result<()> {
    let cancelled = responder.cancellation();
    let text: String = prompt.prompt.iter().filter_map(text_of).collect::<Vec<_>>().join(" ");
    let say = |word: &str| {
        let chunk = SessionUpdate::AgentMessageChunk(ContentChunk::new(word.into()));
        client.send_notification(SessionNotification::new(prompt.session_id.clone(), chunk))
    };
    if text.starts_with("delete") {
        let tool = ToolCallUpdate::new("delete-1", ToolCallUpdateFields::new().title(text.clone()));
        let options = vec![
            PermissionOption::new("no", "Keep", PermissionOptionKind::RejectOnce),
            PermissionOption::new("yes", "Delete", PermissionOptionKind::AllowOnce),
        ];
        let ask = RequestPermissionRequest::new(prompt.session_id.clone(), tool, options);
        let permission = client.send_request(ask).forward_cancellation_from(cancelled.clone()).block_task().await?;
        match permission.outcome {
            RequestPermissionOutcome::Selected(selected) => say(&format!("[{}] ", selected.option_id.0))?,
            _ => return responder.respond(PromptResponse::new(StopReason::Cancelled)),
        }
    }
    for word in text.split_inclusive(' ') {
        if cancelled.is_cancelled() {
            return responder.respond(PromptResponse::new(StopReason::Cancelled));
        }
        say(word)?;
    }
    responder.respond(PromptResponse::new(StopReason::EndTurn))
}

fn text_of(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(text) => Some(&text.text),
        _ => None,
    }
}
