//! Several views of one session that the agent has stored: they share what they load, and the session
//! is closed when the last of them is.
//!
//! `v2_session_coordination --command "my-agent --flag" --session-id "existing-session-id"`

use std::io::Write;
use std::str::FromStr;

use greenroom::coordination::{SharedSession, SharedSessions, with_sessions};
use greenroom::schema::ProtocolVersion;
use greenroom::schema::v2::{ContentBlock, Implementation, InitializeRequest, SessionUpdate};
use greenroom::{AcpAgent, Error, Result};

const USAGE: &str = "usage: v2_session_coordination --command COMMAND --session-id ID";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let (mut command, mut session_id) = (None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        match option.as_str() {
            "--command" => command = arguments.next(),
            "--session-id" => session_id = arguments.next(),
            _ => return Err(Error::invalid_params().data(USAGE)),
        }
    }
    let (Some(command), Some(session_id)) = (command, session_id) else {
        return Err(Error::invalid_params().data(USAGE));
    };
    let agent = AcpAgent::from_str(&command)?;
    let info = Implementation::new("v2-session-coordination", env!("CARGO_PKG_VERSION"));
    let initialize = InitializeRequest::new(ProtocolVersion::V2, info);
    let cwd = std::env::current_dir().map_err(Error::into_internal_error)?;
    with_sessions(agent, initialize, cwd, async |sessions| show(&sessions, &session_id).await).await
}

async fn show(sessions: &SharedSessions, id: &str) -> Result<()> {
    // Both wait for the same answer: the agent resumes the session once.
    let (left, right) = (sessions.load(id), sessions.load(id));
    let (left, right) = (left.await?, right.await?);
    say(&format!("Two views share one load of {} updates:", left.log().len()))?;
    said(&left).iter().try_for_each(|line| say(line))?;
    drop(left);
    say(&format!("One view is closed; the other has {} updates.", right.log().len()))?;
    // With the last view, the session is closed. A view that comes now waits for that, and starts
    // afresh.
    drop(right);
    let again = sessions.load(id).await?;
    say(&format!("Both were closed; a fresh load has {} updates:", again.log().len()))?;
    said(&again).iter().try_for_each(|line| say(line))
}

/// What the agent and its user said, a line each. A real view merges what belongs together.
fn said(session: &SharedSession) -> Vec<String> {
    let text = |content: ContentBlock| match content {
        ContentBlock::Text(text) => text.text,
        _ => "(no text)".to_owned(),
    };
    let line = |update| match update {
        SessionUpdate::UserMessageChunk(chunk) => Some(format!("  user: {}", text(chunk.content))),
        SessionUpdate::AgentMessageChunk(chunk) => Some(format!("  agent: {}", text(chunk.content))),
        _ => None,
    };
    session.log().updates().into_iter().filter_map(line).collect()
}

fn say(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").map_err(Error::into_internal_error)
}
