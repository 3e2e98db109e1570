//! How a child process is brought to its end, politely first.

use std::future::Future;
use std::time::Duration;

use greenroom_actors::link::Exit;
use greenroom_protocol::{Error, LocalError, Origin, Result};
use tokio::sync::{oneshot, watch};

use super::group::Group;
use super::stderr::Stderr;

/// How long each step of ending an agent process may take.
///
/// The connection closes the agent's stdin, which asks every well-behaved agent to end. Then:
/// wait [`eof_grace`](Self::eof_grace), `SIGTERM` to the process group, wait
/// [`term_grace`](Self::term_grace), `SIGKILL` to the group, wait [`kill_grace`](Self::kill_grace).
/// When the agent has ended, by itself too, and others of its group have not, these get `SIGTERM`
/// and `SIGKILL` in the same way.
///
/// Where there are no signals and no process groups, only the process itself is ended, without
/// the `SIGTERM` step having any effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ladder {
    /// After the end of its input; the default is 1 s.
    pub eof_grace: Duration,
    /// After `SIGTERM`; the default is 2 s.
    pub term_grace: Duration,
    /// After `SIGKILL`, before the connection gives up on it; the default is 2 s. A killed process
    /// ends within moments, unless it hangs inside the kernel, for example on a lost disk.
    pub kill_grace: Duration,
}

impl Default for Ladder {
    fn default() -> Self {
        let second = Duration::from_secs(1);
        Self { eof_grace: second, term_grace: 2 * second, kill_grace: 2 * second }
    }
}

/// The step that ended a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// It ended before anybody asked it to.
    OwnExit,
    /// It ended when its input did.
    StdinClosed,
    /// It ended after `SIGTERM`.
    Terminated,
    /// It ended after `SIGKILL`.
    Killed,
}

impl Rung {
    /// The name in [`Exit::rung`] and in error reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OwnExit => "own exit",
            Self::StdinClosed => "stdin closed",
            Self::Terminated => "SIGTERM",
            Self::Killed => "SIGKILL",
        }
    }
}

/// Everything that the driver of one child process owns.
pub(super) struct Watch {
    pub(super) program: String,
    pub(super) group: Group,
    pub(super) stderr: Stderr,
    pub(super) ladder: Ladder,
    pub(super) finish: oneshot::Receiver<()>,
    pub(super) exit: watch::Sender<Option<Exit>>,
}

impl Watch {
    /// Follows the process to its end, and then makes sure that nobody of its group is left.
    ///
    /// # Errors
    /// When it ended with a failure that nobody asked for, or does not end at all.
    pub(super) async fn run(mut self) -> Result<()> {
        let requested = self.until_exit_or_request().await;
        let rung = if requested { self.climb().await? } else { Rung::OwnExit };
        // Now, while the unreaped child reserves the id of the group.
        self.group.terminate();
        self.stderr.drain_rest().await;
        let status = self.group.reap().map_err(|failure| self.lost(failure))?;
        let exit = Exit {
            program: self.program.clone(),
            status: status.to_string(),
            success: status.success(),
            requested,
            rung: rung.as_str(),
            stderr_tail: self.stderr.tail(),
        };
        let outcome = if requested || exit.success { Ok(()) } else { Err(exit.to_error()) };
        self.exit.send_replace(Some(exit));
        self.clear().await;
        outcome
    }

    /// True when the end was requested. A request wins over an exit at the same moment: the exit
    /// is then most likely the answer to the closed stdin.
    async fn until_exit_or_request(&mut self) -> bool {
        let Self { group, stderr, finish, .. } = self;
        tokio::select! {
            biased;
            // An error means that the hook was dropped: nobody can ask any more.
            Ok(()) = finish => true,
            () = group.exited() => false,
            never = stderr.drain() => match never {},
        }
    }

    /// The shutdown, step by step, until the process has ended.
    async fn climb(&mut self) -> Result<Rung> {
        let Self { group, stderr, ladder, .. } = self;
        if within(ladder.eof_grace, stderr, group.exited()).await {
            return Ok(Rung::StdinClosed);
        }
        group.terminate();
        if within(ladder.term_grace, stderr, group.exited()).await {
            return Ok(Rung::Terminated);
        }
        group.kill();
        if within(ladder.kill_grace, stderr, group.exited()).await {
            return Ok(Rung::Killed);
        }
        let program = &self.program;
        let text = format!("agent process {program:?} did not end although it was killed");
        Err(LocalError::new(Origin::Process, text).into())
    }

    /// Ends what the process left behind in its group; `SIGTERM` was sent before.
    async fn clear(&mut self) {
        let Self { group, stderr, ladder, .. } = self;
        if !within(ladder.term_grace, stderr, group.emptied()).await {
            group.kill();
            within(ladder.kill_grace, stderr, group.emptied()).await;
        }
    }

    fn lost(&self, failure: std::io::Error) -> Error {
        let text = format!("the exit status of agent process {:?} is lost", self.program);
        LocalError::new(Origin::Process, text).with_source(failure).into()
    }
}

/// Whether the event comes in time. Reads stderr meanwhile, so that a process that says goodbye
/// at length is not stopped by a full pipe.
async fn within(limit: Duration, stderr: &mut Stderr, event: impl Future<Output = ()>) -> bool {
    tokio::select! {
        biased;
        () = event => true,
        never = stderr.drain() => match never {},
        () = tokio::time::sleep(limit) => false,
    }
}
