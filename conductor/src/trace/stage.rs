//! The actor that writes a recording.
//!
//! Owns: the destination, the lines that were not written yet.
//! Supervised by: the chain. When it dies: restarted, and goes on behind the last line; when it
//! dies too often, the recording ends and the chain goes on.
//! Ordering promise: events are written in the order in which the chain decided about them.

use std::sync::Arc;

use greenroom::runtime::{Flow, Inbox, Stage};
use parking_lot::Mutex;

use super::line::{Lines, lost};
use super::sink::{TraceWriter, count};
use super::tap::{Missing, Record, Weight};

/// The stage of a recording.
pub(crate) struct TraceStage {
    lines: Lines,
    writing: Arc<Writing>,
    ended: bool,
}

/// What the thread that writes shares with the stage. A stage that dies while a thread writes
/// leaves it alone; what is written next, by whichever thread, is what is next.
struct Writing {
    ready: Mutex<Ready>,
    writer: Mutex<TraceWriter>,
}

#[derive(Default)]
struct Ready {
    text: String,
    weights: Vec<Weight>,
    missing: Missing,
}

impl TraceStage {
    pub(crate) fn new(writer: TraceWriter) -> Self {
        let writing = Writing { ready: Mutex::default(), writer: Mutex::new(writer) };
        Self { lines: Lines::default(), writing: Arc::new(writing), ended: false }
    }

    fn format(&mut self, inbox: &mut Inbox<Record>) {
        let mut line = String::new();
        while let Some(record) = inbox.begin() {
            self.lines.write(record, &mut line);
            let Some(record) = inbox.commit() else { break };
            let mut ready = self.writing.ready.lock();
            ready.text.push_str(&line);
            line.clear();
            match record {
                Record::Passed(_, _, weight) | Record::Noise(_, _, _, weight) => ready.weights.push(weight),
                Record::Lost(_) => {}
                Record::End => self.ended = true,
            }
        }
    }
}

impl Writing {
    /// Writes what is ready. Blocks.
    fn write(&self) {
        // First this lock: whoever has it writes what comes next.
        let mut writer = self.writer.lock();
        let Ready { mut text, weights, mut missing } = std::mem::take(&mut *self.ready.lock());
        if let Some(missing) = missing.take() {
            let mut gap = String::new();
            if lost(missing, &mut gap).is_ok() {
                text.insert_str(0, &gap);
            }
        }
        if text.is_empty() {
            return;
        }
        let written = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| writer.write(&text)));
        let missing = written.unwrap_or_else(|_| count(&text));
        self.ready.lock().missing.add(missing);
        drop(weights);
    }
}

impl Stage for TraceStage {
    type Item = Record;

    async fn run(&mut self, inbox: &mut Inbox<Record>) -> Flow {
        self.format(inbox);
        if !self.writing.ready.lock().text.is_empty() {
            let writing = self.writing.clone();
            // Its panics were caught; otherwise the runtime is going down.
            let _ = tokio::task::spawn_blocking(move || writing.write()).await;
        }
        if self.ended { Flow::Finished } else { Flow::Idle }
    }

    fn quarantine(&mut self, record: Record) {
        let missing = match &record {
            Record::Passed(_, _, weight) | Record::Noise(_, _, _, weight) => {
                Missing { events: 1, bytes: weight.bytes() as u64 }
            }
            Record::Lost(missing) => *missing,
            Record::End => {
                self.ended = true;
                return;
            }
        };
        self.writing.ready.lock().missing.add(missing);
    }
}
