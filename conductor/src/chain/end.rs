//! How a chain comes to its end: a pure decision about what to close when.

use crate::router::Hop;

/// Which connections of a chain are there and which have ended.
#[derive(Debug, Default)]
pub(super) struct Ending {
    upstream: State,
    components: Vec<State>,
    /// Set when the chain is being shut down.
    closing: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Absent,
    Up,
    Ended,
}

/// What to do next about the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing.
    Wait,
    /// Every component is gone: let the last answers leave upstream, then close it.
    CloseUpstream,
    /// Nothing is left.
    Conclude,
}

impl Ending {
    pub(super) fn up(&mut self, hop: Hop) {
        *self.slot(hop) = State::Up;
    }

    pub(super) fn ended(&mut self, hop: Hop) {
        *self.slot(hop) = State::Ended;
    }

    /// Starts the shutdown; false when it was started before.
    pub(super) fn close(&mut self) -> bool {
        !std::mem::replace(&mut self.closing, true)
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    pub(super) fn next(&self) -> Next {
        if !self.closing || self.components.contains(&State::Up) {
            return Next::Wait;
        }
        match self.upstream {
            State::Up => Next::CloseUpstream,
            State::Absent | State::Ended => Next::Conclude,
        }
    }

    /// Whether the connection of this hop was ever up.
    pub(super) fn is_known(&self, hop: Hop) -> bool {
        let state = match hop {
            Hop::Client => self.upstream,
            Hop::Component(index) => self.components.get(index).copied().unwrap_or_default(),
        };
        state != State::Absent
    }

    fn slot(&mut self, hop: Hop) -> &mut State {
        match hop {
            Hop::Client => &mut self.upstream,
            Hop::Component(index) => {
                if self.components.len() <= index {
                    self.components.resize(index + 1, State::Absent);
                }
                &mut self.components[index]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_end_before_upstream() {
        let mut ending = Ending::default();
        for hop in [Hop::Client, Hop::Component(0), Hop::Component(1)] {
            ending.up(hop);
        }
        assert_eq!(ending.next(), Next::Wait, "nobody asked for the end");
        assert!(ending.close());
        assert!(!ending.close());
        assert_eq!(ending.next(), Next::Wait);
        ending.ended(Hop::Component(1));
        assert_eq!(ending.next(), Next::Wait);
        ending.ended(Hop::Component(0));
        assert_eq!(ending.next(), Next::CloseUpstream);
        ending.ended(Hop::Client);
        assert_eq!(ending.next(), Next::Conclude);
    }

    #[test]
    fn a_chain_that_never_opened_ends_with_its_client() {
        let mut ending = Ending::default();
        ending.up(Hop::Client);
        ending.close();
        assert_eq!(ending.next(), Next::CloseUpstream);
        ending.ended(Hop::Client);
        assert_eq!(ending.next(), Next::Conclude);
    }
}
