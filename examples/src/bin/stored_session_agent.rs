//! An agent that has stored one session, called `stored`: it resumes it, replays what was said in it,
//! and closes it.
//!
//! It does no more than that, so it does not advertise sessions: an agent that does has the whole
//! baseline, as `simple_agent_v2` shows.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use greenroom::schema::v2::{
    CloseSessionRequest, CloseSessionResponse, ContentBlock, ContentChunk, IdleStateUpdate, Implementation,
    InitializeRequest, InitializeResponse, ReplayFrom, ResumeSessionRequest, ResumeSessionResponse, SessionUpdate,
    StateUpdate, TextContent, UpdateSessionNotification,
};
use greenroom::{Agent, Client, Error, Responder, Result, Stdio, V2ConnectionTo, on_receive_request};

const SESSION: &str = "stored";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let (open, resumes) = (AtomicBool::new(false), AtomicU64::new(0));
    Agent
        .v2()
        .name("stored-session-agent")
        .on_receive_request(
            async |initialize: InitializeRequest, responder: Responder<InitializeResponse>, _cx| {
                let info = Implementation::new("stored-session-agent", env!("CARGO_PKG_VERSION"));
                responder.respond(InitializeResponse::new(initialize.protocol_version, info))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |resume: ResumeSessionRequest,
                   responder: Responder<ResumeSessionResponse>,
                   cx: V2ConnectionTo<Client>| {
                if &*resume.session_id.0 != SESSION {
                    return responder.respond_with_error(Error::invalid_params().data("there is no such session"));
                }
                if open.swap(true, Ordering::Relaxed) {
                    return responder.respond_with_error(Error::invalid_params().data("it is open already"));
                }
                let number = resumes.fetch_add(1, Ordering::Relaxed) + 1;
                let replays = matches!(resume.replay_from, Some(ReplayFrom::Start(_)));
                // What was said comes before the answer, and then how the session is now.
                for update in history(number).into_iter().filter(|_| replays).chain([idle()]) {
                    cx.send_notification(UpdateSessionNotification::new(SESSION, update))?;
                }
                responder.respond(ResumeSessionResponse::new())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |_: CloseSessionRequest, responder: Responder<CloseSessionResponse>, _cx| match open
                .swap(false, Ordering::Relaxed)
            {
                true => responder.respond(CloseSessionResponse::new()),
                false => responder.respond_with_error(Error::invalid_params().data("it is not open")),
            },
            on_receive_request!(),
        )
        .connect_to(Stdio::new())
        .await
}

fn history(resumes: u64) -> [SessionUpdate; 3] {
    let chunk = |text: &str, id: &str| ContentChunk::new(ContentBlock::Text(TextContent::new(text)), id.to_owned());
    [
        SessionUpdate::UserMessageChunk(chunk("Where were we?", "question")),
        SessionUpdate::AgentMessageChunk(chunk("In the middle of it.", "answer")),
        SessionUpdate::AgentMessageChunk(chunk(&format!("(resume number {resumes})"), "note")),
    ]
}

fn idle() -> SessionUpdate {
    SessionUpdate::StateUpdate(StateUpdate::Idle(IdleStateUpdate::new()))
}
