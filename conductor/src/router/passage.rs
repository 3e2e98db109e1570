//! What passed through a chain, told in terms of its components: for traces.

use bytes::Bytes;
use greenroom_protocol::{Frame, FrameKind, RawId};

use super::index::ComponentIndex;
use super::path::{CLIENT, Form, Path};
use super::table::Entry;

/// One end of a logical message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Party {
    /// A place in the chain.
    At(ComponentIndex),
    /// The conductor itself, which refuses what it does not pass on.
    Conductor,
}

/// A logical message, without envelopes and with the sender's own id. The texts share the memory of
/// the frame that they came in.
#[derive(Clone)]
pub(crate) enum Passage {
    /// A request, or without `id` a notification. `method` is JSON text with quotes; `params` is
    /// empty when there are none.
    Call { from: Party, to: Party, id: Option<RawId>, method: Bytes, params: Bytes },
    /// A response: the result, or the error.
    Answer { from: Party, to: Party, id: RawId, is_error: bool, payload: Bytes },
}

impl Passage {
    /// Bytes that it keeps in memory, about.
    pub(crate) fn cost(&self) -> usize {
        const FIXED: usize = 128;
        FIXED
            + match self {
                Self::Call { method, params, .. } => method.len() + params.len(),
                Self::Answer { payload, .. } => payload.len(),
            }
    }
}

/// Collects passages while somebody listens. Off, it costs a comparison.
#[derive(Default)]
pub(super) struct Passages {
    on: bool,
    seen: Vec<Passage>,
}

impl Passages {
    pub(super) fn listen(&mut self) {
        self.on = true;
    }

    pub(super) fn drain(&mut self) -> std::vec::Drain<'_, Passage> {
        self.seen.drain(..)
    }

    pub(super) fn note(&mut self, passage: impl FnOnce() -> Passage) {
        if self.on {
            self.seen.push(passage());
        }
    }

    /// The answer of `at` to a request in its table.
    pub(super) fn answered(
        &mut self,
        path: Path,
        at: usize,
        entry: &Entry,
        is_error: bool,
        payload: impl FnOnce() -> Bytes,
    ) {
        self.note(|| Passage::Answer {
            from: path.party(at, entry.form),
            to: path.requester(entry.origin, at, entry.form),
            id: entry.id.clone(),
            is_error,
            payload: payload(),
        });
    }

    /// A request that the conductor refuses.
    pub(super) fn refused(
        &mut self,
        path: Path,
        from: usize,
        frame: &Frame,
        id: &RawId,
        error: impl FnOnce() -> Bytes,
    ) {
        if frame.kind() != FrameKind::Request {
            return;
        }
        let asker = path.party(from, Form::Plain);
        self.note(|| Passage::Call {
            from: asker,
            to: Party::Conductor,
            id: Some(id.clone()),
            method: frame.share(frame.envelope().method),
            params: frame.share(frame.envelope().params),
        });
        self.note(|| Passage::Answer {
            from: Party::Conductor,
            to: asker,
            id: id.clone(),
            is_error: true,
            payload: error(),
        });
    }
}

impl Path {
    /// Who a message of this form comes from or goes to, at this hop.
    pub(super) fn party(self, at: usize, form: Form) -> Party {
        Party::At(match (at, form) {
            (CLIENT, Form::Plain) => ComponentIndex::Client,
            (CLIENT, Form::Wrapped) => ComponentIndex::Agent,
            _ if self.is_agent(at) => ComponentIndex::Agent,
            _ => ComponentIndex::Proxy(at - 1),
        })
    }

    /// Who asked what went from hop `origin` to hop `to` in this form.
    pub(super) fn requester(self, origin: usize, to: usize, form: Form) -> Party {
        // What upstream wraps comes from beyond the right end, and moves to the left.
        let leftwards = (form == Form::Wrapped) != (to == CLIENT);
        let sent = if origin == CLIENT && leftwards { Form::Wrapped } else { Form::Plain };
        self.party(origin, sent)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mode;
    use super::*;
    use ComponentIndex::{Agent, Client, Proxy};
    use Form::{Plain, Wrapped};

    #[test]
    fn who_talks_to_whom() {
        let agent = Path { mode: Mode::Agent, components: 3 };
        let proxy = Path { mode: Mode::Proxy, components: 2 };
        let empty = Path { mode: Mode::Proxy, components: 0 };
        for (path, origin, sent, from, to) in [
            (agent, 0, Plain, Client, Proxy(0)),
            (agent, 1, Wrapped, Proxy(0), Proxy(1)),
            (agent, 2, Wrapped, Proxy(1), Agent),
            (agent, 3, Plain, Agent, Proxy(1)),
            (agent, 2, Plain, Proxy(1), Proxy(0)),
            (agent, 1, Plain, Proxy(0), Client),
            (proxy, 0, Plain, Client, Proxy(0)),
            (proxy, 2, Wrapped, Proxy(1), Agent),
            (proxy, 0, Wrapped, Agent, Proxy(1)),
            (proxy, 1, Plain, Proxy(0), Client),
            (empty, 0, Plain, Client, Agent),
            (empty, 0, Wrapped, Agent, Client),
        ] {
            let (from, to) = (Party::At(from), Party::At(to));
            let (at, form) = path.next(origin, sent);
            assert_eq!(path.party(at, form), to, "{path:?} {origin} {sent:?}");
            assert_eq!(path.party(origin, sent), from, "{path:?} {origin} {sent:?}");
            assert_eq!(path.requester(origin, at, form), from, "{path:?} {origin} {sent:?}");
        }
    }
}
