//! What building and restoring a session have in common.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt as _;
use greenroom_protocol::{Error, Result};
use tokio::sync::oneshot;

use crate::connection::Shared;
use crate::connection_to::ConnectionTo;
use crate::mcp_server::{Attached, Attachments};
use crate::request::would_deadlock;
use crate::role::acp::Agent;
use crate::role::{HasPeer, Role};
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

/// Makes the servers of a session reachable, and begins what runs beside them: both before the
/// request that declares them is sent (spec §6.3, 83).
pub(super) fn attach<C: HasPeer<Agent>, R: RunWithConnectionTo<C> + 'static>(
    connection: &ConnectionTo<C>,
    servers: Attachments<C>,
    runner: R,
) -> Result<Attached> {
    let attached = servers.attach(connection, connection.counterpart().remote_style(Agent))?;
    let handle = connection.clone();
    begin(connection, attached.beside(async move { runner.run_with_connection_to(handle).await }))?;
    Ok(attached)
}

/// Polls `work` once, here, and lets it go on as a task of the connection. Not in the scope of a
/// handler that calls this: the task may wait for responses, and is about to.
fn begin<C: Role>(connection: &ConnectionTo<C>, work: impl Future<Output = Result<()>> + Send + 'static) -> Result<()> {
    let mut work = Box::pin(AssertUnwindSafe(work).catch_unwind());
    // Whoever opens a session need not be in a runtime; what runs beside it may rely on one.
    let _runtime = connection.shared().enter();
    // Nobody is woken by this poll: the task polls again.
    let first = Scope::outside(|| work.as_mut().poll(&mut Context::from_waker(Waker::noop())));
    match first {
        Poll::Ready(Ok(result)) => result,
        // What the panic said went to the panic hook; it may quote payload.
        Poll::Ready(Err(_panic)) => Err(Error::internal_error().data("a runner panicked")),
        Poll::Pending => connection.spawn(async move {
            work.await.unwrap_or_else(|_panic| Err(Error::internal_error().data("a runner panicked")))
        }),
    }
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
