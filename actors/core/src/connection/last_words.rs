//! Whether what a far side said before its end is still coming in.

use tokio::time::Duration;

use crate::runtime::Credit;

/// After this, it is asked again.
pub(crate) const GRACE: Duration = Duration::from_millis(250);

/// How often in a row something may come that nobody held up. A process that outlived its agent must
/// not keep a connection by writing for ever.
const ROUNDS: u32 = 20;

/// How often in a row nothing may move while what was read waits to be worked off: a minute. Who
/// pauses for longer than that must not keep others from hearing that their agent is dead.
const HELD_ROUNDS: u32 = 240;

/// Watches the reader of a link whose driver has ended.
#[derive(Debug)]
pub(crate) struct LastWords {
    credit: Credit,
    taken: usize,
    rounds: u32,
    held_rounds: u32,
    listening: bool,
}

impl LastWords {
    /// For a reader that takes from this credit.
    pub(crate) fn new(credit: Credit) -> Self {
        Self { credit, taken: 0, rounds: 0, held_rounds: 0, listening: false }
    }

    /// The far side ended, or one more part of it: whether a grace time begins. There is one after
    /// the other, never two at once, and [`still_come`](Self::still_come) says at the end of each.
    pub(crate) fn begin(&mut self) -> bool {
        if self.listening {
            return false;
        }
        self.listening = true;
        self.taken = self.credit.taken();
        true
    }

    /// The grace time is over: whether to give another one, because the reader has read something
    /// or waits for those who work off what it has read.
    pub(crate) fn still_come(&mut self) -> bool {
        let taken = self.credit.taken();
        let moved = std::mem::replace(&mut self.taken, taken) != taken;
        let held = self.credit.is_held();
        self.rounds = if held { 0 } else { self.rounds + 1 };
        self.held_rounds = if held && !moved { self.held_rounds + 1 } else { 0 };
        if held { self.held_rounds <= HELD_ROUNDS } else { moved && self.rounds <= ROUNDS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_lasts_while_something_comes_or_is_held_up() {
        let credit = Credit::new(100);
        let mut words = LastWords::new(credit.clone());
        drop(credit.take(10));
        assert!(words.begin() && !words.begin(), "one grace time is enough");
        assert!(!words.still_come(), "what came before counts not");
        drop(credit.take(10));
        assert!(words.still_come() && !words.still_come(), "once for what came once");

        let full = credit.take(100);
        assert!(words.still_come(), "it came");
        let mut waiting = Box::pin(credit.room());
        assert!(futures_util::FutureExt::now_or_never(&mut waiting).is_none());
        assert!((0..2 * ROUNDS).all(|_| words.still_come()), "as long as it is held up");
        drop(full);
        waiting.await;
        assert!(!words.still_come());

        let full = credit.take(100);
        assert!(words.still_come(), "it came");
        let mut waiting = Box::pin(credit.room());
        assert!(futures_util::FutureExt::now_or_never(&mut waiting).is_none());
        let waited = (0..2 * HELD_ROUNDS).take_while(|_| words.still_come()).count();
        assert_eq!(waited, HELD_ROUNDS as usize, "not for ever");
        drop(full);
    }

    #[test]
    fn what_never_ends_is_cut_off() {
        let credit = Credit::new(100);
        let mut words = LastWords::new(credit.clone());
        let rounds = (0..10 * ROUNDS).take_while(|_| {
            drop(credit.take(1));
            words.still_come()
        });
        assert_eq!(rounds.count(), ROUNDS as usize);
    }
}
