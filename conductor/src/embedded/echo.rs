//! An agent that repeats what it is told.

use std::sync::atomic::{AtomicU64, Ordering};

use greenroom::schema::v1::{
    ContentBlock, ContentChunk, InitializeRequest, InitializeResponse, NewSessionRequest, NewSessionResponse,
    PromptRequest, PromptResponse, SessionNotification, SessionUpdate, StopReason,
};
use greenroom::{Agent, Client, ConnectTo, on_receive_request};

/// An agent that answers each prompt with its text.
#[must_use]
pub fn echo_agent() -> impl ConnectTo<Client> {
    let sessions = AtomicU64::new(0);
    Agent
        .builder()
        .name("echo-agent")
        .on_receive_request(
            async |request: InitializeRequest, responder, _cx| {
                responder.respond(InitializeResponse::new(request.protocol_version))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_: NewSessionRequest, responder, _cx| {
                let number = sessions.fetch_add(1, Ordering::Relaxed) + 1;
                responder.respond(NewSessionResponse::new(format!("echo-{number}")))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: PromptRequest, responder, cx| {
                for block in request.prompt {
                    if let ContentBlock::Text(_) = &block {
                        let update = SessionUpdate::AgentMessageChunk(ContentChunk::new(block));
                        cx.send_notification(SessionNotification::new(request.session_id.clone(), update))?;
                    }
                }
                responder.respond(PromptResponse::new(StopReason::EndTurn))
            },
            on_receive_request!(),
        )
}
