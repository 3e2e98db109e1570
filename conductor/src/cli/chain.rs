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
    pub(super) components: Vec<String>,
}

/// Arguments of `greenroom proxy`.
#[derive(Args, Debug)]
pub(super) struct ProxyArguments {
    /// The proxies from left to right, one command line each. Without any, everything is passed on.
    #[arg(value_name = "PROXY")]
    pub(super) proxies: Vec<String>,
}

/// The name of a chain that was given none.
pub(super) const NAME: &str = "conductor";

/// Where a chain was when it failed.
pub(super) struct Failed {
    pub(super) stage: &'static str,
    pub(super) error: Error,
}

/// The stage at which nothing was started.
const ARGUMENTS: &str = "arguments";

impl Failed {
    fn at(stage: &'static str) -> impl Fn(Error) -> Self {
        move |error| Self { stage, error }
    }
}

/// Says what went wrong, if anything did.
pub(super) fn status(ended: Result<(), Failed>) -> ExitCode {
    let Err(Failed { stage, error }) = ended else { return ExitCode::SUCCESS };
    let status = report::failure(stage, &error);
    if stage == ARGUMENTS { ExitCode::from(2) } else { status }
}

pub(super) async fn agent(components: &[String], global: &Global) -> Result<(), Failed> {
    let components = programs(components).map_err(Failed::at(ARGUMENTS))?;
    let name = global.name.as_deref().unwrap_or(NAME);
    run(ConductorImpl::new_agent(name, CommandLineComponents(components)), global).await
}

pub(super) async fn proxy(proxies: &[String], global: &Global) -> Result<(), Failed> {
    let proxies = programs(proxies).map_err(Failed::at(ARGUMENTS))?;
    let name = global.name.as_deref().unwrap_or(NAME);
    run(ConductorImpl::new_proxy(name, CommandLineComponents(proxies)), global).await
}

async fn run<Host: ConductorHostRole>(conductor: ConductorImpl<Host>, global: &Global) -> Result<(), Failed>
where
    Stdio: greenroom::ConnectTo<Host>,
{
    let recorded = global.record(conductor).map_err(|error| Failed::at("trace")(Error::into_internal_error(error)))?;
    let Recorded { conductor, viewer } = recorded;
    let chain = conductor.start(Stdio::new()).await.map_err(Failed::at("start"))?;
    // Dropped, and with it ended, when the chain is over.
    let mut served = tokio::task::JoinSet::new();
    if let Some(viewer) = viewer {
        served.spawn(TraceViewer::with_tree(viewer, chain.tree()).run());
    }
    tokio::select! {
        result = chain.closed() => result.map_err(Failed::at("chain")),
        () = terminated() => {
            // Orderly, as if the client had closed its input: children get their time to end.
            chain.finish();
            tokio::select! {
                _ = chain.closed() => {}
                () = terminated() => {}
            }
            Ok(())
        }
    }
}
