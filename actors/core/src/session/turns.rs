//! The turns of one session, as a pure state machine.
//!
//! Each prompt is a turn with a number that is never used again. A deadline names the turn that it
//! was set for: one that fires late hits nothing.

use std::collections::BTreeMap;

/// The turns that have no end yet, each with what is needed to cancel it.
#[derive(Debug)]
pub(super) struct Turns<H> {
    open: BTreeMap<u64, Turn<H>>,
}

#[derive(Debug)]
struct Turn<H> {
    handle: H,
    /// Whether a deadline runs.
    cancelled: bool,
}

impl<H> Default for Turns<H> {
    fn default() -> Self {
        Self { open: BTreeMap::new() }
    }
}

impl<H> Turns<H> {
    /// A prompt was sent.
    pub(super) fn begin(&mut self, turn: u64, handle: H) {
        self.open.insert(turn, Turn { handle, cancelled: false });
    }

    /// Its answer came. False when the turn was given up before: nobody wants to hear it.
    pub(super) fn end(&mut self, turn: u64) -> bool {
        self.open.remove(&turn).is_some()
    }

    /// The session's work is cancelled: the turns whose deadline starts now.
    pub(super) fn cancel(&mut self) -> Vec<u64> {
        let fresh = self.open.iter_mut().filter(|(_, turn)| !turn.cancelled);
        fresh
            .map(|(number, turn)| {
                turn.cancelled = true;
                *number
            })
            .collect()
    }

    /// A deadline is over: the turn that is given up, if it still has no end.
    pub(super) fn overdue(&mut self, turn: u64) -> Option<H> {
        self.open.remove(&turn).map(|turn| turn.handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_hits_the_turn_that_it_was_set_for() {
        let mut turns = Turns::default();
        turns.begin(1, "first");
        assert_eq!(turns.cancel(), [1]);
        assert!(turns.cancel().is_empty(), "its deadline runs already");
        assert!(turns.end(1));
        turns.begin(2, "second");
        assert_eq!(turns.overdue(1), None, "a late deadline of the first turn");
        assert!(turns.end(2));
    }

    #[test]
    fn a_turn_that_was_given_up_has_no_other_end() {
        let mut turns = Turns::default();
        turns.begin(1, "first");
        turns.begin(2, "second");
        assert_eq!(turns.cancel(), [1, 2]);
        assert_eq!(turns.overdue(1), Some("first"));
        assert!(!turns.end(1), "its answer came too late");
        assert!(turns.end(2), "the other goes on");
    }
}
