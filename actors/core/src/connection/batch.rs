//! Answering a batch: one array, once every entry is dispatched and answered.
//!
//! The rules are the state machine of [`greenroom_protocol::batch`]; here it meets the connection.

use std::fmt;
use std::sync::Arc;

use greenroom_protocol::batch::{BatchId, OpenBatches, Slot};
use greenroom_protocol::{Error, Outbound};
use parking_lot::Mutex;

use super::shared::Shared;

/// The collector of one batch's answers. Clones share it.
#[derive(Clone)]
pub(crate) struct BatchHandle {
    answers: Arc<Mutex<OpenBatches<Outbound>>>,
    batch: BatchId,
}

/// The place of one call's answer inside its batch.
pub(crate) struct BatchSlot {
    batch: BatchHandle,
    slot: Slot,
}

impl BatchHandle {
    pub(crate) fn new() -> Self {
        let mut answers = OpenBatches::default();
        // The entries are dispatched one after the other and their end is a step of its own, so
        // for the state machine they are one.
        let batch = answers.open(1);
        Self { answers: Arc::new(Mutex::new(answers)), batch }
    }

    /// Reserves the next place, for a call that will be answered.
    pub(crate) fn reserve(&self) -> BatchSlot {
        let slot = self.answers.lock().take_slot(self.batch);
        BatchSlot { batch: self.clone(), slot }
    }

    /// Fills the next place at once, for an entry that is refused.
    pub(crate) fn refuse(&self, answer: Outbound) {
        let mut answers = self.answers.lock();
        let slot = answers.take_slot(self.batch);
        // Never the last thing that is missing: the end of the dispatch is still to come.
        let _ = answers.settle(slot, answer);
    }

    /// Every entry was dispatched.
    pub(crate) fn dispatched(&self, shared: &Shared) {
        let complete = self.answers.lock().dispatched(self.batch);
        let _ = send(complete, shared);
    }
}

impl BatchSlot {
    /// No entry of this batch is dispatched any more: it is complete when all that were are
    /// answered.
    pub(crate) fn ends_here(&self, shared: &Shared) {
        self.batch.dispatched(shared);
    }

    pub(crate) fn settle(&self, answer: Outbound, shared: &Shared) -> Result<(), Error> {
        let complete = self.batch.answers.lock().settle(self.slot, answer);
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
