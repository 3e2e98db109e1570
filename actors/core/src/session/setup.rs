//! What building and restoring a session have in common.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use greenroom_protocol::{Error, Result};
use tokio::sync::oneshot;

use crate::connection::Shared;
use crate::connection_to::ConnectionTo;
use crate::request::would_deadlock;
use crate::role::Role;
use crate::run::RunWithConnectionTo;
use crate::runtime::Scope;

/// A callback of the application that runs as a task. The trait ties the future's lifetime to that
/// of the callback, so that only the callback has to be `'static`.
pub(super) trait StartCallback<A>: Send + 'static {
    type Future: Future<Output = Result<()>> + Send;

    fn start(self, session: A) -> Self::Future;
}

impl<A, F, Fut> StartCallback<A> for F
where
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = Result<()>> + Send,
{
    type Future = Fut;

    fn start(self, session: A) -> Fut {
        self(session)
    }
}

/// Runs the application's callback as a task of the connection, outside of the dispatch loop.
pub(super) fn spawn_callback<C: Role, A: Send + 'static, F: StartCallback<A>>(
    connection: &ConnectionTo<C>,
    callback: F,
    session: A,
) -> Result<()> {
    connection.spawn(async move { callback.start(session).await })
}

/// Runs what belongs to a session for as long as the connection lasts.
pub(super) fn spawn_runner<C: Role, R: RunWithConnectionTo<C> + 'static>(
    connection: &ConnectionTo<C>,
    runner: R,
) -> Result<()> {
    let handle = connection.clone();
    connection.spawn(async move { runner.run_with_connection_to(handle).await })
}

/// Waits for what an ordered callback hands over. Inside a handler of the same connection that can
/// never come: then it fails at once.
pub(super) struct Handover<T> {
    receiver: oneshot::Receiver<Result<T>>,
    connection: Arc<Shared>,
    method: &'static str,
}

impl<T> Handover<T> {
    pub(super) fn new<C: Role>(
        connection: &ConnectionTo<C>,
        method: &'static str,
    ) -> (oneshot::Sender<Result<T>>, Self) {
        let (sender, receiver) = oneshot::channel();
        (sender, Self { receiver, connection: connection.shared().clone(), method })
    }
}

impl<T> Future for Handover<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        match Pin::new(&mut self.receiver).poll(cx) {
            Poll::Ready(Ok(outcome)) => Poll::Ready(outcome),
            // The callback was dropped: the connection is gone, or it never took the request.
            Poll::Ready(Err(_)) => Poll::Ready(Err(self.connection.closed_error())),
            Poll::Pending if Scope::is_inside(self.connection.id) => Poll::Ready(Err(would_deadlock(self.method))),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// The error when the current directory cannot be found.
pub(super) fn no_directory(error: &std::io::Error) -> Error {
    Error::internal_error().data(serde_json::json!({
        "reason": "the current directory is unknown: name one with build_session",
        "kind": error.kind().to_string(),
    }))
}
