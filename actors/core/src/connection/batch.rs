//! Answering a batch: one array, once every entry is dispatched and answered.

use std::fmt;
use std::sync::Arc;

use greenroom_protocol::{Error, Outbound};
use parking_lot::Mutex;

use super::shared::Shared;

/// The collector of one batch's answers. Clones share it.
#[derive(Clone)]
pub(crate) struct BatchHandle {
    inner: Arc<Mutex<Collected>>,
}

struct Collected {
    /// One entry a response-bearing call, in batch order.
    answers: Vec<Option<Outbound>>,
    missing: usize,
    dispatched: bool,
    sent: bool,
}

/// The place of one call's answer inside its batch.
pub(crate) struct BatchSlot {
    batch: BatchHandle,
    index: usize,
}

impl BatchHandle {
    pub(crate) fn new() -> Self {
        let collected = Collected { answers: Vec::new(), missing: 0, dispatched: false, sent: false };
        Self { inner: Arc::new(Mutex::new(collected)) }
    }

    /// Reserves the next place, for a call that will be answered.
    pub(crate) fn reserve(&self) -> BatchSlot {
        let mut inner = self.inner.lock();
        inner.answers.push(None);
        inner.missing += 1;
        BatchSlot { batch: self.clone(), index: inner.answers.len() - 1 }
    }

    /// Fills the next place at once, for an entry that is refused.
    pub(crate) fn refuse(&self, answer: Outbound) {
        self.inner.lock().answers.push(Some(answer));
    }

    /// Every entry was dispatched.
    pub(crate) fn dispatched(&self, shared: &Shared) {
        self.inner.lock().dispatched = true;
        let _ = self.send_when_complete(shared);
    }

    fn send_when_complete(&self, shared: &Shared) -> Result<(), Error> {
        let array = {
            let mut inner = self.inner.lock();
            if !inner.dispatched || inner.missing > 0 || inner.sent {
                return Ok(());
            }
            inner.sent = true;
            let answers: Vec<Outbound> = inner.answers.drain(..).flatten().collect();
            if answers.is_empty() {
                return Ok(());
            }
            Outbound::array(&answers)
        };
        shared.send_reply(array)
    }
}

impl BatchSlot {
    pub(crate) fn settle(&self, answer: Outbound, shared: &Shared) -> Result<(), Error> {
        {
            let mut inner = self.batch.inner.lock();
            let Some(place) = inner.answers.get_mut(self.index) else { return Ok(()) };
            if place.replace(answer).is_none() {
                inner.missing -= 1;
            }
        }
        self.batch.send_when_complete(shared)
    }
}

impl fmt::Debug for BatchHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchHandle").field("missing", &self.inner.lock().missing).finish_non_exhaustive()
    }
}
