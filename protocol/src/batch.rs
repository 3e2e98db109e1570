//! Answering JSON-RPC batches: which entries want an answer, and when their array is complete.
//! Pure state, without waiting; the owner dispatches the entries and carries the replies.

use std::collections::HashMap;

use crate::frame::{Frame, FrameKind};
use crate::malformed::malformed_reply;
use crate::outbound::Outbound;

/// What an endpoint or a relay does with JSON arrays that it receives (spec §9, decision 1). It
/// never sends any of its own. JSON-RPC 2.0 §6 demands `Accept`; newer peers of this protocol do
/// `Reject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Batches {
    /// Entries are worked on one by one, in order; their replies return as one array.
    #[default]
    Accept,
    /// One `-32600` with `id: null` answers the whole array.
    Reject,
}

/// One batch that is being answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchId(u64);

/// The place of one reply in the array of its batch.
///
/// Slots, not request ids, connect replies with entries: two entries of one batch, or of two
/// batches at the same time, may carry the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    batch: BatchId,
    place: usize,
}

impl Slot {
    /// The batch whose reply this is.
    #[must_use]
    pub fn batch(self) -> BatchId {
        self.batch
    }
}

/// What has to happen with one entry of a batch.
#[derive(Debug)]
pub enum EntryRole {
    /// A request: takes a slot.
    Call,
    /// A notification or a response: dispatched without a slot.
    OneWay,
    /// Malformed and call-shaped: not dispatched, this is its reply.
    Refused(Outbound),
    /// Malformed and response-shaped: neither dispatched nor answered.
    Ignored,
}

impl EntryRole {
    /// The role of an entry.
    #[must_use]
    pub fn of(entry: &Frame) -> Self {
        match entry.kind() {
            FrameKind::Request => Self::Call,
            FrameKind::Notification | FrameKind::Result | FrameKind::Error => Self::OneWay,
            FrameKind::Malformed => malformed_reply(entry).map_or(Self::Ignored, Self::Refused),
            // Entries are never batches or noise: the parser makes those malformed.
            FrameKind::Batch | FrameKind::Noise => Self::Ignored,
        }
    }
}

#[derive(Debug)]
enum Reply<T> {
    Awaited,
    Settled(T),
    Abandoned,
}

#[derive(Debug)]
struct Open<T> {
    replies: Vec<Reply<T>>,
    undispatched: usize,
    awaited: usize,
}

/// The batches of one connection that are not completely answered.
///
/// Invariants (spec §6.3, 85): a batch's replies come out exactly once, in the order in which their
/// slots were taken, and not before every entry was dispatched and every slot settled; a batch
/// without replies yields nothing; batches do not affect each other.
#[derive(Debug)]
pub struct OpenBatches<T> {
    open: HashMap<BatchId, Open<T>>,
    next: u64,
}

impl<T> Default for OpenBatches<T> {
    fn default() -> Self {
        Self { open: HashMap::new(), next: 0 }
    }
}

impl<T> OpenBatches<T> {
    /// Opens a batch of this many entries.
    ///
    /// A batch of no entries is no batch (the parser makes `[]` malformed) and is not kept.
    pub fn open(&mut self, entries: usize) -> BatchId {
        let batch = BatchId(self.next);
        self.next += 1;
        if entries > 0 {
            self.open.insert(batch, Open { replies: Vec::new(), undispatched: entries, awaited: 0 });
        }
        batch
    }

    /// Takes the next slot, for an entry that wants an answer; call it before the entry is
    /// dispatched. In a batch that is already complete the slot leads nowhere.
    pub fn take_slot(&mut self, batch: BatchId) -> Slot {
        let Some(open) = self.open.get_mut(&batch) else { return Slot { batch, place: usize::MAX } };
        open.replies.push(Reply::Awaited);
        open.awaited += 1;
        Slot { batch, place: open.replies.len() - 1 }
    }

    /// Notes that one more entry, of any role, was dispatched or set aside. Returns the replies if
    /// that completes the batch.
    pub fn dispatched(&mut self, batch: BatchId) -> Option<Vec<T>> {
        let open = self.open.get_mut(&batch)?;
        open.undispatched = open.undispatched.saturating_sub(1);
        self.complete(batch)
    }

    /// Fills a slot. Returns the replies if that completes the batch. A slot that is settled
    /// already keeps its first reply.
    pub fn settle(&mut self, slot: Slot, reply: T) -> Option<Vec<T>> {
        self.fill(slot, Reply::Settled(reply))
    }

    /// Gives up a slot: the array will have no reply for it. Returns the replies if that completes
    /// the batch. No effect on a slot that is settled already.
    pub fn abandon(&mut self, slot: Slot) -> Option<Vec<T>> {
        self.fill(slot, Reply::Abandoned)
    }

    /// Whether a reply for this slot is still awaited.
    #[must_use]
    pub fn is_awaited(&self, slot: Slot) -> bool {
        let open = self.open.get(&slot.batch);
        matches!(open.and_then(|open| open.replies.get(slot.place)), Some(Reply::Awaited))
    }

    /// Number of batches that are not complete.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether every batch is complete.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Forgets every batch, for the end of the connection; late replies then lead nowhere.
    pub fn clear(&mut self) {
        self.open.clear();
    }

    fn fill(&mut self, slot: Slot, reply: Reply<T>) -> Option<Vec<T>> {
        let open = self.open.get_mut(&slot.batch)?;
        let place = open.replies.get_mut(slot.place).filter(|place| matches!(place, Reply::Awaited))?;
        *place = reply;
        open.awaited -= 1;
        self.complete(slot.batch)
    }

    fn complete(&mut self, batch: BatchId) -> Option<Vec<T>> {
        if !self.open.get(&batch).is_some_and(|open| open.undispatched == 0 && open.awaited == 0) {
            return None;
        }
        let replies = self.open.remove(&batch)?.replies.into_iter().filter_map(|reply| match reply {
            Reply::Settled(reply) => Some(reply),
            Reply::Awaited | Reply::Abandoned => None,
        });
        Some(replies.collect::<Vec<T>>()).filter(|replies| !replies.is_empty())
    }
}

/// A batch taken apart by a relay whose next hop does not take batches.
#[derive(Debug)]
pub struct Split<'a> {
    /// What to forward, in wire order: requests with the slot for their answer, notifications and
    /// responses without.
    pub forward: Vec<(&'a Frame, Option<Slot>)>,
    /// The complete reply array, when nothing that is forwarded wants an answer.
    pub reply: Option<Outbound>,
}

impl OpenBatches<Outbound> {
    /// Takes a batch frame apart. Malformed entries are not forwarded: their replies could not be
    /// told apart on the next hop; call-shaped ones are answered here.
    ///
    /// The entries count as dispatched at once, so forward them before handling anything else.
    pub fn split<'a>(&mut self, frame: &'a Frame) -> Split<'a> {
        let batch = self.open(frame.entries().len());
        let (mut forward, mut reply) = (Vec::with_capacity(frame.entries().len()), None);
        for entry in frame.entries() {
            match EntryRole::of(entry) {
                EntryRole::Call => forward.push((entry, Some(self.take_slot(batch)))),
                EntryRole::OneWay => forward.push((entry, None)),
                EntryRole::Refused(refusal) => {
                    let slot = self.take_slot(batch);
                    // Cannot complete the batch: this entry is not dispatched yet.
                    self.settle(slot, refusal);
                }
                EntryRole::Ignored => {}
            }
            reply = self.dispatched(batch);
        }
        Split { forward, reply: reply.map(|replies| Outbound::array(&replies)) }
    }

    /// Fills a slot with a reply whose id is restored already. Returns the reply array of the
    /// inbound hop if that completes the batch.
    pub fn regroup(&mut self, slot: Slot, reply: Outbound) -> Option<Outbound> {
        self.settle(slot, reply).map(|replies| Outbound::array(&replies))
    }
}

#[cfg(test)]
mod tests;
