//! The handle of a connection that speaks protocol version 2.

use std::fmt;
use std::sync::Arc;

use greenroom_protocol::schema::v2;
use greenroom_protocol::{JsonRpcNotification, JsonRpcRequest, RemoteStyle, RequestId, Result};

use super::outcome::{Initialize, InitializeOutcome};
use crate::builder::Builder;
use crate::close::HandleConnectionClose;
use crate::component::ConnectTo;
use crate::connection_to::{ConnectionContext, ConnectionTo, sealed};
use crate::dispatch::Dispatch;
use crate::handlers::{DynamicHandlerGuard, HandleDispatchFrom};
use crate::request::{PreparedRequest, SentRequest};
use crate::role::acp::Agent;
use crate::role::{HasPeer, Role};
use crate::run::RunWithConnectionTo;
use crate::runtime::{Node, Snapshot};
use crate::termination::ConnectionTermination;

/// A handle to a connection that speaks protocol version 2 with a peer of the role `Counterpart`.
///
/// Everything that [`ConnectionTo`] promises holds here too. Requests and notifications are sent as
/// they are: use the types of `schema::v2`.
pub struct V2ConnectionTo<Counterpart: Role> {
    raw: ConnectionTo<Counterpart>,
}

impl<Counterpart: Role> V2ConnectionTo<Counterpart> {
    pub(crate) fn raw(&self) -> &ConnectionTo<Counterpart> {
        &self.raw
    }

    /// As [`ConnectionTo::counterpart`].
    #[must_use]
    pub fn counterpart(&self) -> Counterpart {
        self.raw.counterpart()
    }

    /// As [`ConnectionTo::prepare_request`].
    pub fn prepare_request<Req: JsonRpcRequest>(&self, request: Req) -> PreparedRequest<Req::Response>
    where
        Counterpart: HasPeer<Counterpart>,
    {
        self.raw.prepare_request(request)
    }

    /// As [`ConnectionTo::prepare_request_to`].
    pub fn prepare_request_to<Peer: Role, Req: JsonRpcRequest>(
        &self,
        peer: Peer,
        request: Req,
    ) -> PreparedRequest<Req::Response>
    where
        Counterpart: HasPeer<Peer>,
    {
        self.raw.prepare_request_to(peer, request)
    }

    /// As [`ConnectionTo::send_request`].
    pub fn send_request<Req: JsonRpcRequest>(&self, request: Req) -> SentRequest<Req::Response>
    where
        Counterpart: HasPeer<Counterpart>,
    {
        self.raw.send_request(request)
    }

    /// As [`ConnectionTo::send_request_to`].
    pub fn send_request_to<Peer: Role, Req: JsonRpcRequest>(
        &self,
        peer: Peer,
        request: Req,
    ) -> SentRequest<Req::Response>
    where
        Counterpart: HasPeer<Peer>,
    {
        self.raw.send_request_to(peer, request)
    }

    /// As [`ConnectionTo::send_notification`].
    ///
    /// # Errors
    /// As there.
    pub fn send_notification<N: JsonRpcNotification>(&self, notification: N) -> Result<()>
    where
        Counterpart: HasPeer<Counterpart>,
    {
        self.raw.send_notification(notification)
    }

    /// As [`ConnectionTo::send_notification_to`].
    ///
    /// # Errors
    /// As there.
    pub fn send_notification_to<Peer: Role, N: JsonRpcNotification>(&self, peer: Peer, notification: N) -> Result<()>
    where
        Counterpart: HasPeer<Peer>,
    {
        self.raw.send_notification_to(peer, notification)
    }

    /// As [`ConnectionTo::send_proxied_message`].
    ///
    /// # Errors
    /// As there.
    pub fn send_proxied_message<Req, Notif>(&self, message: Dispatch<Req, Notif>) -> Result<()>
    where
        Counterpart: HasPeer<Counterpart>,
        Req: JsonRpcRequest<Response: Send>,
        Notif: JsonRpcNotification,
    {
        self.raw.send_proxied_message(message)
    }

    /// As [`ConnectionTo::send_proxied_message_to`].
    ///
    /// # Errors
    /// As there.
    pub fn send_proxied_message_to<Peer, Req, Notif>(&self, peer: Peer, message: Dispatch<Req, Notif>) -> Result<()>
    where
        Peer: Role,
        Counterpart: HasPeer<Peer>,
        Req: JsonRpcRequest<Response: Send>,
        Notif: JsonRpcNotification,
    {
        self.raw.send_proxied_message_to(peer, message)
    }

    /// As [`ConnectionTo::send_cancel_request`].
    ///
    /// # Errors
    /// As there.
    pub fn send_cancel_request(&self, id: impl Into<RequestId>) -> Result<()>
    where
        Counterpart: HasPeer<Counterpart>,
    {
        self.raw.send_cancel_request(id)
    }

    /// As [`ConnectionTo::send_cancel_request_to`].
    ///
    /// # Errors
    /// As there.
    pub fn send_cancel_request_to<Peer: Role>(&self, peer: Peer, id: impl Into<RequestId>) -> Result<()>
    where
        Counterpart: HasPeer<Peer>,
    {
        self.raw.send_cancel_request_to(peer, id)
    }

    /// As [`ConnectionTo::spawn`].
    ///
    /// # Errors
    /// As there.
    pub fn spawn(&self, task: impl IntoFuture<Output = Result<()>, IntoFuture: Send + 'static>) -> Result<()> {
        self.raw.spawn(task)
    }

    /// As [`ConnectionTo::spawn_connection_with_context`].
    ///
    /// # Errors
    /// As there.
    pub fn spawn_connection<R: Role, Context: ConnectionContext>(
        &self,
        builder: Builder<
            R,
            impl HandleDispatchFrom<R::Counterpart> + 'static,
            impl RunWithConnectionTo<R::Counterpart> + 'static,
            impl HandleConnectionClose<R::Counterpart> + 'static,
            Context,
        >,
        transport: impl ConnectTo<R> + 'static,
    ) -> Result<Context::Connection<R::Counterpart>> {
        self.raw.spawn_connection_with_context(builder, transport)
    }

    /// As [`ConnectionTo::add_dynamic_handler`]; the handler gets the protocol-neutral handle. On
    /// a connection of version 2 only messages are kept that a handler passed on with `retry`.
    ///
    /// # Errors
    /// As there.
    pub fn add_dynamic_handler(
        &self,
        handler: impl HandleDispatchFrom<Counterpart> + 'static,
    ) -> Result<DynamicHandlerGuard<Counterpart>> {
        self.raw.add_dynamic_handler(handler)
    }

    /// As [`ConnectionTo::incoming_closed`].
    pub async fn incoming_closed(&self) {
        self.raw.incoming_closed().await;
    }

    /// As [`ConnectionTo::is_incoming_closed`].
    #[must_use]
    pub fn is_incoming_closed(&self) -> bool {
        self.raw.is_incoming_closed()
    }

    /// As [`ConnectionTo::tree`].
    #[must_use]
    pub fn tree(&self) -> Arc<Node> {
        self.raw.tree()
    }

    /// As [`ConnectionTo::snapshot`].
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.raw.snapshot()
    }

    /// As [`ConnectionTo::terminated`].
    pub async fn terminated(&self) -> ConnectionTermination {
        self.raw.terminated().await
    }

    /// As [`ConnectionTo::termination`].
    #[must_use]
    pub fn termination(&self) -> Option<ConnectionTermination> {
        self.raw.termination()
    }
}

impl V2ConnectionTo<Agent> {
    /// Sends an initialize whose answer may select a lower version. That is then no error: the
    /// connection stays uninitialized, and the caller decides (spec §5.5).
    pub fn send_initialize(&self, request: v2::InitializeRequest) -> SentRequest<InitializeOutcome> {
        self.raw.prepare(Initialize(request), RemoteStyle::Counterpart, true).send()
    }
}

impl<Counterpart: Role> Clone for V2ConnectionTo<Counterpart> {
    fn clone(&self) -> Self {
        Self { raw: self.raw.clone() }
    }
}

impl<Counterpart: Role> fmt::Debug for V2ConnectionTo<Counterpart> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("V2ConnectionTo").field(&self.raw).finish()
    }
}

/// Callbacks get a [`V2ConnectionTo`].
#[derive(Clone, Copy, Debug, Default)]
pub struct V2ConnectionContext;

impl sealed::Sealed for V2ConnectionContext {}

impl ConnectionContext for V2ConnectionContext {
    type Connection<Counterpart: Role> = V2ConnectionTo<Counterpart>;

    // What nobody handles is ignored or refused at once, and nothing is kept.
    const PARKS: bool = false;

    fn of<Counterpart: Role>(connection: ConnectionTo<Counterpart>) -> V2ConnectionTo<Counterpart> {
        V2ConnectionTo { raw: connection }
    }
}
