//! A client of protocol version 2 that starts an agent, sends one prompt, prints what the agent
//! said when it is done, and allows nothing.
//!
//! `v2_one_shot_client --command "my-agent --flag" "the prompt"`

mod projection;

use std::io::Write;
use std::str::FromStr;

use greenroom::schema::ProtocolVersion;
use greenroom::schema::v2::{
    CancelledPermissionOutcome, Implementation, InitializeRequest, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SessionId, SessionUpdate, StateUpdate, StopReason, UpdateSessionNotification,
};
use greenroom::{
    AcpAgent, Agent, Client, Error, Responder, Result, V2ConnectionTo, on_receive_notification, on_receive_request,
};
use tokio::sync::mpsc;

use projection::Projection;

const SESSION_NOT_FOUND: i32 = -32002;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some("--command"), Some(command), Some(prompt)) =
        (arguments.next().as_deref(), arguments.next(), arguments.next())
    else {
        return Err(Error::invalid_params().data("usage: v2_one_shot_client --command COMMAND PROMPT"));
    };
    // Updates may come before the answers to what caused them: the handlers are there from the
    // beginning, and put everything into one queue.
    let (updates, mut queue) = mpsc::unbounded_channel();
    Client
        .v2()
        .name("v2-one-shot-client")
        .on_receive_notification(
            async move |update: UpdateSessionNotification, _cx| {
                updates.send(update).map_err(Error::into_internal_error)
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            // Nobody is there who could decide.
            async |_: RequestPermissionRequest, responder: Responder<RequestPermissionResponse>, _cx| {
                let outcome = RequestPermissionOutcome::Cancelled(CancelledPermissionOutcome::new());
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            on_receive_request!(),
        )
        .connect_with(AcpAgent::from_str(&command)?, async |agent: V2ConnectionTo<Agent>| {
            let info = Implementation::new("v2-one-shot-client", env!("CARGO_PKG_VERSION"));
            let initialize = InitializeRequest::new(ProtocolVersion::V2, info);
            if agent.send_request(initialize).block_task().await?.capabilities.session.is_none() {
                return Err(Error::internal_error().data("the agent has no sessions"));
            }
            let session = agent.build_session_cwd()?.start_session().block_task().await?.into_session();
            session.send_prompt(prompt).block_task().await?;
            say("Prompt accepted; waiting for session output and completion...")?;
            let mut projection = Projection::default();
            let reason = tokio::select! {
                biased;
                reason = until_idle(&mut queue, session.session_id(), &mut projection) => reason,
                () = agent.incoming_closed() => return Err(Error::internal_error().data("the agent is gone")),
            };
            projection.messages().try_for_each(say)?;
            say(&format!("Session is idle: {reason:?}"))?;
            match session.close().block_task().await {
                // It is closed either way.
                Err(error) if i32::from(error.code) != SESSION_NOT_FOUND => Err(error),
                _ => Ok(()),
            }
        })
        .await
}

/// Follows the session until its foreground work is done. Work may begin blocked and end without ever
/// running; an idle before it begins is only the state that the session had.
async fn until_idle(
    queue: &mut mpsc::UnboundedReceiver<UpdateSessionNotification>,
    session: &SessionId,
    projection: &mut Projection,
) -> Option<StopReason> {
    let mut active = false;
    while let Some(notification) = queue.recv().await {
        match notification.update {
            _ if notification.session_id != *session => {}
            SessionUpdate::StateUpdate(StateUpdate::Running(_) | StateUpdate::RequiresAction(_)) => active = true,
            SessionUpdate::StateUpdate(StateUpdate::Idle(idle)) if active => return idle.stop_reason,
            update if active => projection.apply(update),
            _ => {}
        }
    }
    // The handler that fills the queue lives as long as the connection.
    std::future::pending().await
}

fn say(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").map_err(Error::into_internal_error)
}
