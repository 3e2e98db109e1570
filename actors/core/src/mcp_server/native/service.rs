//! What answers the operations of a server.

use std::fmt;
use std::sync::Arc;

use greenroom_protocol::mcp::McpOutcome;
use greenroom_protocol::schema::{McpRequestId, McpServerAcpId, MessageMcpNotification};
use greenroom_protocol::{BoxFuture, Error, Result};
use serde_json::{Map, Value};

use super::super::context::McpConnectionTo;
use super::cancellation::{McpOperationCancellation, Notifications};
use crate::request::RequestCancellation;
use crate::role::Role;

/// Answers the operations of an MCP server. One value serves all of them, at the same time.
///
/// What is shared between operations is for the implementation to decide; who asks, and what the
/// asking client can do, is said by each request's own context, never by an earlier one.
pub trait McpService<Counterpart: Role>: Send + Sync + 'static {
    /// One operation. It runs in a task of its own and may wait for responses of the connection.
    ///
    /// When [`operation_cancellation`](McpRequestContext::operation_cancellation) says so, the future
    /// has to clean up and return. It is not dropped for that: it is dropped only if it still runs 5 s
    /// after the end of the connection.
    ///
    /// # Errors
    /// An error, like a panic, is answered `-33002` with its text as data: the server failed. What
    /// the server wants to say in terms of MCP is an [`McpOutcome`].
    fn execute(
        &self,
        request: McpRequest,
        context: McpRequestContext<Counterpart>,
    ) -> BoxFuture<'static, Result<McpOutcome, Error>>;
}

/// What an operation asks for.
#[derive(Clone, PartialEq)]
pub struct McpRequest {
    /// The method of MCP, for example `tools/call`.
    pub method: String,
    /// Its params, `_meta` included.
    pub params: Option<Map<String, Value>>,
}

impl fmt::Debug for McpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

/// What belongs to one operation. Cheap to clone.
pub struct McpRequestContext<Counterpart: Role> {
    pub(super) server_id: McpServerAcpId,
    pub(super) request_id: McpRequestId,
    pub(super) metadata: Arc<Map<String, Value>>,
    pub(super) cancellation: RequestCancellation,
    pub(super) operation: McpOperationCancellation,
    pub(super) connection: McpConnectionTo<Counterpart>,
    pub(super) notifications: Arc<Notifications>,
}

impl<Counterpart: Role> McpRequestContext<Counterpart> {
    /// The id under which the server was declared.
    #[must_use]
    pub fn server_id(&self) -> &McpServerAcpId {
        &self.server_id
    }

    /// The logical id of the operation, the same on every hop.
    #[must_use]
    pub fn request_id(&self) -> &McpRequestId {
        &self.request_id
    }

    /// The `_meta` of the request's params. It holds the version of MCP and the client's
    /// capabilities; both were checked.
    #[must_use]
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// Tells whether the caller wants the operation cancelled.
    #[must_use]
    pub fn cancellation(&self) -> &RequestCancellation {
        &self.cancellation
    }

    /// Tells whether the operation is to end for any reason, the caller's wish included.
    #[must_use]
    pub fn operation_cancellation(&self) -> &McpOperationCancellation {
        &self.operation
    }

    /// The connection that hosts the server.
    #[must_use]
    pub fn connection(&self) -> &McpConnectionTo<Counterpart> {
        &self.connection
    }

    /// Sends a notification of this operation to the agent, for example `notifications/progress`.
    ///
    /// It waits while too much is unsent, as [`ConnectionTo::ready`](crate::ConnectionTo::ready).
    /// Ordering: what is sent precedes the answer of the operation. Cancel-safety: a future that is
    /// dropped has sent the notification or not.
    ///
    /// # Errors
    /// When the operation was cancelled or is over; nothing is sent then. When the connection is over.
    pub async fn send_notification(
        &self,
        method: impl Into<String>,
        params: Option<Map<String, Value>>,
    ) -> Result<(), Error> {
        let mut notification = MessageMcpNotification::new(self.server_id.clone(), self.request_id.clone(), method);
        notification.params = params;
        tokio::select! {
            biased;
            // Then it fails, and says why.
            () = self.operation.cancelled() => {}
            () = self.connection.connection().ready() => {}
        }
        self.notifications.send(&notification)
    }
}

impl<Counterpart: Role> Clone for McpRequestContext<Counterpart> {
    fn clone(&self) -> Self {
        Self {
            server_id: self.server_id.clone(),
            request_id: self.request_id.clone(),
            metadata: self.metadata.clone(),
            cancellation: self.cancellation.clone(),
            operation: self.operation.clone(),
            connection: self.connection.clone(),
            notifications: self.notifications.clone(),
        }
    }
}

impl<Counterpart: Role> fmt::Debug for McpRequestContext<Counterpart> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("McpRequestContext");
        shown.field("server_id", &self.server_id).field("request_id", &self.request_id);
        shown.field("operation", &self.operation).finish_non_exhaustive()
    }
}
