//! The geometry of a chain: which hop comes next (spec §3.4, table R1).

use super::action::{Hop, Mode};

/// Index of the upstream hop; component `n` has index `n + 1`.
pub(super) const CLIENT: usize = 0;

impl Hop {
    pub(super) const fn index(self) -> usize {
        match self {
            Self::Client => CLIENT,
            Self::Component(component) => component + 1,
        }
    }

    pub(super) const fn at(index: usize) -> Self {
        match index {
            CLIENT => Self::Client,
            _ => Self::Component(index - 1),
        }
    }
}

/// Whether a message travels inside a successor envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    Wrapped,
}

/// Mode and length of a chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) mode: Mode,
    pub(super) components: usize,
}

impl Path {
    /// Whether the peer at this hop is a final agent.
    pub(super) fn is_agent(self, at: usize) -> bool {
        self.mode == Mode::Agent && at == self.components
    }

    /// Whether the peer at this hop may use envelopes, because it has a successor.
    pub(super) fn has_successor(self, at: usize) -> bool {
        match self.mode {
            Mode::Agent => at != CLIENT && !self.is_agent(at),
            Mode::Proxy => true,
        }
    }

    /// Where a message that came from this hop in this form goes, and in which form. Only for
    /// forms that [`has_successor`](Self::has_successor) allows.
    pub(super) fn next(self, from: usize, form: Form) -> (usize, Form) {
        match (from, form) {
            (CLIENT, Form::Plain) => self.right_of(CLIENT),
            // What upstream wraps comes from beyond the right end.
            (CLIENT, Form::Wrapped) => Self::left_of(self.components + 1),
            (_, Form::Plain) => Self::left_of(from),
            (_, Form::Wrapped) => self.right_of(from),
        }
    }

    fn right_of(self, at: usize) -> (usize, Form) {
        if at < self.components { (at + 1, Form::Plain) } else { (CLIENT, Form::Wrapped) }
    }

    fn left_of(at: usize) -> (usize, Form) {
        match at - 1 {
            CLIENT => (CLIENT, Form::Plain),
            left => (left, Form::Wrapped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Form::{Plain, Wrapped};

    #[test]
    fn every_row_of_the_delivery_table() {
        let agent = Path { mode: Mode::Agent, components: 3 };
        let proxy = Path { mode: Mode::Proxy, components: 2 };
        for (path, from, form, next) in [
            (agent, 0, Plain, (1, Plain)),
            (agent, 1, Wrapped, (2, Plain)),
            (agent, 2, Wrapped, (3, Plain)),
            (agent, 3, Plain, (2, Wrapped)),
            (agent, 2, Plain, (1, Wrapped)),
            (agent, 1, Plain, (0, Plain)),
            (proxy, 0, Plain, (1, Plain)),
            (proxy, 1, Wrapped, (2, Plain)),
            (proxy, 2, Wrapped, (0, Wrapped)),
            (proxy, 0, Wrapped, (2, Wrapped)),
            (proxy, 2, Plain, (1, Wrapped)),
            (proxy, 1, Plain, (0, Plain)),
        ] {
            assert_eq!(path.next(from, form), next, "{path:?} {from} {form:?}");
        }
        let bare = Path { mode: Mode::Agent, components: 1 };
        assert_eq!(bare.next(0, Plain), (1, Plain));
        assert_eq!(bare.next(1, Plain), (0, Plain));
        let empty = Path { mode: Mode::Proxy, components: 0 };
        assert_eq!(empty.next(0, Plain), (0, Wrapped));
        assert_eq!(empty.next(0, Wrapped), (0, Plain));
    }

    #[test]
    fn only_proxies_have_a_successor() {
        let agent = Path { mode: Mode::Agent, components: 2 };
        assert_eq!([0, 1, 2].map(|at| agent.has_successor(at)), [false, true, false]);
        let proxy = Path { mode: Mode::Proxy, components: 1 };
        assert_eq!([0, 1].map(|at| proxy.has_successor(at)), [true, true]);
    }
}
