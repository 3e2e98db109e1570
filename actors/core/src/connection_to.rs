//! What application code holds of a connection.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use greenroom_protocol::{Error, JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, RemoteStyle, RequestId, Result};

use crate::connection::{MethodText, Shared, TaskItem};
use crate::request::{Decode, PreparedRequest, Reply, SentRequest};
use crate::role::{HasPeer, Role};
use crate::runtime::{Node, Snapshot};
use crate::termination::ConnectionTermination;

/// A handle to a connection whose peer plays the role `Counterpart`.
///
/// Cheap to clone. It keeps nothing alive: after the end of the connection every call fails with
/// an error that says why.
pub struct ConnectionTo<Counterpart: Role> {
    shared: Arc<Shared>,
    counterpart: Counterpart,
}

impl<Counterpart: Role> ConnectionTo<Counterpart> {
    pub(crate) fn new(shared: Arc<Shared>, counterpart: Counterpart) -> Self {
        Self { shared, counterpart }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// A number that no other connection of this process has.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// The role of the peer.
    #[must_use]
    pub fn counterpart(&self) -> Counterpart {
        self.counterpart.clone()
    }

    /// A request to the peer, not sent until it is consumed.
    pub fn prepare_request<Req: JsonRpcRequest>(&self, request: Req) -> PreparedRequest<Req::Response>
    where
        Counterpart: HasPeer<Counterpart>,
    {
        self.prepare_request_to(self.counterpart.clone(), request)
    }

    /// A request to a logical peer, not sent until it is consumed.
    pub fn prepare_request_to<Peer: Role, Req: JsonRpcRequest>(
        &self,
        peer: Peer,
        request: Req,
    ) -> PreparedRequest<Req::Response>
    where
        Counterpart: HasPeer<Peer>,
    {
        let to = self.counterpart.remote_style(peer);
        let reply = Reply::new(self.shared.allocate_id(), request.method(), to);
        let params = request.params_text().map(Bytes::from);
        let decode = Decode::Direct(<Req::Response as JsonRpcResponse>::from_text);
        PreparedRequest::new(reply, self.shared.clone(), decode, params)
    }

    /// Sends a request to the peer. When this returns, the request is registered and queued.
    pub fn send_request<Req: JsonRpcRequest>(&self, request: Req) -> SentRequest<Req::Response>
    where
        Counterpart: HasPeer<Counterpart>,
    {
        self.prepare_request(request).send()
    }

    /// Sends a request to a logical peer. When this returns, the request is registered and queued.
    pub fn send_request_to<Peer: Role, Req: JsonRpcRequest>(
        &self,
        peer: Peer,
        request: Req,
    ) -> SentRequest<Req::Response>
    where
        Counterpart: HasPeer<Peer>,
    {
        self.prepare_request_to(peer, request).send()
    }

    /// Sends a notification to the peer. When this returns, it is queued behind everything sent
    /// before.
    ///
    /// # Errors
    /// When the params cannot be written, or the connection is over.
    pub fn send_notification<N: JsonRpcNotification>(&self, notification: N) -> Result<()>
    where
        Counterpart: HasPeer<Counterpart>,
    {
        self.send_notification_to(self.counterpart.clone(), notification)
    }

    /// Sends a notification to a logical peer.
    ///
    /// # Errors
    /// As [`send_notification`](Self::send_notification).
    pub fn send_notification_to<Peer: Role, N: JsonRpcNotification>(&self, peer: Peer, notification: N) -> Result<()>
    where
        Counterpart: HasPeer<Peer>,
    {
        let to = self.counterpart.remote_style(peer);
        let params = Bytes::from(notification.params_text()?);
        let method = MethodText::Name(notification.method().to_owned().into());
        self.shared.publish_notification(method, params, to, None)
    }

    /// Asks the peer to cancel one of our requests.
    ///
    /// # Errors
    /// When the connection is over, or the id is none of ours.
    pub fn send_cancel_request(&self, id: impl Into<RequestId>) -> Result<()>
    where
        Counterpart: HasPeer<Counterpart>,
    {
        self.send_cancel_request_to(self.counterpart.clone(), id)
    }

    /// Asks a logical peer to cancel one of our requests.
    ///
    /// # Errors
    /// As [`send_cancel_request`](Self::send_cancel_request).
    pub fn send_cancel_request_to<Peer: Role>(&self, peer: Peer, id: impl Into<RequestId>) -> Result<()>
    where
        Counterpart: HasPeer<Peer>,
    {
        match id.into() {
            RequestId::Number(id) => self.shared.send_cancel(id, self.counterpart.remote_style(peer)),
            RequestId::Str(_) | RequestId::Null => {
                Err(Error::invalid_params().data("requests of this side have integer ids"))
            }
        }
    }

    /// Runs a task beside the connection. It may wait for responses. It is aborted when the
    /// connection ends. If it fails or panics, only the requests that it had taken over are
    /// affected, unless the connection was built with `end_on_task_error`.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn spawn(&self, task: impl IntoFuture<Output = Result<()>, IntoFuture: Send + 'static>) -> Result<()> {
        let task = Box::pin(task.into_future());
        self.shared.tasks.send(TaskItem::Spawn(task)).map_err(|_| self.shared.closed_error())
    }

    /// Waits until there is room for more output: less unsent than the high mark. For tasks that
    /// produce a lot. Inside a handler it returns at once, because handlers must not wait for
    /// their own connection. Cancel-safe.
    pub async fn ready(&self) {
        if !crate::runtime::Scope::is_inside(self.shared.id) {
            self.shared.out_credit.room().await;
        }
    }

    /// Waits until the peer has closed its side and the close callbacks are done. Cancel-safe.
    pub async fn incoming_closed(&self) {
        // The sender lives in the shared part, so waiting cannot fail.
        let _ = self.shared.incoming_closed.subscribe().wait_for(|closed| *closed).await;
    }

    /// Whether the peer has closed its side and the close callbacks are done.
    #[must_use]
    pub fn is_incoming_closed(&self) -> bool {
        *self.shared.incoming_closed.borrow()
    }

    /// Waits for the end of the connection and says how it ended. Cancel-safe.
    pub async fn terminated(&self) -> ConnectionTermination {
        let mut changes = self.shared.termination.subscribe();
        match changes.wait_for(Option::is_some).await {
            Ok(termination) => termination.clone().unwrap_or(ConnectionTermination::Dropped),
            Err(_) => ConnectionTermination::Dropped,
        }
    }

    /// How the connection ended; `None` while it runs.
    #[must_use]
    pub fn termination(&self) -> Option<ConnectionTermination> {
        self.shared.termination.borrow().clone()
    }

    /// The live tree of the connection's actors.
    #[must_use]
    pub fn tree(&self) -> Arc<Node> {
        self.shared.node.clone()
    }

    /// A picture of the connection's actors: status, restarts, mailboxes, open requests.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.shared.node.snapshot()
    }

    /// How a message to this peer travels.
    #[doc(hidden)]
    pub fn style_of<Peer: Role>(&self, peer: Peer) -> RemoteStyle
    where
        Counterpart: HasPeer<Peer>,
    {
        self.counterpart.remote_style(peer)
    }
}

impl<Counterpart: Role> Clone for ConnectionTo<Counterpart> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), counterpart: self.counterpart.clone() }
    }
}

impl<Counterpart: Role> fmt::Debug for ConnectionTo<Counterpart> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionTo").field("id", &self.id()).field("peer", &self.counterpart).finish_non_exhaustive()
    }
}

mod sealed {
    pub trait Sealed {}
}

/// Which handle the callbacks of a builder get.
pub trait ConnectionContext: sealed::Sealed + Send + Sync + 'static {
    /// The handle.
    type Connection<Counterpart: Role>: Clone + Send + Sync + 'static;

    /// The handle of a raw connection.
    #[doc(hidden)]
    fn of<Counterpart: Role>(connection: ConnectionTo<Counterpart>) -> Self::Connection<Counterpart>;
}

/// Callbacks get the protocol-neutral [`ConnectionTo`].
#[derive(Clone, Copy, Debug, Default)]
pub struct RawConnectionContext;

impl sealed::Sealed for RawConnectionContext {}

impl ConnectionContext for RawConnectionContext {
    type Connection<Counterpart: Role> = ConnectionTo<Counterpart>;

    fn of<Counterpart: Role>(connection: ConnectionTo<Counterpart>) -> ConnectionTo<Counterpart> {
        connection
    }
}
