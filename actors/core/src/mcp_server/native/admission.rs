//! Whether operations may begin, and how many are not over: what a registration and its operations
//! have in common.
//!
//! Both are one value behind one lock. Whoever closes admission and then sees that nothing runs
//! knows that nothing will.

use tokio::sync::watch;

use super::operation::Stop;

/// See the module documentation.
pub(super) struct Admission {
    state: watch::Sender<State>,
}

#[derive(Default)]
struct State {
    /// Why operations are to end, once they are.
    closing: Option<Stop>,
    /// How many operations are not over.
    running: usize,
}

impl Admission {
    pub(super) fn new() -> Self {
        Self { state: watch::Sender::new(State::default()) }
    }

    /// Admits nothing from now on, and tells what runs to end. The first reason stays.
    pub(super) fn close(&self, stop: Stop) {
        self.state.send_if_modified(|state| {
            let first = state.closing.is_none();
            state.closing.get_or_insert(stop);
            first
        });
    }

    /// Why nothing is admitted any more.
    pub(super) fn closing(&self) -> Option<Stop> {
        self.state.borrow().closing
    }

    /// Counts an operation that begins, until [`end`](Self::end).
    ///
    /// # Errors
    /// Why it may not begin; it is not counted then.
    pub(super) fn begin(&self) -> Result<(), Stop> {
        let mut refused = None;
        self.state.send_if_modified(|state| {
            refused = state.closing;
            state.running += usize::from(refused.is_none());
            // Nobody waits for that.
            false
        });
        refused.map_or(Ok(()), Err)
    }

    /// An operation is over, cleanup included.
    pub(super) fn end(&self) {
        self.state.send_if_modified(|state| {
            state.running -= 1;
            // The others need not hear of each one that ends.
            state.running == 0
        });
    }

    /// How many operations are not over.
    pub(super) fn running(&self) -> usize {
        self.state.borrow().running
    }

    /// Waits until operations are to end. Cancel-safe.
    pub(super) async fn closed(&self) -> Stop {
        let closing = self.state.subscribe().wait_for(|state| state.closing.is_some()).await.map(|state| state.closing);
        // The sender is a part of what this borrows: there is a reason.
        closing.ok().flatten().unwrap_or(Stop::Removed)
    }

    /// Waits until no operation runs. Cancel-safe.
    pub(super) async fn settled(&self) {
        // The sender is a part of what this borrows.
        let _ = self.state.subscribe().wait_for(|state| state.running == 0).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_comes_after_the_end_is_refused_and_not_counted() {
        let admission = Admission::new();
        assert_eq!((admission.begin(), admission.running(), admission.closing()), (Ok(()), 1, None));
        admission.close(Stop::ShuttingDown);
        admission.close(Stop::Removed);
        assert_eq!(admission.begin(), Err(Stop::ShuttingDown), "the first reason stays");
        assert_eq!((admission.running(), admission.closing()), (1, Some(Stop::ShuttingDown)));
        admission.end();
        assert_eq!((admission.begin(), admission.running()), (Err(Stop::ShuttingDown), 0));
    }

    #[tokio::test]
    async fn both_waits_hear_what_they_wait_for() {
        let admission = Arc::new(Admission::new());
        admission.begin().expect("open");
        admission.begin().expect("open");
        let watching = admission.clone();
        let mut closed = tokio::spawn(async move { watching.closed().await });
        let watching = admission.clone();
        let mut settled = tokio::spawn(async move { watching.settled().await });
        admission.end();
        tokio::task::yield_now().await;
        assert!(!closed.is_finished() && !settled.is_finished());
        admission.close(Stop::Removed);
        assert_eq!((&mut closed).await.expect("no panic"), Stop::Removed);
        assert!(!settled.is_finished());
        admission.end();
        (&mut settled).await.expect("no panic");
        assert_eq!(admission.closed().await, Stop::Removed, "whoever comes late hears it, too");
    }

    /// The moment that matters is between asking and counting: nothing fits into it.
    #[test]
    fn whoever_closed_and_saw_nothing_running_is_right_for_ever() {
        for _ in 0..200 {
            let admission = Arc::new(Admission::new());
            let calls = admission.clone();
            let calling = std::thread::spawn(move || {
                let mut begun = 0_usize;
                while calls.begin().is_ok() {
                    begun += 1;
                    if begun.is_multiple_of(3) {
                        calls.end();
                    }
                }
                begun
            });
            std::thread::yield_now();
            admission.close(Stop::Removed);
            let seen = admission.running();
            let begun = calling.join().expect("no panic");
            // An end may be under way; a beginning may not.
            let left = admission.running();
            assert_eq!(left, begun - begun / 3);
            assert!(left <= seen, "{left} run, and {seen} did after the end of admission");
        }
    }
}
