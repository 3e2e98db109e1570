//! Logging to stderr, and with `--debug` to a file, that can never block the protocol.
//!
//! Some clients open a pipe for our stderr and never read it. Lines go through a short queue to a
//! thread of their own; when the queue is full they are dropped and counted.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, atomic::AtomicU64, atomic::Ordering};

use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use super::global::Global;

/// Lines that wait for stderr.
const QUEUE: usize = 256;

/// What the log of `--debug` has: everything that is said, and every message, redacted.
const DEBUG: &str = "debug,greenroom::wire=trace";

/// Starts logging. `--log`, else `RUST_LOG`, chooses what is shown; warnings by default. With
/// `--debug` there is a file beside it, for which `--log` counts.
///
/// # Errors
/// When the file of `--debug` cannot be created.
pub(super) fn init(global: &Global) -> io::Result<()> {
    let file = match global.debug {
        true => Some(debug_file(global)?),
        false => None,
    };
    let chosen = |log: &Option<String>| log.as_deref().map(EnvFilter::new);
    let shown = if file.is_some() { None } else { chosen(&global.log) };
    let shown = shown.or_else(|| EnvFilter::try_from_default_env().ok()).unwrap_or_else(|| EnvFilter::new("warn"));
    let stderr = tracing_subscriber::fmt::layer().with_ansi(false).with_target(false).without_time();
    let stderr = stderr.with_writer(Lossy::start(io::stderr())).with_filter(shown);
    let debug = file.map(|file| {
        let filter = chosen(&global.log).unwrap_or_else(|| EnvFilter::new(DEBUG));
        let layer =
            tracing_subscriber::fmt::layer().with_ansi(false).with_timer(tracing_subscriber::fmt::time::uptime());
        layer.with_writer(Lossy::start(file)).with_filter(filter)
    });
    // Fails only when a host has set up logging already, which then stays.
    let _ = tracing_subscriber::registry().with(stderr).with(debug).try_init();
    Ok(())
}

fn debug_file(global: &Global) -> io::Result<File> {
    let folder = global.debug_dir.clone().unwrap_or_else(|| ".".into());
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!("greenroom-{}.log", std::process::id()));
    let file =
        File::create(&path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    let _ = writeln!(io::stderr(), "debug log: {}", path.display());
    Ok(file)
}

/// Writes whole lines, or none.
#[derive(Clone)]
struct Lossy {
    lines: SyncSender<Vec<u8>>,
    dropped: Arc<AtomicU64>,
}

impl Lossy {
    fn start(mut destination: impl io::Write + Send + 'static) -> Self {
        let (lines, queue) = sync_channel::<Vec<u8>>(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let lost = dropped.clone();
        // Without the thread nothing is shown, which is the right way to fail for a log.
        let _ = std::thread::Builder::new().name("log".into()).spawn(move || {
            for line in queue {
                let missing = lost.swap(0, Ordering::Relaxed);
                if missing > 0 {
                    let _ = writeln!(destination, "({missing} log lines were dropped)");
                }
                let _ = destination.write_all(&line);
            }
        });
        Self { lines, dropped }
    }
}

impl io::Write for Lossy {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.lines.try_send(line.to_vec()) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lossy {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
