//! `greenroom agent`: a chain of programs, seen as one agent.

use std::process::ExitCode;

use clap::Args;
use greenroom::Stdio;

use super::{programs, report, terminated};
use crate::{CommandLineComponents, ConductorImpl};

/// Arguments of `greenroom agent`.
#[derive(Args, Debug)]
pub(super) struct AgentArguments {
    /// The programs from left to right, one command line each; the last one is the agent.
    #[arg(required = true, value_name = "COMPONENT")]
    components: Vec<String>,
    /// The name of the chain in logs.
    #[arg(long, default_value = "conductor")]
    name: String,
}

pub(super) async fn run(arguments: AgentArguments) -> ExitCode {
    let components = match programs(&arguments.components) {
        Ok(components) => components,
        Err(error) => {
            report::failure("arguments", &error);
            return ExitCode::from(2);
        }
    };
    let conductor = ConductorImpl::new_agent(arguments.name, CommandLineComponents(components));
    let chain = match conductor.start(Stdio::new()).await {
        Ok(chain) => chain,
        Err(error) => return report::failure("start", &error),
    };
    tokio::select! {
        result = chain.closed() => match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => report::failure("chain", &error),
        },
        () = terminated() => {
            // Orderly, as if the client had closed its input: children get their time to end.
            chain.finish();
            tokio::select! {
                _ = chain.closed() => {}
                () = terminated() => {}
            }
            ExitCode::SUCCESS
        }
    }
}
