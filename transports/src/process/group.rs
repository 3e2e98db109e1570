//! A child process with a process group of its own, on Unix.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid};
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};

/// Writes to the child's stdin.
pub(super) type StdinPipe = pipe::Sender;
/// Reads the child's stdout.
pub(super) type StdoutPipe = pipe::Receiver;
/// Reads the child's stderr.
pub(super) type StderrPipe = pipe::Receiver;

/// First and longest pause between two looks at a group that should be empty. The members are no
/// children of ours, so nobody tells us when they end.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The child and whatever it starts in its group. Dropping it kills all of them at once.
pub(super) struct Group {
    /// `None` once reaped.
    leader: Option<Child>,
    id: Pid,
    exits: SignalStream,
    /// Whether the rest of the group is known to be gone.
    empty: bool,
}

/// Starts the command with three pipes.
pub(super) fn start(mut command: Command) -> io::Result<(Group, StdinPipe, StdoutPipe, StderrPipe)> {
    // Before the start, so that no exit can be missed.
    let exits = signal(SignalKind::child())?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    let id = Pid::from_child(&child);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    // From here on an early return kills what was started.
    let group = Group { leader: Some(child), id, exits, empty: false };
    let missing = || io::Error::other("the child process has no pipes");
    let stdin = pipe::Sender::from_owned_fd(OwnedFd::from(stdin.ok_or_else(missing)?))?;
    let stdout = pipe::Receiver::from_owned_fd(OwnedFd::from(stdout.ok_or_else(missing)?))?;
    let stderr = pipe::Receiver::from_owned_fd(OwnedFd::from(stderr.ok_or_else(missing)?))?;
    Ok((group, stdin, stdout, stderr))
}

/// Reads what the exited child left in the pipe. An error when it is empty.
///
/// Asks the kernel, not the event loop: right after an exit the loop may not have seen yet that
/// the pipe is readable.
pub(super) async fn read_rest(pipe: &mut StderrPipe, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::read(&*pipe, buffer)?)
}

impl Group {
    /// The process id of the child.
    pub(super) fn id(&self) -> u32 {
        self.id.as_raw_pid().unsigned_abs()
    }

    /// Waits until the child itself has ended. It is not reaped yet, so its id, which is the id of
    /// the group, cannot belong to anybody else. Cancel-safe.
    pub(super) async fn exited(&mut self) {
        while !self.has_exited() {
            if self.exits.recv().await.is_none() {
                // The runtime shuts down; whoever polls us is about to be dropped.
                std::future::pending::<()>().await;
            }
        }
    }

    fn has_exited(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error means that there is no such child any more.
        self.leader.is_none() || !matches!(waitid(WaitId::Pid(self.id), look), Ok(None))
    }

    /// Asks every member to end.
    pub(super) fn terminate(&self) {
        self.send(Signal::TERM);
    }

    /// Ends every member.
    pub(super) fn kill(&self) {
        self.send(Signal::KILL);
    }

    fn send(&self, signal: Signal) {
        // Fails only when nobody is left, which is what we want.
        let _ = kill_process_group(self.id, signal);
    }

    /// Takes the exit status of the child, which must have [`exited`](Self::exited).
    pub(super) fn reap(&mut self) -> io::Result<ExitStatus> {
        let Some(mut leader) = self.leader.take() else {
            return Err(io::Error::other("the process was reaped before"));
        };
        leader.wait()
    }

    /// Waits until nobody but the (reaped) child was in the group, or everybody has left it.
    pub(super) async fn emptied(&mut self) {
        let mut pause = FIRST_LOOK;
        while self.has_members() {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        self.empty = true;
    }

    /// Whether somebody in the group is alive.
    ///
    /// The id stays reserved as long as the group has members, so it cannot mean strangers; and
    /// right after the reaping there was no time for the id to come round again.
    fn has_members(&self) -> bool {
        test_kill_process_group(self.id).is_ok() && lives(self.id)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(mut leader) = self.leader.take() else {
            if !self.empty && self.has_members() {
                self.kill();
            }
            return;
        };
        self.kill();
        if !matches!(leader.try_wait(), Ok(None)) {
            return;
        }
        // The kernel ends it within moments. Not here: dropping must not block, and the runtime,
        // which could wait, may be what is going away.
        let reaper = thread::Builder::new().name("reaper".into()).spawn(move || leader.wait());
        // Without a thread the zombie stays until we exit; the process itself is gone all the same.
        drop(reaper);
    }
}

/// Whether a member of the group is more than a zombie. In a container whose first process reaps
/// nobody, orphans stay zombies for ever and would look like members that refuse to end.
///
/// True where the system has no `/proc` in the form that Linux gives it.
fn lives(group: Pid) -> bool {
    let Ok(entries) = fs::read_dir("/proc") else { return true };
    let mut found = false;
    for entry in entries.flatten() {
        let name = entry.file_name();
        if !name.to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let Ok(stat) = fs::read(entry.path().join("stat")) else { continue };
        match state_and_group(&stat) {
            Some((state, id)) if id == group.as_raw_pid() => {
                if !matches!(state, b'Z' | b'X') {
                    return true;
                }
                found = true;
            }
            _ => {}
        }
    }
    // Not even a zombie found although the kernel knows the group: then `/proc` hides it from us.
    !found && test_kill_process_group(group).is_ok()
}

/// State and process group from a line of `/proc/<pid>/stat`. The name before them may contain
/// anything, so they are counted from its last parenthesis.
fn state_and_group(stat: &[u8]) -> Option<(u8, i32)> {
    let end = memchr::memrchr(b')', stat)?;
    let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.bytes().next()?;
    let group = fields.nth(1)?.parse().ok()?;
    Some((state, group))
}

#[cfg(test)]
mod tests {
    use super::state_and_group;

    #[test]
    fn reads_a_stat_line_with_any_name() {
        assert_eq!(state_and_group(b"12 (bash) S 1 34 56 0"), Some((b'S', 34)));
        assert_eq!(state_and_group(b"12 (a) Z 9 8 (b) Z 1 34 56"), Some((b'Z', 34)));
        assert_eq!(state_and_group("12 (中\u{1F600}) R 1 34".as_bytes()), Some((b'R', 34)));
        assert_eq!(state_and_group(b"12 (\xff\xfe) R 1 34"), Some((b'R', 34)));
        for text in ["", "12 (bash", "12 (bash)", "12 (bash) S", "12 (bash) S 1", "12 (bash) S 1 x"] {
            assert_eq!(state_and_group(text.as_bytes()), None, "{text:?}");
        }
    }
}
