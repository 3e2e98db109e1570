//! Batches: the replies to the entries of one array return as one array (spec §9, decision 1).

use greenroom_protocol::Outbound;

use super::hash::Map;

/// The place of a reply: alone, or in an array that is being collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// 0 for "alone".
    group: u64,
    index: u32,
}

impl Slot {
    /// A reply that travels alone.
    pub(super) const ALONE: Self = Self { group: 0, index: 0 };

    pub(super) fn is_alone(self) -> bool {
        self.group == 0
    }
}

/// One incoming batch whose replies are being collected.
struct Group {
    to: usize,
    replies: Vec<Option<Outbound>>,
    waiting: usize,
    /// Whether all entries were routed. Before that the array is not complete.
    sealed: bool,
}

/// All batches that wait for replies.
#[derive(Default)]
pub(super) struct Groups {
    open: Map<Group>,
    last: u64,
}

impl Groups {
    /// Starts to collect the replies for a batch that came from this hop.
    pub(super) fn open(&mut self, to: usize) -> u64 {
        self.last += 1;
        self.open.insert(self.last, Group { to, replies: Vec::new(), waiting: 0, sealed: false });
        self.last
    }

    /// A place for one more reply, in the order of the entries.
    pub(super) fn slot(&mut self, group: u64) -> Slot {
        let Some(open) = self.open.get_mut(&group) else { return Slot::ALONE };
        open.replies.push(None);
        open.waiting += 1;
        Slot { group, index: (open.replies.len() - 1) as u32 }
    }

    /// Puts a reply in its place; gives the whole array when it was the last.
    pub(super) fn fill(&mut self, slot: Slot, reply: Outbound) -> Option<(usize, Outbound)> {
        let open = self.open.get_mut(&slot.group)?;
        let place = open.replies.get_mut(slot.index as usize)?;
        if place.replace(reply).is_none() {
            open.waiting -= 1;
        }
        self.finish(slot.group)
    }

    /// Says that all entries were routed; gives the array when every reply is already there.
    pub(super) fn seal(&mut self, group: u64) -> Option<(usize, Outbound)> {
        self.open.get_mut(&group)?.sealed = true;
        self.finish(group)
    }

    fn finish(&mut self, group: u64) -> Option<(usize, Outbound)> {
        let open = self.open.get(&group)?;
        if !open.sealed || open.waiting > 0 {
            return None;
        }
        let done = self.open.remove(&group)?;
        let replies: Vec<Outbound> = done.replies.into_iter().flatten().collect();
        // A batch of notifications gets no reply at all.
        (!replies.is_empty()).then(|| (done.to, Outbound::array(&replies)))
    }

    /// Forgets the batches of a hop that is gone.
    pub(super) fn forget(&mut self, hop: usize) {
        self.open.retain(|_, group| group.to != hop);
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }
}
