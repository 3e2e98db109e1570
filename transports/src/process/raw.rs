//! A started agent process in the hands of the caller, without a connection.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::process::{Command, ExitStatus};
use std::task::{Context, Poll, Waker, ready};

use greenroom_protocol::Error;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};

use super::config::AcpAgentConfig;
use super::group::{self, Group, StderrPipe, StdoutPipe};
use super::spawn::refused;
use super::stdin::Stdin;

/// Starts the program.
pub(super) fn start(config: &AcpAgentConfig) -> Result<(ChildStdin, ChildStdout, ChildStderr, Child), Error> {
    let mut command = Command::new(config.command());
    command.args(config.arguments()).envs(config.environment());
    let (group, stdin, stdout, stderr) = group::start(command).map_err(|failure| refused(config, failure))?;
    let child = Child { group, status: None };
    Ok((ChildStdin(Stdin::new(stdin)), ChildStdout(stdout), ChildStderr(stderr), child))
}

/// An agent process. Dropping it kills the process and its group at once.
pub struct Child {
    group: Group,
    status: Option<ExitStatus>,
}

impl Child {
    /// The process id, which on Unix is also the id of its process group.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.group.id()
    }

    /// Kills the process and its group.
    ///
    /// # Errors
    /// `InvalidInput` when the process has ended before and that was seen.
    pub fn kill(&mut self) -> io::Result<()> {
        if self.status.is_some() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the process has ended"));
        }
        self.group.kill();
        Ok(())
    }

    /// The exit status, if the process has ended. Does not wait.
    ///
    /// # Errors
    /// When the operating system has lost the status.
    pub fn try_status(&mut self) -> io::Result<Option<ExitStatus>> {
        let mut status = pin!(self.status());
        match status.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(status) => status.map(Some),
            Poll::Pending => Ok(None),
        }
    }

    /// Waits for the end of the process. Cancel-safe. Says the same again when asked again.
    ///
    /// Read stdout and stderr meanwhile: a process that fills a pipe waits for its reader.
    ///
    /// # Errors
    /// When the operating system has lost the status.
    pub async fn status(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        self.group.exited().await;
        let status = self.group.reap()?;
        self.status = Some(status);
        Ok(status)
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").field("id", &self.id()).field("status", &self.status).finish()
    }
}

/// Writes to the stdin of a process. Closing it is the end of that input.
pub struct ChildStdin(Stdin);

/// Reads the stdout of a process.
pub struct ChildStdout(StdoutPipe);

/// Reads the stderr of a process.
pub struct ChildStderr(StderrPipe);

impl futures_io::AsyncWrite for ChildStdin {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// What all reading ends have in common.
macro_rules! reading_end {
    ($($name:ident),*) => {$(
        impl futures_io::AsyncRead for $name {
            fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
                let mut buffer = ReadBuf::new(room);
                ready!(Pin::new(&mut self.0).poll_read(cx, &mut buffer))?;
                Poll::Ready(Ok(buffer.filled().len()))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

reading_end!(ChildStdout, ChildStderr);

impl fmt::Debug for ChildStdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildStdin").finish_non_exhaustive()
    }
}
