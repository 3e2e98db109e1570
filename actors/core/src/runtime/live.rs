//! Counting what is alive, so that "nothing is left" is a fact and not a hope.

use std::sync::Arc;

use tokio::sync::watch;

/// Counts the actors of one tree that are alive. Clones share the count.
#[derive(Clone, Debug)]
pub struct LiveCount {
    count: Arc<watch::Sender<usize>>,
}

/// One living actor. A parent's end does not wait for its children in `ractor`; this token, held
/// by the state of each, does.
#[derive(Debug)]
pub struct Live {
    count: Arc<watch::Sender<usize>>,
}

impl LiveCount {
    /// Nothing alive yet.
    #[must_use]
    pub fn new() -> Self {
        Self { count: Arc::new(watch::Sender::new(0)) }
    }

    /// Counts one more until the token is dropped.
    #[must_use]
    pub fn enter(&self) -> Live {
        self.count.send_modify(|count| *count += 1);
        Live { count: self.count.clone() }
    }

    /// How many are alive now.
    #[must_use]
    pub fn now(&self) -> usize {
        *self.count.borrow()
    }

    /// Waits until none is alive. Cancel-safe.
    pub async fn none(&self) {
        let mut changes = self.count.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = changes.wait_for(|count| *count == 0).await;
    }
}

impl Default for LiveCount {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.count.send_modify(|count| *count -= 1);
    }
}
