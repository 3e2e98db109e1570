//! `greenroom trace`: looking at recordings.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use greenroom::Error;

use super::{report, terminated};
use crate::trace_viewer::{TraceViewerConfig, serve_file};

/// Arguments of `greenroom trace`.
#[derive(Args, Debug)]
pub(super) struct TraceArguments {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    /// Show a recording in the browser, also while it grows. Ends when it is interrupted.
    View {
        /// The recording.
        file: PathBuf,
        /// The port on 127.0.0.1; one that is free by default.
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// Say the address only; do not open a browser.
        #[arg(long)]
        no_open: bool,
    },
}

pub(super) async fn run(arguments: TraceArguments) -> ExitCode {
    let TraceCommand::View { file, port, no_open } = arguments.command;
    let name = file.display().to_string();
    let config = TraceViewerConfig { port, open_browser: !no_open };
    let served = tokio::select! {
        served = serve_file(file, config) => served,
        () = terminated() => return ExitCode::SUCCESS,
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let error = Error::internal_error().data(error.to_string());
            report::failure(&format!("trace view {name}"), &error)
        }
    }
}
