//! The transport that starts an agent.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use greenroom_actors::link::{LineDirection, LineTap, Link};
use greenroom_protocol::Error;

use super::config::AcpAgentConfig;
use super::ladder::Ladder;
use super::raw::{self, Child, ChildStderr, ChildStdin, ChildStdout};
use super::spawn::{self, AgentProcess};
use super::stderr;
use super::words;

/// An agent that is started as a child process and spoken to over its stdin and stdout.
///
/// The process gets a process group of its own, and its stderr is always read. When the connection
/// ends, the process is asked to end step by step ([`Ladder`]); when the connection is dropped, its
/// whole group is killed at once. Either way nothing of the group is left, and no zombie. Only a
/// process that leaves the group on purpose (a daemon) outlives it.
///
/// When the process ends by itself, requests that wait fail with an error that says how, in
/// `data.exit`; after a failure the error of the connection has the last lines of stderr too. The
/// environment is inherited; so is the working directory.
#[derive(Clone)]
pub struct AcpAgent {
    config: AcpAgentConfig,
    tap: Option<LineTap>,
    ladder: Ladder,
    stderr_limit: usize,
}

impl AcpAgent {
    /// An agent with this configuration. Nothing is started before the connection is.
    #[must_use]
    pub fn new(config: AcpAgentConfig) -> Self {
        Self { config, tap: None, ladder: Ladder::default(), stderr_limit: stderr::LIMIT }
    }

    /// An agent from words: leading `NAME=value` words are environment variables, the next word is
    /// the program, the rest are its arguments.
    ///
    /// # Errors
    /// `-32602` when there is no program.
    pub fn from_args<I, T>(args: I) -> Result<Self, Error>
    where
        I: IntoIterator<Item = T>,
        T: ToString,
    {
        let mut words = args.into_iter().map(|word| word.to_string());
        let mut variables = Vec::new();
        for word in words.by_ref() {
            match words::assignment(&word) {
                Some((name, value)) => variables.push((name.to_owned(), value.to_owned())),
                None if word.is_empty() => break,
                None => return Ok(Self::new(AcpAgentConfig::new(word).args(words).envs(variables))),
            }
        }
        Err(Error::invalid_params().data("the command line names no program"))
    }

    /// Claude as an agent, through `npx`: downloads the newest version of its adapter when it starts.
    #[must_use]
    pub fn claude_agent() -> Self {
        Self::new(AcpAgentConfig::new("npx").args(["-y", "--", "@zed-industries/claude-agent-acp@latest"]))
    }

    /// Codex as an agent, through `npx`: downloads the newest version of its adapter when it starts.
    #[must_use]
    pub fn codex() -> Self {
        Self::new(AcpAgentConfig::new("npx").args(["-y", "--", "@zed-industries/codex-acp@latest"]))
    }

    /// What is started.
    #[must_use]
    pub fn config(&self) -> &AcpAgentConfig {
        &self.config
    }

    /// What would have been started.
    #[must_use]
    pub fn into_config(self) -> AcpAgentConfig {
        self.config
    }

    /// Shows every line of stdin, stdout and stderr to a callback, without its line end. It runs
    /// between two messages and must not block. Lines are payload: prompts, files, secrets.
    ///
    /// Ordering: lines of one direction come in order; nothing is promised between directions.
    #[must_use]
    pub fn with_debug<F>(mut self, callback: F) -> Self
    where
        F: Fn(&str, LineDirection) + Send + Sync + 'static,
    {
        self.tap = Some(Arc::new(callback));
        self
    }

    /// How long each step of the shutdown may take.
    #[must_use]
    pub fn with_ladder(mut self, ladder: Ladder) -> Self {
        self.ladder = ladder;
        self
    }

    /// How many of the last bytes of stderr are kept for error reports; the default is 64 KiB.
    #[must_use]
    pub fn with_stderr_limit(mut self, bytes: usize) -> Self {
        self.stderr_limit = bytes;
        self
    }

    /// Starts the process and leaves everything else to the caller: its three pipes, and its end.
    ///
    /// Lines are not shown to the callback of [`with_debug`](Self::with_debug).
    ///
    /// # Errors
    /// As [`start`](Self::start).
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled.
    pub fn spawn_process(&self) -> Result<(ChildStdin, ChildStdout, ChildStderr, Child), Error> {
        raw::start(&self.config)
    }

    /// Starts the process now.
    ///
    /// # Errors
    /// `-32603` when the program cannot be started. The error names it; its source says where it was
    /// looked for, which is not for peers.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled.
    pub fn start(self) -> Result<AgentProcess, Error> {
        spawn::start(&self.config, self.tap, self.ladder, self.stderr_limit)
    }

    /// The link of a connection that starts this agent when it opens.
    #[must_use]
    pub fn into_link(self) -> Link {
        Link::opening(async move { Ok(self.start()?.into_link()) })
    }
}

/// Reads a JSON configuration when the text starts with `{`, and a command line otherwise.
///
/// A command line is cut as a shell does it, with quotes and backslash escapes and leading
/// `NAME=value` words, but nothing is expanded.
///
/// # Errors
/// `-32602` for JSON that is no configuration, a quote without its end, or no program.
impl FromStr for AcpAgent {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.starts_with('{') {
            let config: AcpAgentConfig = serde_json::from_str(text).map_err(|error| {
                Error::invalid_params().data(format!("the agent configuration is not valid: {error}"))
            })?;
            if config.command().as_os_str().is_empty() {
                return Err(Error::invalid_params().data("the agent configuration has an empty command"));
            }
            return Ok(Self::new(config));
        }
        Self::from_args(words::split(text).map_err(|error| Error::invalid_params().data(error.to_string()))?)
    }
}

impl fmt::Debug for AcpAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcpAgent")
            .field("config", &self.config)
            .field("debug", &self.tap.is_some())
            .field("ladder", &self.ladder)
            .finish_non_exhaustive()
    }
}
