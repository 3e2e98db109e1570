//! The poll scope: finding handlers that wait for a response that only they could let through.
//!
//! While a handler of a connection is being polled, a thread-local names the connection. A
//! response future of the same connection that is still pending when polled inside the scope can
//! never become ready, because the response waits behind the handler: it fails at once instead of
//! hanging. This sees through `join!`, `select!` and every other combinator. What it cannot see is
//! a handler that waits for another task which waits for the response.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

thread_local! {
    static CURRENT: Cell<u64> = const { Cell::new(0) };
    static SUBJECT: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// Asks which connection's handler is being polled on this thread.
#[derive(Clone, Copy, Debug)]
pub struct Scope;

impl Scope {
    /// Whether code that runs right now is polled by a handler of this connection, and not by a
    /// handler of another one inside it. Other tasks and threads are never inside.
    #[must_use]
    pub fn is_inside(connection: u64) -> bool {
        CURRENT.get() == connection
    }

    /// The method of the message whose handler is being polled on this thread.
    #[must_use]
    pub fn subject() -> Option<Arc<str>> {
        SUBJECT.with_borrow(Clone::clone)
    }
}

impl Scope {
    /// Runs code that is no part of the handler that is being polled on this thread.
    pub(crate) fn outside<T>(work: impl FnOnce() -> T) -> T {
        // No connection has this number.
        let _left = Entered::new(0, None);
        work()
    }
}

/// Sets the thread-local for the duration of one poll, panics included.
struct Entered {
    outer: u64,
    outer_subject: Option<Arc<str>>,
}

impl Entered {
    fn new(connection: u64, subject: Option<Arc<str>>) -> Self {
        Self { outer: CURRENT.replace(connection), outer_subject: SUBJECT.replace(subject) }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.outer);
        drop(SUBJECT.replace(self.outer_subject.take()));
    }
}

/// A future of which every poll happens inside the scope of a connection.
pub struct Scoped<F> {
    connection: u64,
    subject: Arc<str>,
    future: Pin<Box<F>>,
}

impl<F: Future> Scoped<F> {
    /// Puts `future` into the scope of `connection` (an id above 0). It handles a message with the
    /// method `subject`. As cancel-safe as `future`.
    pub fn new(connection: u64, subject: impl Into<Arc<str>>, future: F) -> Self {
        Self { connection, subject: subject.into(), future: Box::pin(future) }
    }
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _entered = Entered::new(self.connection, Some(self.subject.clone()));
        self.future.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_scope_is_there_during_polls_only() {
        assert!(!Scope::is_inside(7));
        Scoped::new(7, "outer", async {
            assert!(Scope::is_inside(7));
            assert!(!Scope::is_inside(8));
            // A nested connection's handler hides the outer one.
            Scoped::new(8, "inner", async {
                assert!(Scope::is_inside(8) && !Scope::is_inside(7));
                assert_eq!(Scope::subject().as_deref(), Some("inner"));
            })
            .await;
            Scope::outside(|| assert!(!Scope::is_inside(7) && Scope::subject().is_none()));
            tokio::task::yield_now().await;
            assert!(Scope::is_inside(7));
            assert_eq!(Scope::subject().as_deref(), Some("outer"));
        })
        .await;
        assert!(!Scope::is_inside(7));
        assert_eq!(Scope::subject(), None);
    }

    #[tokio::test]
    async fn a_panic_leaves_the_scope() {
        use futures_util::FutureExt as _;
        let scoped = Scoped::new(9, "any", async { panic!("expected by this test") });
        assert!(std::panic::AssertUnwindSafe(scoped).catch_unwind().await.is_err());
        assert!(!Scope::is_inside(9));
    }
}
