//! Every stable request to a client, but elicitations.

use std::sync::Arc;

use greenroom::schema::v1::{
    CreateTerminalRequest, KillTerminalRequest, PermissionOption, PermissionOptionKind, ReadTextFileRequest,
    ReleaseTerminalRequest, RequestPermissionOutcome, RequestPermissionRequest, SessionUpdate, Terminal, TerminalId,
    TerminalOutputRequest, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
    WaitForTerminalExitRequest, WriteTextFileRequest,
};

use crate::testy::v1::turn::{End, Turn};

const WRITTEN: &str = "written by testy\n";

pub(super) async fn run(turn: &mut Turn) -> Result<(), End> {
    permission(turn).await?;
    files(turn).await?;
    terminal(turn).await
}

async fn permission(turn: &mut Turn) -> Result<(), End> {
    let call = ToolCallUpdateFields::new().title("Do something").kind(ToolKind::Execute);
    let options = vec![
        PermissionOption::new("allow-once", "Allow once", PermissionOptionKind::AllowOnce),
        PermissionOption::new("allow-always", "Always allow", PermissionOptionKind::AllowAlways),
        PermissionOption::new("reject-once", "Reject once", PermissionOptionKind::RejectOnce),
        PermissionOption::new("reject-always", "Always reject", PermissionOptionKind::RejectAlways),
    ];
    let call = ToolCallUpdate::new(turn.id("permission"), call.status(ToolCallStatus::Pending));
    let request = RequestPermissionRequest::new(turn.session.clone(), call, options);
    match turn.ask(request).await?.outcome {
        RequestPermissionOutcome::Selected(selected) => {
            turn.say(format!("session/request_permission: selected {}", selected.option_id.0))?;
        }
        // A client answers so when it cancels the turn; the notification is on its way or lost.
        RequestPermissionOutcome::Cancelled => return Err(End::Cancelled),
        _ => turn.say("session/request_permission: an outcome of another version")?,
    }
    Ok(())
}

async fn files(turn: &mut Turn) -> Result<(), End> {
    let path = turn.root.file("testy-write.txt")?;
    turn.ask(WriteTextFileRequest::new(turn.session.clone(), &path, WRITTEN)).await?;
    turn.say("fs/write_text_file: written")?;
    let read = turn.ask(ReadTextFileRequest::new(turn.session.clone(), &path)).await?.content;
    let verdict = if read == WRITTEN { "what was written" } else { "something else than was written" };
    turn.say(format!("fs/read_text_file: {verdict}"))?;
    Ok(())
}

async fn terminal(turn: &mut Turn) -> Result<(), End> {
    let session = turn.session.clone();
    let create = CreateTerminalRequest::new(session.clone(), "echo")
        .args(vec!["testy".to_owned()])
        .cwd(turn.root.folder().to_path_buf())
        .output_byte_limit(4096);
    let id = turn.ask(create).await?.terminal_id;
    turn.say("terminal/create: created")?;
    turn.update(shown(turn.id("terminal"), &id))?;
    let output = turn.ask(TerminalOutputRequest::new(session.clone(), id.clone())).await?;
    // How much there is by now depends on the client's machine, so the text is not repeated.
    let all = if output.truncated { "a part of it" } else { "all of it" };
    turn.say(format!("terminal/output: {all}"))?;
    let status = turn.ask(WaitForTerminalExitRequest::new(session.clone(), id.clone())).await?.exit_status;
    let exit = match (status.exit_code, status.signal) {
        (Some(code), _) => format!("code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown".to_owned(),
    };
    turn.say(format!("terminal/wait_for_exit: {exit}"))?;
    turn.ask(KillTerminalRequest::new(session.clone(), id.clone())).await?;
    turn.say("terminal/kill: done")?;
    turn.ask(ReleaseTerminalRequest::new(session, id)).await?;
    turn.say("terminal/release: released")?;
    Ok(())
}

/// A tool call that shows the terminal.
fn shown(call: Arc<str>, terminal: &TerminalId) -> SessionUpdate {
    SessionUpdate::ToolCall(
        ToolCall::new(call, "Run echo")
            .name("testy_run")
            .kind(ToolKind::Execute)
            .status(ToolCallStatus::InProgress)
            .content(vec![ToolCallContent::Terminal(Terminal::new(terminal.clone()))]),
    )
}
