//! A viewer of recordings in the browser: one page, served to this machine only.
//!
//! The server answers `GET` on a loopback address, and nothing else. It checks `Host` and `Origin`,
//! so that a page of another site cannot reach it through the browser, and it gives events only to
//! who has the token: the page finds it in the fragment of its address, which no browser sends
//! anywhere. Recordings hold prompts and files; the token is as secret as they are.

mod http;
mod server;
mod source;

use std::future::Future;
use std::io::{self, Write as _};
use std::path::PathBuf;

pub use server::TraceViewer;
pub use source::{TraceHandle, TraceSource};

/// The page.
pub const VIEWER_HTML: &str = include_str!("page.html");

/// How to serve a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceViewerConfig {
    /// The port on 127.0.0.1; 0 takes one that is free.
    pub port: u16,
    /// Whether to show the page in the browser of this desktop.
    pub open_browser: bool,
}

impl Default for TraceViewerConfig {
    fn default() -> Self {
        Self { port: 0, open_browser: true }
    }
}

/// Shows a recording in a file, also while it grows. Says the address on stderr. Runs until it is
/// dropped.
///
/// # Errors
/// When the file is not there, or the port is taken.
pub async fn serve_file(path: PathBuf, config: TraceViewerConfig) -> anyhow::Result<()> {
    std::fs::metadata(&path)?;
    let viewer = TraceViewer::bind(TraceSource::File(path), config)?;
    announce(&viewer);
    Ok(viewer.run().await?)
}

/// Shows events that the caller pushes. Says the address on stderr. The server runs while the
/// future is driven.
///
/// # Errors
/// When the port is taken.
pub fn serve_memory(
    config: TraceViewerConfig,
) -> anyhow::Result<(TraceHandle, impl Future<Output = anyhow::Result<()>> + Send)> {
    let handle = TraceHandle::default();
    let viewer = TraceViewer::bind(TraceSource::Memory(handle.clone()), config)?;
    announce(&viewer);
    let server = viewer.run();
    Ok((handle, async move { Ok(server.await?) }))
}

fn announce(viewer: &TraceViewer) {
    // A terminal that is gone is no reason to fail.
    let _ = writeln!(io::stderr(), "trace viewer: {}", viewer.url());
}
