//! Where a recording goes.

use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use super::event::TraceEvent;
use super::tap::Missing;

/// Takes the events of a recording, for applications that do not want a file.
pub trait WriteEvent: Send + 'static {
    /// Takes one event. Runs on a thread where it may block: the chain goes on, and what does not
    /// fit into memory meanwhile is lost and told as [`TraceEvent::Lost`].
    ///
    /// # Errors
    /// An event that was not taken counts as lost. So does one during which this panics.
    fn write_event(&mut self, event: &TraceEvent) -> io::Result<()>;
}

impl WriteEvent for futures_channel::mpsc::UnboundedSender<TraceEvent> {
    fn write_event(&mut self, event: &TraceEvent) -> io::Result<()> {
        self.unbounded_send(event.clone()).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

/// A destination of recordings that is ready to be written to.
pub struct TraceWriter {
    sink: Sink,
}

enum Sink {
    File(LineFile),
    Lines(Box<dyn WriteLines>),
    Events(Box<dyn WriteEvent>),
}

/// Takes whole lines, for destinations inside of this crate.
pub(crate) trait WriteLines: Send + 'static {
    /// Takes lines, each with its line end.
    fn write_lines(&mut self, lines: &str);
}

impl TraceWriter {
    /// A recording for this destination.
    #[must_use]
    pub fn new<D: WriteEvent>(destination: D) -> Self {
        Self { sink: Sink::Events(Box::new(destination)) }
    }

    /// A recording in this file, which is emptied first. Each event is written through, with the
    /// others that are ready at that moment, as one JSON object and a line end.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn from_path(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self { sink: Sink::File(LineFile { file: File::create(path)?, torn: false }) })
    }

    /// A recording for a destination that takes lines.
    pub(crate) fn lines(destination: impl WriteLines) -> Self {
        Self { sink: Sink::Lines(Box::new(destination)) }
    }

    /// Writes lines. Gives what is missing because it could not be written.
    pub(super) fn write(&mut self, lines: &str) -> Missing {
        match &mut self.sink {
            Sink::File(file) => match file.write(lines) {
                Ok(()) => Missing::default(),
                Err(error) => {
                    tracing::warn!(kind = ?error.kind(), "the trace could not be written");
                    count(lines)
                }
            },
            Sink::Lines(destination) => {
                destination.write_lines(lines);
                Missing::default()
            }
            Sink::Events(destination) => {
                let mut missing = Missing::default();
                for line in lines.lines() {
                    let taken = TraceEvent::from_line(line).is_ok_and(|event| destination.write_event(&event).is_ok());
                    if !taken {
                        missing.add(count(line));
                    }
                }
                missing
            }
        }
    }
}

impl fmt::Debug for TraceWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.sink {
            Sink::File(_) => "file",
            Sink::Lines(_) => "lines",
            Sink::Events(_) => "events",
        };
        f.debug_struct("TraceWriter").field("destination", &kind).finish()
    }
}

/// What is missing when these lines are. A line that tells of lost events stands for them.
pub(super) fn count(lines: &str) -> Missing {
    let mut missing = Missing::default();
    for line in lines.lines() {
        missing.add(match TraceEvent::from_line(line) {
            Ok(TraceEvent::Lost(lost)) => Missing { events: lost.events, bytes: lost.bytes },
            _ => Missing { events: 1, bytes: line.len() as u64 },
        });
    }
    missing
}

/// A file of lines.
struct LineFile {
    file: File,
    /// Set when the last line may not be whole.
    torn: bool,
}

impl LineFile {
    fn write(&mut self, lines: &str) -> io::Result<()> {
        let mended = std::mem::replace(&mut self.torn, true);
        if mended {
            self.file.write_all(b"\n")?;
        }
        self.file.write_all(lines.as_bytes())?;
        self.torn = false;
        Ok(())
    }
}
