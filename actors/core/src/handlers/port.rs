//! The way from the dispatch actor to the handlers.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use greenroom_protocol::{BoxFuture, Result};
use tokio::sync::oneshot;

use super::delivery::Delivery;
use super::entries::Handlers;
use super::host::HostHandle;
use super::interest::Plan;
use crate::close::contained;
use crate::connection::panicked;
use crate::connection_to::ConnectionTo;
use crate::dispatch::Handled;
use crate::role::Role;
use crate::runtime::Scoped;

/// What runs once, when the input has ended.
pub(crate) type CloseCallback<C> = Box<dyn FnOnce(ConnectionTo<C>) -> BoxFuture<'static, Result<()>> + Send>;

/// Where the handlers are.
pub(crate) enum HandlerPort<C: Role> {
    /// In the dispatch actor's state: for handlers that borrow nothing.
    Inline { handlers: Handlers<'static, C>, close: Option<CloseCallback<C>> },
    /// In the future that drives the connection: those may borrow from its caller.
    Hosted(HostHandle<C>),
}

/// The handlers' verdict on a message that was sent to the host.
pub(crate) type Verdict = oneshot::Receiver<Result<Handled<Delivery>>>;

/// How far a call got.
pub(crate) enum Called {
    /// The handlers ran.
    Done(Result<Handled<Delivery>>),
    /// The host has it; its verdict comes later. Whoever keeps the receiver may be restarted
    /// meanwhile.
    Posted(Verdict),
}

impl<C: Role> HandlerPort<C> {
    /// Runs the handlers of a plan, or has them run. A panic becomes an error of this message
    /// alone.
    pub(crate) async fn call(&mut self, plan: Plan, delivery: Delivery, connection: &ConnectionTo<C>) -> Called {
        match self {
            Self::Hosted(host) => match host.post(plan, delivery) {
                Ok(verdict) => Called::Posted(verdict),
                Err(error) => Called::Done(Err(error)),
            },
            Self::Inline { handlers, .. } => Called::Done(guarded(handlers, &plan, delivery, connection).await),
        }
    }

    /// The close callbacks, to be awaited; at most once.
    pub(crate) fn close(&mut self, connection: ConnectionTo<C>) -> BoxFuture<'static, Result<()>> {
        match self {
            Self::Hosted(host) => host.close(),
            Self::Inline { close, .. } => match close.take() {
                Some(close) => Box::pin(contained(close(connection))),
                None => Box::pin(std::future::ready(Ok(()))),
            },
        }
    }
}

/// Runs handlers inside the connection's poll scope and contains their panics.
pub(super) async fn guarded<C: Role>(
    handlers: &mut Handlers<'_, C>,
    plan: &[usize],
    delivery: Delivery,
    connection: &ConnectionTo<C>,
) -> Result<Handled<Delivery>> {
    let method: Arc<str> = delivery.method().into();
    let work = Scoped::new(connection.id(), method.clone(), handlers.handle(plan, delivery, connection));
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_panic| {
        // What the panic said went to the panic hook; it may quote payload.
        tracing::error!(method = &*method, "a handler panicked");
        Err(panicked(&method))
    })
}
