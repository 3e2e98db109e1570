//! The arguments of a conductor as a value, for programs that bring their own `main`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Parser, Subcommand};

use super::global::Global;
use super::{chain, log};

/// The command line of a conductor: `agent` or `proxy`, and the options before them.
///
/// ```no_run
/// use clap::Parser as _;
/// use greenroom_conductor::ConductorArgs;
///
/// # async fn program() -> Result<(), Box<dyn std::error::Error>> {
/// ConductorArgs::parse().main().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Parser)]
#[command(version, about)]
pub struct ConductorArgs {
    /// Write a log with every message, without its secrets, into a file of --debug-dir.
    #[arg(long)]
    pub debug: bool,
    /// The folder of the log of --debug; the current one by default.
    #[arg(long, value_name = "DIR")]
    pub debug_dir: Option<PathBuf>,
    /// What to log: `warn`, `debug`, or directives as in RUST_LOG. With --debug, into the file.
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,
    /// Record what passes between the components in this file, which is emptied first.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Show what passes between the components in a browser: the address is on stderr.
    #[arg(long)]
    pub serve: bool,
    /// What to be.
    #[command(subcommand)]
    pub command: ConductorCommand,
}

/// What a conductor is to whoever starts it.
#[derive(Clone, Debug, Subcommand)]
pub enum ConductorCommand {
    /// Run a chain of proxies in front of an agent, and be that agent on stdin and stdout.
    Agent {
        /// The name of the chain in logs.
        #[arg(long, short, default_value = chain::NAME)]
        name: String,
        /// The programs from left to right, one command line each; the last one is the agent.
        #[arg(required = true, value_name = "COMPONENT")]
        components: Vec<String>,
    },
    /// Run a chain of proxies as one proxy of a larger chain, on stdin and stdout.
    Proxy {
        /// The name of the chain in logs.
        #[arg(long, short, default_value = chain::NAME)]
        name: String,
        /// The proxies from left to right, one command line each. Without any, everything is passed
        /// on.
        #[arg(value_name = "PROXY")]
        proxies: Vec<String>,
    },
}

impl ConductorArgs {
    /// Runs the chain on stdin and stdout until it is over or this process is asked to end. Starts
    /// logging, unless the program has done so.
    ///
    /// Dropping the future ends the chain at once, its processes included.
    ///
    /// # Errors
    /// A component's command line that is none; a file that cannot be written; the component that
    /// died, with its exit status.
    pub async fn main(self) -> anyhow::Result<()> {
        let Self { debug, debug_dir, log, trace, serve, command } = self;
        let (name, chain) = match command {
            ConductorCommand::Agent { name, components } => (name, Ok(components)),
            ConductorCommand::Proxy { name, proxies } => (name, Err(proxies)),
        };
        let global = Global { trace, serve, debug, debug_dir, log, name: Some(name) };
        log::init(&global).context("debug log")?;
        let ended = match chain {
            Ok(components) => chain::agent(&components, &global).await,
            Err(proxies) => chain::proxy(&proxies, &global).await,
        };
        ended.map_err(|chain::Failed { stage, error }| anyhow::Error::new(error).context(stage))
    }
}
