//! The command line of the `greenroom` program.

mod agent;
mod log;
mod prompt;
mod report;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use greenroom::{AcpAgent, Error};

/// Supervised actor trees for the Agent Client Protocol.
#[derive(Debug, Parser)]
#[command(name = "greenroom", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a chain of proxies in front of an agent, and be that agent on stdin and stdout.
    Agent(agent::AgentArguments),
    /// Send one prompt to an agent and print the answer as it comes.
    Prompt(prompt::PromptArguments),
}

/// Runs the program with the arguments of this process.
///
/// Exit status: 0 when all went well, 1 when something failed (said on stderr), 2 when the
/// arguments are wrong.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log::init();
    // One thread: a round trip over pipes then needs no wake-up of another thread.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report::failure("start", &Error::into_internal_error(error)),
    };
    let status = match arguments.command {
        Command::Agent(arguments) => runtime.block_on(agent::run(arguments)),
        Command::Prompt(arguments) => runtime.block_on(prompt::run(arguments)),
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
