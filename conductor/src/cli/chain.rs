//! `greenroom agent` and `greenroom proxy`: a chain of programs on stdin and stdout.

use std::process::ExitCode;

use clap::Args;
use greenroom::{Error, Stdio};

use super::global::{Global, Recorded};
use super::{programs, report, terminated};
use crate::trace_viewer::TraceViewer;
use crate::{CommandLineComponents, ConductorHostRole, ConductorImpl};

/// Arguments of `greenroom agent`.
#[derive(Args, Debug)]
pub(super) struct AgentArguments {
    /// The programs from left to right, one command line each; the last one is the agent.
    #[arg(required = true, value_name = "COMPONENT")]
    components: Vec<String>,
}

/// Arguments of `greenroom proxy`.
#[derive(Args, Debug)]
pub(super) struct ProxyArguments {
    /// The proxies from left to right, one command line each. Without any, everything is passed on.
    #[arg(value_name = "PROXY")]
    proxies: Vec<String>,
}

pub(super) async fn agent(arguments: AgentArguments, global: &Global) -> ExitCode {
    let name = global.name.as_deref().unwrap_or("conductor");
    match programs(&arguments.components) {
        Ok(components) => run(ConductorImpl::new_agent(name, CommandLineComponents(components)), global).await,
        Err(error) => wrong(&error),
    }
}

pub(super) async fn proxy(arguments: ProxyArguments, global: &Global) -> ExitCode {
    let name = global.name.as_deref().unwrap_or("conductor");
    match programs(&arguments.proxies) {
        Ok(proxies) => run(ConductorImpl::new_proxy(name, CommandLineComponents(proxies)), global).await,
        Err(error) => wrong(&error),
    }
}

fn wrong(error: &Error) -> ExitCode {
    report::failure("arguments", error);
    ExitCode::from(2)
}

async fn run<Host: ConductorHostRole>(conductor: ConductorImpl<Host>, global: &Global) -> ExitCode
where
    Stdio: greenroom::ConnectTo<Host>,
{
    let Recorded { conductor, viewer } = match global.record(conductor) {
        Ok(recorded) => recorded,
        Err(error) => return report::failure("trace", &Error::into_internal_error(error)),
    };
    let chain = match conductor.start(Stdio::new()).await {
        Ok(chain) => chain,
        Err(error) => return report::failure("start", &error),
    };
    // Dropped, and with it ended, when the chain is over.
    let mut served = tokio::task::JoinSet::new();
    if let Some(viewer) = viewer {
        served.spawn(TraceViewer::with_tree(viewer, chain.tree()).run());
    }
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
