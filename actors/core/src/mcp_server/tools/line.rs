//! Where calls wait for their turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The line that calls enter, and its head. First in, first out.
pub(super) fn line<T>() -> (Tail<T>, Head<T>) {
    let line = Arc::new(Line { state: Mutex::new(State::default()), changed: Notify::new() });
    (Tail(line.clone()), Head(line))
}

struct Line<T> {
    state: Mutex<State<T>>,
    /// Tells the one head.
    changed: Notify,
}

struct State<T> {
    /// By their numbers, which grow.
    waiting: BTreeMap<u64, T>,
    entered: u64,
    /// Nobody enters any more, or nobody takes.
    closed: bool,
}

impl<T> Default for State<T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), entered: 0, closed: false }
    }
}

impl<T> Line<T> {
    fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_one();
    }
}

/// Where calls enter.
pub(super) struct Tail<T>(Arc<Line<T>>);

/// A place in the line. Dropping it takes what waits there out, and drops it.
#[must_use]
pub(super) struct Place<T> {
    line: Arc<Line<T>>,
    number: u64,
}

/// Where calls get their turn.
pub(super) struct Head<T>(Arc<Line<T>>);

impl<T> Tail<T> {
    /// Waits in line, for as long as the place is kept. `None` when nobody takes any more.
    pub(super) fn enter(&self, item: T) -> Option<Place<T>> {
        let number = {
            let mut state = self.0.state.lock();
            if state.closed {
                return None;
            }
            state.entered += 1;
            let number = state.entered;
            state.waiting.insert(number, item);
            number
        };
        self.0.changed.notify_one();
        Some(Place { line: self.0.clone(), number })
    }
}

impl<T> Drop for Tail<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        let left = self.line.state.lock().waiting.remove(&self.number);
        // Outside of the lock: it may run anybody's code.
        drop(left);
    }
}

impl<T> Head<T> {
    /// The next one. `None` once the line is empty for ever. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<T> {
        loop {
            {
                let mut state = self.0.state.lock();
                if let Some((_, item)) = state.waiting.pop_first() {
                    return Some(item);
                }
                if state.closed {
                    return None;
                }
            }
            // What changed since is remembered.
            self.0.changed.notified().await;
        }
    }
}

impl<T> Drop for Head<T> {
    fn drop(&mut self) {
        self.0.close();
        let left = std::mem::take(&mut self.0.state.lock().waiting);
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_line_keeps_its_order_and_forgets_who_left() {
        let (tail, mut head) = line();
        let shared = Arc::new(());
        let places: Vec<_> = (1..=4).map(|n| tail.enter((n, shared.clone())).expect("open")).collect();
        let mut places = places.into_iter();
        let (first, second) = (places.next(), places.next());
        drop(second);
        assert_eq!(Arc::strong_count(&shared), 4, "what left is dropped at once");
        assert_eq!(head.next().await.map(|(n, _)| n), Some(1));
        // Its turn has come: the place means nothing any more.
        drop(first);
        assert_eq!(head.next().await.map(|(n, _)| n), Some(3));
        drop(tail);
        assert_eq!(head.next().await.map(|(n, _)| n), Some(4), "who waits still gets a turn");
        assert!(head.next().await.is_none());
        drop(places);
        assert_eq!(Arc::strong_count(&shared), 1);
    }

    #[tokio::test]
    async fn the_head_waits_for_who_enters() {
        let (tail, mut head) = line();
        let turn = tokio::spawn(async move { (head.next().await, head.next().await) });
        tokio::task::yield_now().await;
        let place = tail.enter(7).expect("open");
        tokio::task::yield_now().await;
        drop((place, tail));
        assert_eq!(turn.await.expect("no panic"), (Some(7), None));
    }

    #[tokio::test]
    async fn without_a_head_nothing_waits() {
        let (tail, head) = line();
        let shared = Arc::new(());
        let place = tail.enter(shared.clone()).expect("open");
        drop(head);
        assert_eq!(Arc::strong_count(&shared), 1);
        drop(place);
        assert!(tail.enter(shared.clone()).is_none());
        assert_eq!(Arc::strong_count(&shared), 1);
    }
}
