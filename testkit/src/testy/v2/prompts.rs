//! The prompts of one session: which is worked on, which wait, and which were sent before. Pure.

use std::collections::{HashMap, VecDeque};

/// The prompts of one session.
///
/// At most one is worked on. What comes meanwhile waits and is inserted in the order in which it
/// came. `P` is what a prompt asks for, `R` whoever waits for its acceptance; a prompt that is sent
/// again under its key while it waits has several of those.
#[derive(Debug)]
pub(super) struct Prompts<P, R> {
    inserted: u64,
    active: bool,
    waiting: VecDeque<Waiting<P, R>>,
    keys: HashMap<String, u64>,
    tickets: u64,
}

#[derive(Debug)]
struct Waiting<P, R> {
    prompt: P,
    key: Option<String>,
    senders: Vec<(u64, R)>,
}

/// What becomes of a prompt that came in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Submitted<P, R> {
    /// It is inserted and worked on.
    Begins(Inserted<P, R>),
    /// It waits. The ticket takes this sender out again.
    Waits(u64),
    /// It was inserted before, with this number.
    Known(u64, R),
}

/// A prompt that has its place in the conversation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inserted<P, R> {
    /// Counts from 1.
    pub(super) number: u64,
    pub(super) prompt: P,
    pub(super) senders: Vec<R>,
}

impl<P, R> Default for Prompts<P, R> {
    fn default() -> Self {
        Self { inserted: 0, active: false, waiting: VecDeque::new(), keys: HashMap::new(), tickets: 0 }
    }
}

impl<P, R> Prompts<P, R> {
    /// Whether something is worked on.
    pub(super) fn active(&self) -> bool {
        self.active
    }

    pub(super) fn submit(&mut self, prompt: P, key: Option<String>, sender: R) -> Submitted<P, R> {
        if let Some(number) = key.as_ref().and_then(|key| self.keys.get(key)) {
            return Submitted::Known(*number, sender);
        }
        if !self.active {
            return Submitted::Begins(self.insert(prompt, key, vec![sender]));
        }
        self.tickets += 1;
        let same = |waiting: &&mut Waiting<P, R>| key.is_some() && waiting.key == key;
        match self.waiting.iter_mut().find(same) {
            Some(waiting) => waiting.senders.push((self.tickets, sender)),
            None => self.waiting.push_back(Waiting { prompt, key, senders: vec![(self.tickets, sender)] }),
        }
        Submitted::Waits(self.tickets)
    }

    /// Work ended; the next prompt, if one waits, is inserted.
    pub(super) fn finish(&mut self) -> Option<Inserted<P, R>> {
        self.active = false;
        let Waiting { prompt, key, senders } = self.waiting.pop_front()?;
        Some(self.insert(prompt, key, senders.into_iter().map(|(_, sender)| sender).collect()))
    }

    /// Ends everything: whether something was worked on, and who waited in vain.
    pub(super) fn cancel(&mut self) -> (bool, Vec<R>) {
        let waiting = self.waiting.drain(..).flat_map(|waiting| waiting.senders);
        let senders = waiting.map(|(_, sender)| sender).collect();
        (std::mem::take(&mut self.active), senders)
    }

    /// Takes one sender out, unless its prompt was inserted or cancelled meanwhile. A prompt for
    /// which nobody waits any more is forgotten.
    pub(super) fn withdraw(&mut self, ticket: u64) -> Option<R> {
        let place = |waiting: &Waiting<P, R>| waiting.senders.iter().position(|(known, _)| *known == ticket);
        let index = self.waiting.iter().position(|waiting| place(waiting).is_some())?;
        let waiting = self.waiting.get_mut(index)?;
        let (_, sender) = waiting.senders.remove(place(waiting)?);
        if waiting.senders.is_empty() {
            self.waiting.remove(index);
        }
        Some(sender)
    }

    fn insert(&mut self, prompt: P, key: Option<String>, senders: Vec<R>) -> Inserted<P, R> {
        self.inserted += 1;
        self.active = true;
        if let Some(key) = key {
            self.keys.insert(key, self.inserted);
        }
        Inserted { number: self.inserted, prompt, senders }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Table = Prompts<&'static str, u32>;

    fn key(key: &str) -> Option<String> {
        Some(key.to_owned())
    }

    fn inserted(number: u64, prompt: &'static str, senders: &[u32]) -> Inserted<&'static str, u32> {
        Inserted { number, prompt, senders: senders.to_vec() }
    }

    #[test]
    fn prompts_are_inserted_in_their_order() {
        let mut table = Table::default();
        assert_eq!(table.submit("a", None, 1), Submitted::Begins(inserted(1, "a", &[1])));
        assert_eq!(table.submit("b", None, 2), Submitted::Waits(1));
        assert_eq!(table.submit("c", None, 3), Submitted::Waits(2));
        assert_eq!(table.finish(), Some(inserted(2, "b", &[2])));
        assert_eq!(table.submit("d", None, 4), Submitted::Waits(3));
        assert_eq!(table.finish(), Some(inserted(3, "c", &[3])));
        assert_eq!(table.finish(), Some(inserted(4, "d", &[4])));
        assert_eq!((table.finish(), table.active()), (None, false));
        assert_eq!(table.submit("e", None, 5), Submitted::Begins(inserted(5, "e", &[5])));
    }

    #[test]
    fn a_key_stands_for_one_insertion() {
        let mut table = Table::default();
        assert_eq!(table.submit("a", key("A"), 1), Submitted::Begins(inserted(1, "a", &[1])));
        assert_eq!(table.submit("a", key("A"), 2), Submitted::Known(1, 2));
        assert_eq!(table.submit("b", key("B"), 3), Submitted::Waits(1));
        assert_eq!(table.submit("b", key("B"), 4), Submitted::Waits(2));
        assert_eq!(table.submit("none", None, 5), Submitted::Waits(3));
        assert_eq!(table.submit("none", None, 6), Submitted::Waits(4));
        assert_eq!(table.finish(), Some(inserted(2, "b", &[3, 4])));
        assert_eq!(table.submit("b", key("B"), 7), Submitted::Known(2, 7));
        assert_eq!(table.finish(), Some(inserted(3, "none", &[5])));
        assert_eq!(table.finish(), Some(inserted(4, "none", &[6])));
        assert_eq!(table.finish(), None);
        assert_eq!(table.submit("a", key("A"), 8), Submitted::Known(1, 8), "also when nothing is worked on");
        assert_eq!(table.submit("c", key("a"), 9), Submitted::Begins(inserted(5, "c", &[9])), "case counts");
    }

    #[test]
    fn cancelling_ends_what_is_worked_on_and_what_waits() {
        let mut table = Table::default();
        assert_eq!(table.cancel(), (false, vec![]));
        table.submit("a", key("A"), 1);
        table.submit("b", key("B"), 2);
        table.submit("b", key("B"), 3);
        table.submit("c", None, 4);
        assert_eq!(table.cancel(), (true, vec![2, 3, 4]));
        assert!(!table.active());
        assert_eq!(table.submit("a", key("A"), 5), Submitted::Known(1, 5), "it was inserted");
        assert_eq!(table.submit("b", key("B"), 6), Submitted::Begins(inserted(2, "b", &[6])), "it was not");
    }

    #[test]
    fn one_sender_may_leave() {
        let mut table = Table::default();
        table.submit("a", None, 1);
        table.submit("b", key("B"), 2);
        table.submit("b", key("B"), 3);
        table.submit("c", None, 4);
        assert_eq!(table.withdraw(9), None);
        assert_eq!(table.withdraw(1), Some(2));
        assert_eq!(table.withdraw(1), None, "once");
        assert_eq!(table.withdraw(3), Some(4));
        assert_eq!(table.finish(), Some(inserted(2, "b", &[3])));
        assert_eq!(table.withdraw(2), None, "it was inserted");
        assert_eq!(table.finish(), None);
    }
}
