//! Where events enter a recording: never waits, and never holds more than its bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom::runtime::Mailbox;
use tokio::time::{Duration, Instant};

use crate::router::{Party, Passage};

/// Bytes of events that may wait to be written.
const BOUND: usize = 8 * 1024 * 1024;

/// One thing to write.
pub(crate) enum Record {
    /// A message, and when it passed.
    Passed(Duration, Passage, Weight),
    /// Something that was no message.
    Noise(Duration, Party, usize, Weight),
    /// Events that did not fit.
    Lost(Missing),
    /// Nothing more comes.
    End,
}

/// Events that are not in the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

impl Missing {
    pub(crate) fn add(&mut self, other: Self) {
        self.events += other.events;
        self.bytes += other.bytes;
    }

    pub(crate) fn take(&mut self) -> Option<Self> {
        (self.events > 0).then(|| std::mem::take(self))
    }
}

/// Bytes of the bound that one record holds until it is written or dropped.
pub(crate) struct Weight {
    bytes: usize,
    queued: Arc<AtomicUsize>,
}

impl Weight {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.queued.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The way into a recording. One for each chain.
pub(crate) struct Tap {
    mailbox: Mailbox<Record>,
    queued: Arc<AtomicUsize>,
    bound: usize,
    began: Instant,
    missing: Missing,
}

impl Tap {
    pub(crate) fn new(mailbox: Mailbox<Record>) -> Self {
        Self::bounded(mailbox, BOUND)
    }

    fn bounded(mailbox: Mailbox<Record>, bound: usize) -> Self {
        Self { mailbox, queued: Arc::default(), bound, began: Instant::now(), missing: Missing::default() }
    }

    pub(crate) fn passed(&mut self, passage: Passage) {
        if let Some(weight) = self.admit(passage.cost()) {
            self.send(Record::Passed(self.began.elapsed(), passage, weight));
        }
    }

    pub(crate) fn noise(&mut self, from: Party, bytes: usize) {
        const COST: usize = 64;
        if let Some(weight) = self.admit(COST) {
            self.send(Record::Noise(self.began.elapsed(), from, bytes, weight));
        }
    }

    /// Says that nothing more comes.
    pub(crate) fn end(&mut self) {
        self.tell_missing();
        self.mailbox.send_last(Record::End);
    }

    fn admit(&mut self, bytes: usize) -> Option<Weight> {
        // One sender: nobody else adds in between.
        if self.queued.load(Ordering::Relaxed) + bytes > self.bound {
            self.missing.add(Missing { events: 1, bytes: bytes as u64 });
            return None;
        }
        self.queued.fetch_add(bytes, Ordering::Relaxed);
        self.tell_missing();
        Some(Weight { bytes, queued: self.queued.clone() })
    }

    fn tell_missing(&mut self) {
        if let Some(missing) = self.missing.take() {
            self.send(Record::Lost(missing));
        }
    }

    /// A mailbox that is closed belongs to a recording that gave up, which was said in the log.
    fn send(&self, record: Record) {
        drop(self.mailbox.send(record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ComponentIndex;
    use bytes::Bytes;

    fn passage(bytes: usize) -> Passage {
        Passage::Call {
            from: Party::At(ComponentIndex::Client),
            to: Party::At(ComponentIndex::Agent),
            id: None,
            method: Bytes::new(),
            params: Bytes::from(vec![b'1'; bytes]),
        }
    }

    #[test]
    fn what_does_not_fit_is_counted_and_told_where_it_is_missing() {
        let mailbox = Mailbox::new();
        let mut tap = Tap::bounded(mailbox.clone(), 1_000);
        tap.passed(passage(500));
        tap.passed(passage(500));
        tap.passed(passage(400));
        tap.passed(passage(0));
        assert_eq!(mailbox.depth(), 3, "the first, the gap, and the last, which fits again");
        tap.passed(passage(2_000));
        tap.end();
        tap.passed(passage(0));
        let records: Vec<Record> = mailbox.close().into();
        assert!(matches!(&records[0], Record::Passed(_, _, weight) if weight.bytes() == 628));
        let lost = |record: &Record| match record {
            Record::Lost(missing) => Some((missing.events, missing.bytes)),
            _ => None,
        };
        assert_eq!(
            records.iter().map(lost).collect::<Vec<_>>(),
            [None, Some((2, 1_156)), None, Some((1, 2_128)), None]
        );
        assert!(matches!(records[4], Record::End));
        drop(records);
        assert_eq!(tap.queued.load(Ordering::Relaxed), 0, "what was dropped weighs nothing");
    }
}
