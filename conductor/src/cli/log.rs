//! Logging to stderr that can never block the protocol.
//!
//! Some clients open a pipe for our stderr and never read it. Lines go through a short queue to a
//! thread of their own; when the queue is full they are dropped and counted.

use std::io::{self, Write as _};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, atomic::AtomicU64, atomic::Ordering};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Lines that wait for stderr.
const QUEUE: usize = 256;

/// Starts logging. `RUST_LOG` chooses what is shown; warnings by default.
pub(super) fn init() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    // Fails only when a host has set up logging already, which then stays.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .with_writer(Lossy::start())
        .try_init();
}

/// Writes whole lines, or none.
#[derive(Clone)]
struct Lossy {
    lines: SyncSender<Vec<u8>>,
    dropped: Arc<AtomicU64>,
}

impl Lossy {
    fn start() -> Self {
        let (lines, queue) = sync_channel::<Vec<u8>>(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let lost = dropped.clone();
        // Without the thread nothing is shown, which is the right way to fail for a log.
        let _ = std::thread::Builder::new().name("log".into()).spawn(move || {
            for line in queue {
                let mut stderr = io::stderr().lock();
                let missing = lost.swap(0, Ordering::Relaxed);
                if missing > 0 {
                    let _ = writeln!(stderr, "({missing} log lines were dropped)");
                }
                let _ = stderr.write_all(&line);
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
