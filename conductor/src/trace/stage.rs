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

/// Bytes that are written at once, about: each time a thread has to be woken.
const AT_ONCE: usize = 256 * 1024;

/// The stage of a recording.
pub(crate) struct TraceStage {
    lines: Lines,
    /// Lines that are not handed over yet, and how much of them is whole: a death in the middle of
    /// one leaves a piece behind.
    text: String,
    whole: usize,
    weights: Vec<Weight>,
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
        Self {
            lines: Lines::default(),
            text: String::new(),
            whole: 0,
            weights: Vec::new(),
            writing: Arc::new(writing),
            ended: false,
        }
    }

    fn format(&mut self, inbox: &mut Inbox<Record>) {
        self.text.truncate(self.whole);
        loop {
            while let Some(record) = inbox.begin() {
                self.lines.write(record, &mut self.text);
                let Some(record) = inbox.commit() else { break };
                self.whole = self.text.len();
                match record {
                    Record::Passed(_, _, weight) | Record::Noise(_, _, _, weight) => self.weights.push(weight),
                    Record::Lost(_) => {}
                    Record::End => self.ended = true,
                }
            }
            if self.whole >= AT_ONCE {
                return;
            }
            inbox.refill();
            if inbox.is_empty() {
                return;
            }
        }
    }

    /// Makes what is formatted ready to be written; whether there is anything.
    fn hand_over(&mut self) -> bool {
        let mut ready = self.writing.ready.lock();
        if ready.text.is_empty() {
            ready.text = std::mem::take(&mut self.text);
        } else {
            ready.text.push_str(&self.text);
            self.text.clear();
        }
        self.whole = 0;
        ready.weights.append(&mut self.weights);
        !ready.text.is_empty()
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
        if self.hand_over() {
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
