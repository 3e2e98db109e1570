//! Answering a batch: one array, once every entry is dispatched and answered.
//!
//! The rules are the state machine of [`greenroom_protocol::batch`]; here it meets the connection.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};

use greenroom_protocol::batch::{BatchId, OpenBatches, Slot};
use greenroom_protocol::{Error, Outbound};
use parking_lot::Mutex;

use super::shared::Shared;

/// The collector of one batch's answers. Clones share it.
#[derive(Clone)]
pub(crate) struct BatchHandle {
    collector: Arc<Collector>,
    batch: BatchId,
}

struct Collector {
    answers: Mutex<OpenBatches<Outbound>>,
    counts: Mutex<Option<Counts>>,
}

/// A batch counts as an open request until its end was worked off, because its array may be due only
/// then.
struct Counts {
    connection: Weak<Shared>,
}

impl Drop for Counts {
    fn drop(&mut self) {
        if let Some(shared) = self.connection.upgrade() {
            shared.close_one();
        }
    }
}

/// The batches whose end is on its way to the dispatch loop.
#[derive(Default)]
pub(crate) struct Undispatched {
    batches: Mutex<HashMap<usize, BatchHandle>>,
}

impl Undispatched {
    fn insert(&self, batch: &BatchHandle) {
        self.batches.lock().insert(batch.address(), batch.clone());
    }

    fn remove(&self, batch: &BatchHandle) {
        let removed = self.batches.lock().remove(&batch.address());
        drop(removed);
    }

    /// Nothing more is dispatched: each is complete when the entries that were are answered.
    pub(crate) fn end(&self, shared: &Shared) {
        let batches: Vec<_> = self.batches.lock().values().cloned().collect();
        for batch in batches {
            batch.dispatched(shared);
        }
    }
}

/// The place of one call's answer inside its batch.
pub(crate) struct BatchSlot {
    batch: BatchHandle,
    slot: Slot,
}

impl BatchHandle {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let mut answers = OpenBatches::default();
        // The entries are dispatched one after the other and their end is a step of its own, so
        // for the state machine they are one.
        let batch = answers.open(1);
        shared.open_one();
        let counts = Counts { connection: Arc::downgrade(shared) };
        let collector = Collector { answers: Mutex::new(answers), counts: Mutex::new(Some(counts)) };
        Self { collector: Arc::new(collector), batch }
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.collector).addr()
    }

    /// Every entry has its place: from now on the end of the dispatch is all that is to come.
    pub(crate) fn taken_apart(&self, shared: &Shared) {
        shared.undispatched.insert(self);
    }

    /// Reserves the next place, for a call that will be answered.
    pub(crate) fn reserve(&self) -> BatchSlot {
        let slot = self.collector.answers.lock().take_slot(self.batch);
        BatchSlot { batch: self.clone(), slot }
    }

    /// Fills the next place at once, for an entry that is refused.
    pub(crate) fn refuse(&self, answer: Outbound) {
        let mut answers = self.collector.answers.lock();
        let slot = answers.take_slot(self.batch);
        // Never the last thing that is missing: the end of the dispatch is still to come.
        let _ = answers.settle(slot, answer);
    }

    /// Every entry was dispatched, or none is dispatched any more. Only the first time counts.
    pub(crate) fn dispatched(&self, shared: &Shared) {
        shared.undispatched.remove(self);
        let complete = self.collector.answers.lock().dispatched(self.batch);
        let _ = send(complete, shared);
        // Behind the queueing of the array.
        let counts = self.collector.counts.lock().take();
        drop(counts);
    }
}

impl BatchSlot {
    pub(crate) fn settle(&self, answer: Outbound, shared: &Shared) -> Result<(), Error> {
        let complete = self.batch.collector.answers.lock().settle(self.slot, answer);
        send(complete, shared)
    }
}

fn send(complete: Option<Vec<Outbound>>, shared: &Shared) -> Result<(), Error> {
    match complete {
        Some(answers) => shared.send_reply(Outbound::array(&answers)),
        None => Ok(()),
    }
}

impl fmt::Debug for BatchHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchHandle").field("batch", &self.batch).finish_non_exhaustive()
    }
}
