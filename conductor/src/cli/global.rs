//! Options of every subcommand.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;

use crate::trace::TraceWriter;
use crate::trace_viewer::{TraceHandle, TraceSource, TraceViewer, TraceViewerConfig};
use crate::{ConductorHostRole, ConductorImpl};

/// Options that stand before the subcommand, or behind it.
#[derive(Args, Debug)]
pub(super) struct Global {
    /// Record what passes between the components in this file, which is emptied first. It will
    /// hold prompts and files.
    #[arg(long, value_name = "FILE", global = true)]
    pub(super) trace: Option<PathBuf>,
    /// Show what passes between the components in a browser, while the chain runs: the address is
    /// on stderr.
    #[arg(long, global = true)]
    pub(super) serve: bool,
    /// Write a log with every message, without its secrets, into a file of --debug-dir.
    #[arg(long, global = true)]
    pub(super) debug: bool,
    /// The folder of the log of --debug; the current one by default.
    #[arg(long, value_name = "DIR", global = true)]
    pub(super) debug_dir: Option<PathBuf>,
    /// What to log: `warn`, `debug`, or directives as in RUST_LOG. With --debug, into the file.
    #[arg(long, value_name = "LEVEL", global = true)]
    pub(super) log: Option<String>,
    /// The name of the chain in logs.
    #[arg(long, short, value_name = "NAME", global = true)]
    pub(super) name: Option<String>,
}

/// A conductor that records, and what shows the recording.
pub(super) struct Recorded<Host: ConductorHostRole> {
    pub(super) conductor: ConductorImpl<Host>,
    pub(super) viewer: Option<TraceViewer>,
}

impl Global {
    /// Whether a chain would be recorded.
    pub(super) fn records(&self) -> bool {
        self.trace.is_some() || self.serve
    }

    /// Records what these options ask for.
    ///
    /// # Errors
    /// When the file cannot be created, or there is no port for the viewer.
    pub(super) fn record<Host: ConductorHostRole>(&self, conductor: ConductorImpl<Host>) -> io::Result<Recorded<Host>> {
        let memory = TraceHandle::default();
        let conductor = match &self.trace {
            Some(path) => {
                let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
                conductor.trace_to_path(path).map_err(named)?
            }
            None if self.serve => conductor.with_trace_writer(TraceWriter::lines(memory.clone())),
            None => conductor,
        };
        let viewer = if self.serve {
            let source = self.trace.clone().map_or(TraceSource::Memory(memory), TraceSource::File);
            // A program that an editor starts does not open windows by itself.
            let viewer = TraceViewer::bind(source, TraceViewerConfig { port: 0, open_browser: false })?;
            let _ = writeln!(io::stderr(), "trace viewer: {}", viewer.url());
            Some(viewer)
        } else {
            None
        };
        Ok(Recorded { conductor, viewer })
    }
}
