//! Starting an agent process, and saying clearly why it could not be started.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use greenroom_actors::link::{ByteReader, ByteWriter, Exit, LineTap, Link};
use greenroom_actors::program_name;
use greenroom_protocol::{ConnectionDriver, Error, LocalError, Origin};
use tokio::sync::{oneshot, watch};

use super::config::AcpAgentConfig;
use super::group;
use super::ladder::{Ladder, Watch};
use super::stderr::Stderr;
use super::stdin::Stdin;

/// A started agent process, in parts.
///
/// Dropping `driver` kills the process and its group at once.
#[non_exhaustive]
pub struct AgentProcess {
    /// Writes to its stdin. Shutting it down, or dropping it, is the end of its input.
    pub stdin: ByteWriter,
    /// Reads its stdout.
    pub stdout: ByteReader,
    /// Reads its stderr and waits for its exit. Asked to finish, it ends the process with the
    /// steps of the [`Ladder`]; the first step expects `stdin` to be shut down or dropped, by whoever has it.
    ///
    /// Resolves when the process is reaped and its group is empty: `Ok` after a success or a
    /// requested end, an error with program and status otherwise, whose source is the [`Exit`].
    pub driver: ConnectionDriver,
    /// How it ended, as soon as that is known.
    pub exit: watch::Receiver<Option<Exit>>,
    /// The process id, which is also the id of its process group.
    pub id: u32,
    tap: Option<LineTap>,
}

impl AgentProcess {
    /// The link of a connection to this process.
    #[must_use]
    pub fn into_link(self) -> Link {
        let link = Link::bytes(self.stdout, self.stdin)
            .with_driver(self.driver)
            .with_driver_kind("child-process")
            .with_exit(self.exit);
        match self.tap {
            Some(tap) => link.with_tap(tap),
            None => link,
        }
    }
}

impl fmt::Debug for AgentProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentProcess").field("id", &self.id).field("driver", &self.driver).finish_non_exhaustive()
    }
}

/// Starts the process with its pipes and its driver.
pub(super) fn start(
    config: &AcpAgentConfig,
    tap: Option<LineTap>,
    ladder: Ladder,
    stderr_limit: usize,
) -> Result<AgentProcess, Error> {
    let mut command = Command::new(config.command());
    command.args(config.arguments()).envs(config.environment());
    let (group, stdin, stdout, stderr) = group::start(command).map_err(|failure| refused(config, failure))?;
    let (finish_hook, finish) = oneshot::channel();
    let (exit, exit_seen) = watch::channel(None);
    let id = group.id();
    let watch = Watch {
        program: config.command().display().to_string(),
        group,
        stderr: Stderr::new(stderr, tap.clone(), stderr_limit),
        ladder,
        finish,
        exit,
    };
    let driver = ConnectionDriver::with_finish(watch.run(), move || {
        // The receiver is gone when the process has ended already.
        let _ = finish_hook.send(());
    });
    Ok(AgentProcess { stdin: Box::new(Stdin::new(stdin)), stdout: Box::new(stdout), driver, exit: exit_seen, id, tap })
}

/// Why the program could not be started: for peers its name and the kind of failure, in the source
/// where it was looked for and what the operating system says.
pub(super) fn refused(config: &AcpAgentConfig, failure: io::Error) -> Error {
    let program = config.command().display().to_string();
    let (reason, detail) = why(config, &failure);
    let name = program_name(&program);
    let local = LocalError::new(Origin::NotStarted, format!("cannot start agent program {program:?}: {detail}"));
    let mut error = Error::from(local.with_source(failure))
        .data(serde_json::json!({ "reason": Origin::NotStarted.reason(), "program": name }));
    error.message = format!("cannot start agent program {name:?}: {reason}");
    error
}

/// The reason in words that a peer may see, and with everything that is known.
fn why(config: &AcpAgentConfig, failure: &io::Error) -> (String, String) {
    let twice = |text: &str| (text.to_owned(), text.to_owned());
    let named_by_path = config.command().components().count() != 1;
    if failure.kind() != io::ErrorKind::NotFound {
        return (failure.kind().to_string(), failure.to_string());
    }
    if named_by_path {
        return if config.command().exists() {
            twice("the file is there, but not the interpreter or loader that it names")
        } else {
            twice("there is no such file")
        };
    }
    let tried = search_path(config);
    if let Some(file) = tried.iter().map(|folder| folder.join(config.command())).find(|file| file.is_file()) {
        let detail = format!("{} names an interpreter that is missing", file.display());
        return ("it names an interpreter that is missing".to_owned(), detail);
    }
    if tried.is_empty() {
        return twice("PATH is empty");
    }
    let folders: Vec<_> = tried.iter().map(|folder| folder.display().to_string()).collect();
    ("not in any folder of PATH".to_owned(), format!("not in any folder of PATH ({})", folders.join(", ")))
}

/// The folders in which the program was looked for: those of the child, if it gets its own.
fn search_path(config: &AcpAgentConfig) -> Vec<PathBuf> {
    let path = config.environment().get("PATH").map(OsString::from).or_else(|| env::var_os("PATH"));
    path.map(|path| env::split_paths(&path).collect()).unwrap_or_default()
}
