//! An agent of protocol version 2 on stdin and stdout: it echoes what it is told.
//!
//! It handles the whole baseline of sessions, keeps them in memory, and replays them from the
//! start. Stdout is the wire; whatever else it has to say belongs on stderr.

mod session;
mod sessions;
mod turn;

use greenroom::schema::v2::{
    AgentCapabilities, CancelSessionNotification, CloseSessionRequest, CloseSessionResponse, Implementation,
    InitializeRequest, InitializeResponse, ListSessionsRequest, ListSessionsResponse, NewSessionRequest,
    NewSessionResponse, PromptRequest, PromptResponse, ResumeSessionRequest, ResumeSessionResponse,
    SessionCapabilities,
};
use greenroom::{Agent, Client, Responder, Result, Stdio, V2ConnectionTo, on_receive_notification, on_receive_request};

use sessions::Sessions;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let sessions = Sessions::default();
    let [new, list, resume, close, prompt] = std::array::from_fn(|_| sessions.clone());
    Agent
        .v2()
        .name("simple-agent-v2")
        .on_receive_request(
            async |request: InitializeRequest, responder: Responder<InitializeResponse>, _cx| {
                // To advertise sessions is to promise all of the methods below.
                let capabilities = AgentCapabilities::new().session(SessionCapabilities::new());
                let info = Implementation::new("simple-agent-v2", env!("CARGO_PKG_VERSION"));
                responder.respond(InitializeResponse::new(request.protocol_version, info).capabilities(capabilities))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSessionRequest, responder: Responder<NewSessionResponse>, _cx| {
                responder.respond(NewSessionResponse::new(new.open(request.cwd)?))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ListSessionsRequest, responder: Responder<ListSessionsResponse>, _cx| {
                responder.respond(ListSessionsResponse::new(list.list(request.cwd.as_ref())))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ResumeSessionRequest,
                        responder: Responder<ResumeSessionResponse>,
                        cx: V2ConnectionTo<Client>| {
                resume.resume(request, &cx)?;
                responder.respond(ResumeSessionResponse::new())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: CloseSessionRequest,
                        responder: Responder<CloseSessionResponse>,
                        cx: V2ConnectionTo<Client>| {
                // Its last updates come before the answer.
                close.close(&request.session_id, &cx)?;
                responder.respond(CloseSessionResponse::new())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder: Responder<PromptResponse>, cx: V2ConnectionTo<Client>| {
                // The work moves into a task, so that a cancellation can come while it goes on.
                if let Some(session) = prompt.submit(request, responder)? {
                    let (sessions, client) = (prompt.clone(), cx.clone());
                    cx.spawn(async move { sessions.work(&session, &client).await })?;
                }
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |cancel: CancelSessionNotification, cx: V2ConnectionTo<Client>| {
                sessions.cancel(&cancel.session_id, &cx)
            },
            on_receive_notification!(),
        )
        .connect_to(Stdio::new())
        .await
}
