//! One operation: admitted, driven, cleaned up, answered.
//!
//! It is a task of the runtime and not of an actor: nothing may drop a service while it cleans up.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use greenroom_protocol::mcp::{BACKEND_FAILURE, Call, McpOutcome, SERVER_UNAVAILABLE, conclude};
use greenroom_protocol::{BoxFuture, Error, RemoteStyle, Result};
use tokio::sync::watch;
use tokio::time::Duration;

use super::admission::Admission;
use super::cancellation::{McpOperationCancellation, Notifications};
use super::registration::ServerItem;
use super::service::McpRequest;
use crate::connection::{OpenCall, Shared};
use crate::request::RequestCancellation;
use crate::runtime::Mailbox;

/// How long a service may still take once the connection has ended.
const CLEANUP_LIMIT: Duration = Duration::from_secs(5);

/// Why operations are stopped from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The caller wants it.
    Cancelled,
    /// The server was removed.
    Removed,
    /// The connection is ending.
    ShuttingDown,
}

impl Stop {
    /// What the caller is told.
    pub(super) fn error(self) -> Error {
        match self {
            Self::Cancelled | Self::ShuttingDown => Error::request_cancelled(),
            Self::Removed => unavailable("this MCP server was removed"),
        }
    }
}

/// There is no such server.
pub(super) fn unavailable(reason: &'static str) -> Error {
    Error::new(SERVER_UNAVAILABLE, "MCP server unavailable").data(reason)
}

/// The server failed, for this reason.
pub(super) fn failed(reason: impl Into<String>) -> Error {
    Error::new(BACKEND_FAILURE, "MCP backend failure").data(reason.into())
}

/// What a registration does with an admitted operation; made for one role and one service.
pub(super) type Execute = Arc<dyn Fn(McpRequest, Parts) -> BoxFuture<'static, Result<McpOutcome>> + Send + Sync>;

/// What a request's context is made of, whatever the role.
pub(super) struct Parts {
    pub(super) call: Call,
    pub(super) cancellation: RequestCancellation,
    pub(super) operation: McpOperationCancellation,
    pub(super) notifications: Arc<Notifications>,
}

/// An operation whose logical id is reserved.
pub(super) struct Operation {
    open: OpenCall,
    method: String,
    connection: Arc<Shared>,
    notifications: Arc<Notifications>,
    stop: watch::Sender<bool>,
    admission: Arc<Admission>,
    reserved: Reserved,
}

/// Keeps the logical id. Dropping it, in whatever way the task ends, gives it back; who waits until
/// nothing runs any more waits for that, too.
pub(super) struct Reserved {
    id: Arc<str>,
    registration: Mailbox<ServerItem>,
    admission: Arc<Admission>,
    released: bool,
}

impl Reserved {
    /// Counts the operation among those that run.
    ///
    /// # Errors
    /// Why it may not begin any more.
    pub(super) fn new(
        id: Arc<str>,
        registration: Mailbox<ServerItem>,
        admission: Arc<Admission>,
    ) -> Result<Self, Stop> {
        admission.begin()?;
        Ok(Self { id, registration, admission, released: false })
    }

    /// The id may be used again.
    fn release(&mut self) {
        if !std::mem::replace(&mut self.released, true) {
            let _ = self.registration.send(ServerItem::Ended(self.id.clone()));
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.release();
        self.admission.end();
    }
}

impl Operation {
    /// Starts the task of an admitted operation.
    pub(super) fn start(
        call: Call,
        open: OpenCall,
        to: RemoteStyle,
        reserved: Reserved,
        execute: &Execute,
        connection: Arc<Shared>,
    ) {
        let notifications = Notifications::new(connection.clone(), to);
        let (stop, operation) = McpOperationCancellation::new();
        let cancellation = RequestCancellation::new(open.state().cancelled.clone());
        let request = McpRequest { method: call.method.clone(), params: call.params.clone() };
        let method = call.method.clone();
        let parts = Parts { call, cancellation, operation, notifications: notifications.clone() };
        let execute = execute.clone();
        let admission = reserved.admission.clone();
        let task = Self { open, method, connection: connection.clone(), notifications, stop, admission, reserved };
        // The service's own code runs in the task only.
        connection.spawn_owed(task.run(async move { execute(request, parts).await }));
    }

    async fn run(mut self, work: impl Future<Output = Result<McpOutcome>>) {
        let caller = RequestCancellation::new(self.open.state().cancelled.clone());
        let mut termination = self.connection.termination.subscribe();
        let mut work = std::pin::pin!(AssertUnwindSafe(work).catch_unwind());
        let mut limit = std::pin::pin!(async {
            let _ = termination.wait_for(Option::is_some).await;
            tokio::time::sleep(CLEANUP_LIMIT).await;
        });
        let admission = self.admission.clone();
        let mut closed = std::pin::pin!(admission.closed());
        let mut stopped = None;
        let result = loop {
            let stop = tokio::select! {
                biased;
                // A completion that is there wins over a cancellation that is there too.
                result = &mut work => break result,
                () = caller.cancelled(), if stopped.is_none() => Stop::Cancelled,
                stop = &mut closed, if stopped.is_none() => stop,
                () = &mut limit => break Ok(Err(failed("the connection ended"))),
            };
            self.notifications.revoke();
            self.stop.send_replace(true);
            stopped = Some(stop);
        };
        self.notifications.revoke();
        let outcome = match (stopped, result) {
            (Some(stop), _) => Err(stop.error()),
            (None, Ok(Ok(outcome))) => conclude(&self.method, outcome),
            (None, Ok(Err(error))) => Err(failed(error.to_string())),
            // What the panic said went to the panic hook; it may quote payload.
            (None, Err(_panic)) => {
                tracing::error!(connection = %self.connection.name, "an MCP service panicked");
                Err(failed("the MCP server panicked"))
            }
        };
        let outcome = outcome.and_then(|response| {
            serde_json::to_vec(&response).map(Bytes::from).map_err(|_| failed("the outcome cannot be written"))
        });
        // Before the answer: whoever has that may use the id again.
        self.reserved.release();
        // A peer that is gone needs no answer.
        let _ = self.open.answer(outcome);
        // After it: the end of the connection waits for answers, not for operations.
        drop(self.reserved);
    }
}
