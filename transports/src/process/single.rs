//! A child process where there are no process groups: it alone is ended.

use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

/// Writes to the child's stdin.
pub(super) type StdinPipe = ChildStdin;
/// Reads the child's stdout.
pub(super) type StdoutPipe = ChildStdout;
/// Reads the child's stderr.
pub(super) type StderrPipe = ChildStderr;

/// How long a full pipe may take to show that it is one.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// The child. Dropping it ends it at once.
pub(super) struct Group {
    child: Child,
    id: u32,
    status: Option<io::Result<ExitStatus>>,
}

/// Starts the command with three pipes.
pub(super) fn start(command: Command) -> io::Result<(Group, StdinPipe, StdoutPipe, StderrPipe)> {
    let mut command = tokio::process::Command::from(command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let missing = || io::Error::other("the child process has no pipes");
    let stdin = child.stdin.take().ok_or_else(missing)?;
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    let id = child.id().unwrap_or_default();
    Ok((Group { child, id, status: None }, stdin, stdout, stderr))
}

/// Reads what the exited child left in the pipe. An error when it seems to be empty: these pipes
/// cannot be asked, only waited for.
pub(super) async fn read_rest(pipe: &mut StderrPipe, buffer: &mut [u8]) -> io::Result<usize> {
    match tokio::time::timeout(LAST_WORDS, pipe.read(buffer)).await {
        Ok(result) => result,
        Err(_) => Err(io::ErrorKind::WouldBlock.into()),
    }
}

impl Group {
    /// The process id of the child.
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// Waits until the child has ended. Cancel-safe.
    pub(super) async fn exited(&mut self) {
        if self.status.is_none() {
            self.status = Some(self.child.wait().await);
        }
    }

    /// Does nothing: there is no polite signal here.
    pub(super) fn terminate(&self) {}

    /// Ends the child.
    pub(super) fn kill(&mut self) {
        // Fails only when it has ended already.
        let _ = self.child.start_kill();
    }

    /// Takes the exit status of the child, which must have [`exited`](Self::exited).
    pub(super) fn reap(&mut self) -> io::Result<ExitStatus> {
        self.status.take().unwrap_or_else(|| Err(io::Error::other("the process was reaped before")))
    }

    /// Returns at once: there is no group.
    pub(super) async fn emptied(&mut self) {}
}
