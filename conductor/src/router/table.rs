//! The request tables: which request of ours answers which request of theirs.

use std::collections::VecDeque;

use bytes::Bytes;
use greenroom_protocol::{Dialect, Error, Frame, RawId};

use super::batch::Slot;
use super::call::Call;
use super::hash::{Map, Spelling};
use super::name::Name;
use super::path::Form;

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It has its id, but waits for the dialect of its hop.
    Held,
    /// The peer has it.
    Sent,
    /// The peer has it and was told to cancel it.
    Cancelled,
}

/// One request that was passed on and not answered yet.
pub(super) struct Entry {
    /// The hop that asked.
    pub(super) origin: usize,
    pub(super) slot: Slot,
    /// The id under which it asked, exactly as spelled.
    pub(super) id: RawId,
    /// Hash of that id.
    pub(super) hash: u64,
    /// The logical method.
    pub(super) name: Name,
    pub(super) form: Form,
    pub(super) stage: Stage,
    /// The version sent to a final agent, to check its answer against.
    pub(super) version: Option<u16>,
}

/// A message that waits for the dialect of its hop.
pub(super) enum Held {
    Call { frame: Frame, call: Call, form: Form, id: Option<u64> },
    Initialize { id: u64, version: u16, params: Bytes },
}

/// A proxy-initialize whose spelling is a guess (spec §3.5).
pub(super) struct Probe {
    /// The current attempt.
    pub(super) id: u64,
    pub(super) spelling: Dialect,
    /// Whether this is already the other name.
    pub(super) retried: bool,
    /// The spelling of the envelope in which the peer sent the probe back.
    pub(super) echoed: Option<Dialect>,
    /// What the peer said to the other name, while a new one is being started to be asked again:
    /// some do not get over a name that they do not know.
    pub(super) refusal: Option<Frame>,
    /// Whether a new component was asked for.
    pub(super) renewed: bool,
    pub(super) params: Bytes,
}

/// How a hop ended.
pub(super) struct End {
    pub(super) cause: Error,
    /// Whether the peer still takes notifications and responses: only its output ended.
    pub(super) reads: bool,
}

/// The router's side of one connection.
#[derive(Default)]
pub(super) struct Link {
    /// What the peer has to answer, by our id.
    pub(super) sent: Map<Entry>,
    /// Where the peer's own requests went, by the hash of its id: hop and our id there. A hash is
    /// enough, because whoever looks here compares the id of the entry that it finds.
    pub(super) asked: Map<(usize, u64)>,
    last_id: u64,
    /// Set when the peer is gone, wholly or half.
    pub(super) end: Option<End>,
    /// The dialect of the peer, once known.
    pub(super) spelling: Option<Dialect>,
    /// The spelling that was tried last.
    pub(super) guess: Option<Dialect>,
    pub(super) probe: Option<Probe>,
    /// What waits for the end of the probe, in order.
    pub(super) held: VecDeque<Held>,
}

impl Link {
    pub(super) fn new(spelling: Option<Dialect>) -> Self {
        Self { spelling, ..Self::default() }
    }

    /// A fresh id. Ids are never used again, so that nothing late can meet a new request.
    pub(super) fn fresh_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// The spelling to write in. A hop of unknown dialect is not initialised; then any will do.
    pub(super) fn dialect(&self) -> Dialect {
        self.spelling.or(self.guess).unwrap_or(Dialect::Legacy)
    }

    /// Why requests cannot be answered any more.
    pub(super) fn ended(&self) -> Option<&Error> {
        self.end.as_ref().map(|end| &end.cause)
    }

    /// Whether nothing can be sent any more.
    pub(super) fn is_gone(&self) -> bool {
        self.end.as_ref().is_some_and(|end| !end.reads)
    }

    /// Notes that a held request went out; false when it is not in the table any more.
    pub(super) fn mark_sent(&mut self, id: u64) -> bool {
        match self.sent.get_mut(&id) {
            Some(entry) => {
                entry.stage = Stage::Sent;
                true
            }
            None => false,
        }
    }

    /// Ids of the requests with this property, oldest first.
    pub(super) fn ids(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<u64> {
        let mut ids: Vec<u64> = self.sent.iter().filter(|(_, entry)| wanted(entry)).map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids
    }
}

/// All connections of a chain.
pub(super) struct Links {
    pub(super) links: Vec<Link>,
    spelling: Spelling,
}

/// A request on its way into the table.
pub(super) struct Asked<'a> {
    pub(super) origin: usize,
    pub(super) slot: Slot,
    pub(super) id: RawId,
    pub(super) name: &'a str,
}

impl Links {
    pub(super) fn new(links: Vec<Link>) -> Self {
        Self { links, spelling: Spelling::new() }
    }

    /// Enters a request; gives its id on the hop it goes to.
    pub(super) fn register(&mut self, to: usize, asked: Asked<'_>, form: Form, version: Option<u16>) -> u64 {
        let Asked { origin, slot, id: raw, name } = asked;
        let hash = self.spelling.hash(&raw);
        let link = &mut self.links[to];
        let id = link.fresh_id();
        let stage = if link.probe.is_some() { Stage::Held } else { Stage::Sent };
        let entry = Entry { origin, slot, id: raw, hash, name: Name::new(name), form, stage, version };
        link.sent.insert(id, entry);
        self.links[origin].asked.insert(hash, (to, id));
        id
    }

    /// Takes a request out.
    pub(super) fn settle(&mut self, at: usize, id: u64) -> Option<Entry> {
        let entry = self.links[at].sent.remove(&id)?;
        self.unlist(&entry, (at, id));
        Some(entry)
    }

    /// Takes out a request that this hop answered. A held one cannot have been answered.
    pub(super) fn settle_sent(&mut self, at: usize, id: u64) -> Option<Entry> {
        let entry = self.links[at].sent.remove(&id)?;
        if entry.stage == Stage::Held {
            self.links[at].sent.insert(id, entry);
            return None;
        }
        self.unlist(&entry, (at, id));
        Some(entry)
    }

    fn unlist(&mut self, entry: &Entry, place: (usize, u64)) {
        let asked = &mut self.links[entry.origin].asked;
        // The same peer may have used its id again meanwhile; then the newer request stays listed.
        if let std::collections::hash_map::Entry::Occupied(listed) = asked.entry(entry.hash)
            && *listed.get() == place
        {
            listed.remove();
        }
    }

    /// Gives a waiting request another id on the same hop.
    pub(super) fn renumber(&mut self, at: usize, id: u64) -> Option<u64> {
        let entry = self.links[at].sent.remove(&id)?;
        let fresh = self.links[at].fresh_id();
        if let Some(listed) = self.links[entry.origin].asked.get_mut(&entry.hash)
            && *listed == (at, id)
        {
            *listed = (at, fresh);
        }
        self.links[at].sent.insert(fresh, entry);
        Some(fresh)
    }

    /// Where the request went that this hop knows under this id.
    pub(super) fn find(&self, origin: usize, id: &RawId) -> Option<(usize, u64)> {
        let place = *self.links[origin].asked.get(&self.spelling.hash(id))?;
        let entry = self.links[place.0].sent.get(&place.1)?;
        (entry.origin == origin && entry.id == *id).then_some(place)
    }
}
