//! Handlers that live in the future of `connect_to` or `connect_with`.
//!
//! Such handlers may borrow from their caller, which no actor can. The dispatch actor sends each
//! message here and waits; if it is killed meanwhile, the handler goes on, and the next message
//! comes after it all the same.

use greenroom_protocol::{BoxFuture, Error, Origin, Result};
use tokio::sync::oneshot;

use super::delivery::Delivery;
use super::entries::Handlers;
use super::interest::Plan;
use super::port::{Verdict, guarded};
use crate::close::{HandleConnectionClose, contained};
use crate::connection_to::ConnectionTo;
use crate::dispatch::Handled;
use crate::role::Role;
use crate::runtime::Mailbox;

enum Job {
    Handle(Plan, Delivery, oneshot::Sender<Result<Handled<Delivery>>>),
    Close(oneshot::Sender<Result<()>>),
    /// The dispatch actor's end is gone: nothing comes after this.
    End,
}

/// The dispatch actor's end.
pub(crate) struct HostHandle<C> {
    // At most a few jobs: the dispatch actor waits for each one. A mailbox and not a channel of tokio,
    // which takes the memory of 32 of them at once.
    jobs: Mailbox<Job>,
    _role: std::marker::PhantomData<fn(C)>,
}

/// The end in the caller's future.
pub(crate) struct Host<'h, C: Role, Close> {
    jobs: Mailbox<Job>,
    handlers: Handlers<'h, C>,
    close: Option<Close>,
}

impl<'h, C: Role, Close: HandleConnectionClose<C>> Host<'h, C, Close> {
    pub(crate) fn new(handlers: Handlers<'h, C>, close: Close) -> (Self, HostHandle<C>) {
        let jobs = Mailbox::new();
        let handle = HostHandle { jobs: jobs.clone(), _role: std::marker::PhantomData };
        (Self { jobs, handlers, close: Some(close) }, handle)
    }

    /// Runs handlers, one at a time, until the connection is over.
    pub(crate) async fn run(mut self, connection: ConnectionTo<C>) {
        loop {
            match self.jobs.receive().await {
                Job::Handle(plan, delivery, done) => {
                    let handled = guarded(&mut self.handlers, &plan, delivery, &connection).await;
                    // The receiver is part of the dispatch actor's leased state: it outlives the
                    // actor. It is gone only when the whole connection is.
                    let _ = done.send(handled);
                }
                Job::Close(done) => {
                    let result = match self.close.take() {
                        Some(close) => contained(close.handle_connection_close(connection.clone())).await,
                        None => Ok(()),
                    };
                    let _ = done.send(result);
                }
                Job::End => return,
            }
        }
    }
}

impl<C: Role, Close> Drop for Host<'_, C, Close> {
    /// Whoever waits for a job that nobody does any more learns it.
    fn drop(&mut self) {
        drop(self.jobs.close());
    }
}

impl<C> Drop for HostHandle<C> {
    fn drop(&mut self) {
        self.jobs.send_last(Job::End);
    }
}

impl<C> HostHandle<C> {
    /// Hands a message to the host.
    pub(super) fn post(&self, plan: Plan, delivery: Delivery) -> Result<Verdict> {
        let (done, verdict) = oneshot::channel();
        self.jobs.send(Job::Handle(plan, delivery, done)).map_err(|_| gone())?;
        Ok(verdict)
    }

    /// Has the host run the close callbacks.
    pub(super) fn close(&self) -> BoxFuture<'static, Result<()>> {
        let (done, result) = oneshot::channel();
        // A host that is gone runs no callbacks: its connection is being dropped.
        let _ = self.jobs.send(Job::Close(done));
        Box::pin(async move { result.await.unwrap_or(Ok(())) })
    }
}

/// The error of a message whose host disappeared: the future that drives the connection was
/// dropped.
pub(crate) fn gone() -> Error {
    Error::internal_error()
        .with_origin(Origin::Terminated)
        .data(serde_json::json!({ "reason": greenroom_protocol::CONNECTION_TERMINATED_REASON }))
}
