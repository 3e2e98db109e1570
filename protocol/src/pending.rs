//! Outstanding requests of one direction: a pure table, without waiting and without a clock.

use std::collections::HashMap;
use std::hash::Hash;

/// What waits for an answer, by request id.
///
/// Invariants: every value that goes in comes out exactly once (by [`settle`](Self::settle),
/// [`close`](Self::close) or as the error of a late [`insert`](Self::insert)); after `close`
/// nothing goes in any more.
#[derive(Debug)]
pub struct Pending<K, V, C> {
    waiting: HashMap<K, V>,
    closed: Option<C>,
}

impl<K, V, C> Default for Pending<K, V, C> {
    fn default() -> Self {
        Self { waiting: HashMap::new(), closed: None }
    }
}

/// Why an entry was not taken in; carries the entry back.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused<V, C> {
    /// The table is closed for this cause.
    Closed(V, C),
    /// Another entry waits under the same id.
    Duplicate(V),
}

impl<K: Eq + Hash, V, C: Clone> Pending<K, V, C> {
    /// Registers what waits for the answer to `id`.
    ///
    /// # Errors
    /// [`Refused`], with the value, when the table is closed or the id is taken.
    pub fn insert(&mut self, id: K, value: V) -> Result<(), Refused<V, C>> {
        if let Some(cause) = &self.closed {
            return Err(Refused::Closed(value, cause.clone()));
        }
        match self.waiting.entry(id) {
            std::collections::hash_map::Entry::Occupied(_) => Err(Refused::Duplicate(value)),
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(value);
                Ok(())
            }
        }
    }

    /// Takes out what waits for this answer; `None` for an unknown or already settled id.
    pub fn settle(&mut self, id: &K) -> Option<V> {
        self.waiting.remove(id)
    }

    /// Whether an answer to this id is awaited.
    #[must_use]
    pub fn contains(&self, id: &K) -> bool {
        self.waiting.contains_key(id)
    }

    /// Looks at what waits for this answer.
    #[must_use]
    pub fn get(&self, id: &K) -> Option<&V> {
        self.waiting.get(id)
    }

    /// Closes the table and takes out everything that waits. The first cause wins.
    pub fn close(&mut self, cause: C) -> Vec<(K, V)> {
        self.closed.get_or_insert(cause);
        self.waiting.drain().collect()
    }

    /// Why the table is closed, if it is.
    #[must_use]
    pub fn closed(&self) -> Option<&C> {
        self.closed.as_ref()
    }

    /// Number of outstanding requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_comes_out_exactly_once() {
        let mut table = Pending::<u32, &str, &str>::default();
        table.insert(1, "a").expect("open");
        table.insert(2, "b").expect("open");
        assert_eq!(table.insert(1, "again"), Err(Refused::Duplicate("again")));
        assert_eq!(table.settle(&1), Some("a"));
        assert_eq!(table.settle(&1), None, "a second answer finds nobody");
        assert_eq!(table.close("eof"), vec![(2, "b")]);
        assert_eq!(table.insert(3, "late"), Err(Refused::Closed("late", "eof")));
        assert!(table.close("other").is_empty());
        assert_eq!(table.closed(), Some(&"eof"), "the first cause wins");
    }
}
