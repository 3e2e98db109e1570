//! Ending one operation: the signal that its service watches, and its right to say something.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use greenroom_protocol::schema::MessageMcpNotification;
use greenroom_protocol::{Error, JsonRpcMessage as _, RemoteStyle, Result};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::connection::{MethodText, Shared};

/// Tells a service that its operation is to end, for whatever reason: the caller cancelled it, its
/// server was removed, or the connection is ending. Clones watch the same operation.
///
/// By then the operation may not send notifications any more. The service has to clean up and return;
/// it is not dropped, and the logical id stays reserved until it returned.
#[derive(Clone)]
pub struct McpOperationCancellation {
    stopped: watch::Receiver<bool>,
}

impl McpOperationCancellation {
    pub(super) fn new() -> (watch::Sender<bool>, Self) {
        let (stop, stopped) = watch::channel(false);
        (stop, Self { stopped })
    }

    /// Whether the operation is to end.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        // The operation is over when nobody is left who could stop it.
        *self.stopped.borrow() || self.stopped.has_changed().is_err()
    }

    /// Waits until the operation is to end. Cancel-safe.
    pub async fn cancelled(&self) {
        // An error says that the operation is over.
        let _ = self.stopped.clone().wait_for(|stopped| *stopped).await;
    }
}

impl fmt::Debug for McpOperationCancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpOperationCancellation").field("cancelled", &self.is_cancelled()).finish()
    }
}

/// The right to send notifications for one operation, and the connection that carries them.
pub(super) struct Notifications {
    pub(super) connection: Arc<Shared>,
    /// Where the agent is.
    pub(super) to: RemoteStyle,
    /// Held while a notification is queued: none is behind the revocation.
    revoked: Mutex<bool>,
}

impl Notifications {
    pub(super) fn new(connection: Arc<Shared>, to: RemoteStyle) -> Arc<Self> {
        Arc::new(Self { connection, to, revoked: Mutex::new(false) })
    }

    pub(super) fn revoke(&self) {
        *self.revoked.lock() = true;
    }

    pub(super) fn send(&self, notification: &MessageMcpNotification) -> Result<()> {
        let params = Bytes::from(notification.params_text()?);
        let revoked = self.revoked.lock();
        if *revoked {
            return Err(Error::internal_error()
                .data("this MCP operation is over or was cancelled: it may not send notifications any more"));
        }
        let method = MethodText::Name(greenroom_protocol::mcp::METHOD.into());
        self.connection.publish_notification(method, params, self.to, None)
    }
}
