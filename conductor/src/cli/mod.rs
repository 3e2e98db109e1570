//! The command line of the `greenroom` program.

mod chain;
mod documented;
mod global;
mod log;
mod prompt;
mod report;
mod shell;
mod trace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use greenroom::{AcpAgent, Error};

pub use documented::{ConductorArgs, ConductorCommand};

/// What `--help` says about the end.
const AFTER_HELP: &str = "\
Exit status:
  0  all went well: the chain was ended by its client, the prompt was answered
  1  something failed: a component died or could not be started, a file could not be written
     (stderr says what, where it was looked for, and the last words of the component)
  2  the arguments are wrong; nothing was started

RUST_LOG chooses what is logged where --log does not; warnings by default.";

/// Supervised actor trees for the Agent Client Protocol.
#[derive(Debug, Parser)]
#[command(name = "greenroom", version, about, after_help = AFTER_HELP)]
struct Arguments {
    #[command(flatten)]
    global: global::Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a chain of proxies in front of an agent, and be that agent on stdin and stdout.
    Agent(chain::AgentArguments),
    /// Run a chain of proxies as one proxy of a larger chain, on stdin and stdout.
    Proxy(chain::ProxyArguments),
    /// Send one prompt to an agent and print the answer as it comes.
    Prompt(prompt::PromptArguments),
    /// Look at recordings.
    Trace(trace::TraceArguments),
    /// Print the completions for a shell.
    Completions(shell::CompletionArguments),
    /// Print the manual page.
    Man,
}

impl Command {
    /// Whether there is something to record.
    fn runs_a_chain(&self) -> bool {
        match self {
            Self::Agent(_) | Self::Proxy(_) | Self::Prompt(_) => true,
            Self::Trace(_) | Self::Completions(_) | Self::Man => false,
        }
    }
}

/// Runs the program with the arguments of this process.
///
/// Exit status: 0 when all went well, 1 when something failed (said on stderr), 2 when the
/// arguments are wrong, as `--help` says.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.global.records() && !arguments.command.runs_a_chain() {
        let reason = "--trace and --serve record a chain, and this subcommand runs none: leave them out";
        report::failure("arguments", &Error::invalid_params().data(reason));
        return ExitCode::from(2);
    }
    if let Err(error) = log::init(&arguments.global) {
        return report::failure("debug log", &Error::into_internal_error(error));
    }
    // One thread: a round trip over pipes then needs no wake-up of another thread.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report::failure("start", &Error::into_internal_error(error)),
    };
    let global = arguments.global;
    let status = match arguments.command {
        Command::Agent(arguments) => chain::status(runtime.block_on(chain::agent(&arguments.components, &global))),
        Command::Proxy(arguments) => chain::status(runtime.block_on(chain::proxy(&arguments.proxies, &global))),
        Command::Prompt(arguments) => runtime.block_on(prompt::run(arguments, &global)),
        Command::Trace(arguments) => runtime.block_on(trace::run(arguments)),
        Command::Completions(arguments) => shell::completions(&arguments),
        Command::Man => shell::manual(),
    };
    // Nothing of ours is left to wait for; a blocked read of a terminal must not keep us.
    runtime.shutdown_background();
    status
}

/// Reads component commands; the error says which one is wrong.
fn programs(commands: &[String]) -> Result<Vec<AcpAgent>, Error> {
    commands
        .iter()
        .enumerate()
        .map(|(index, command)| {
            command.parse::<AcpAgent>().map_err(|error| {
                // Not the command itself: it may hold secrets, and this text ends in logs.
                Error::invalid_params().data(format!("component {} is no command line: {error}", index + 1))
            })
        })
        .collect()
}

/// Resolves when the process is asked to end.
async fn terminated() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut term), Ok(mut interrupt), Ok(mut hangup)) =
            (signal(SignalKind::terminate()), signal(SignalKind::interrupt()), signal(SignalKind::hangup()))
        else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }
    #[cfg(not(unix))]
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
