//! A client that starts an agent, sends one prompt, prints what comes back and allows everything.
//!
//! `yolo_one_shot_client --command "my-agent --flag" "the prompt"`

use std::io::Write;
use std::str::FromStr;

use greenroom::schema::{
    ContentBlock, InitializeRequest, NewSessionRequest, PermissionOptionKind, PromptRequest, ProtocolVersion,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome,
    SessionNotification, SessionUpdate,
};
use greenroom::{
    AcpAgent, Agent, Client, ConnectionTo, Error, Responder, Result, on_receive_notification, on_receive_request,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some("--command"), Some(command), Some(prompt)) =
        (arguments.next().as_deref(), arguments.next(), arguments.next())
    else {
        return Err(Error::invalid_params().data("usage: yolo_one_shot_client --command COMMAND PROMPT"));
    };
    let mut out = std::io::stdout();
    let stop_reason = Client
        .builder()
        .name("yolo")
        .on_receive_notification(
            async move |update: SessionNotification, _cx: ConnectionTo<Agent>| {
                if let SessionUpdate::AgentMessageChunk(chunk) = update.update
                    && let ContentBlock::Text(text) = chunk.content
                {
                    write!(out, "{}", text.text).and_then(|()| out.flush()).map_err(Error::into_internal_error)?;
                }
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async |ask: RequestPermissionRequest, responder: Responder<RequestPermissionResponse>, _cx| {
                responder.respond(RequestPermissionResponse::new(first_allowed(&ask)))
            },
            on_receive_request!(),
        )
        .connect_with(AcpAgent::from_str(&command)?, async |agent: ConnectionTo<Agent>| {
            agent.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
            let cwd = std::env::current_dir().map_err(Error::into_internal_error)?;
            let session = agent.send_request(NewSessionRequest::new(cwd)).block_task().await?;
            // Handlers run in the order of the wire: when the answer is here, every update that
            // the agent sent before it has been printed.
            let prompt = PromptRequest::new(session.session_id, vec![prompt.into()]);
            Ok(agent.send_request(prompt).block_task().await?.stop_reason)
        })
        .await?;
    writeln!(std::io::stdout(), "\n{stop_reason:?}").map_err(Error::into_internal_error)
}

fn first_allowed(ask: &RequestPermissionRequest) -> RequestPermissionOutcome {
    let allows = |kind: PermissionOptionKind| {
        matches!(kind, PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways)
    };
    match ask.options.iter().find(|option| allows(option.kind)) {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone())),
        None => RequestPermissionOutcome::Cancelled,
    }
}
