//! What application code holds of a connection.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use greenroom_protocol::{
    Dialect, Error, JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, RemoteStyle, RequestId, Result, method,
};

use crate::builder::Builder;
use crate::close::HandleConnectionClose;
use crate::component::ConnectTo;
use crate::connection::{MethodText, Shared, Step, TaskItem};
use crate::dispatch::Dispatch;
use crate::handlers::{DynamicHandlerGuard, HandleDispatchFrom, Registry, session_of};
use crate::request::{Decode, PreparedRequest, Reply, SentRequest};
use crate::role::{HasPeer, Role};
use crate::run::RunWithConnectionTo;
use crate::runtime::{Node, Snapshot};
use crate::termination::ConnectionTermination;

/// A handle to a connection whose peer plays the role `Counterpart`.
///
/// Cheap to clone. It keeps nothing alive: after the end of the connection every call fails with
/// an error that says why (spec §6.2, 51).
///
/// Ordering: whatever is sent through any handle of a connection leaves in the order of the calls
/// that sent it (spec §6.3, 75). Sending never waits; see [`ready`](Self::ready).
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

    /// A request to the peer, not sent until it is consumed. Dropping it sends nothing.
    ///
    /// Params that cannot be written are an error of the consumer, not of this call.
    pub fn prepare_request<Req: JsonRpcRequest>(&self, request: Req) -> PreparedRequest<Req::Response>
    where
        Counterpart: HasPeer<Counterpart>,
    {
        self.prepare_request_to(self.counterpart.clone(), request)
    }

    /// A request to a logical peer, not sent until it is consumed: as
    /// [`prepare_request`](Self::prepare_request).
    pub fn prepare_request_to<Peer: Role, Req: JsonRpcRequest>(
        &self,
        peer: Peer,
        request: Req,
    ) -> PreparedRequest<Req::Response>
    where
        Counterpart: HasPeer<Peer>,
    {
        let to = self.counterpart.remote_style(peer);
        self.prepare(request, to, false)
    }

    /// `lower`: the answer to an initialize may select a lower version.
    pub(crate) fn prepare<Req: JsonRpcRequest>(
        &self,
        request: Req,
        to: RemoteStyle,
        lower: bool,
    ) -> PreparedRequest<Req::Response> {
        let reply = Reply::new(self.shared.allocate_id(), request.method(), to, lower);
        let params = request.params_text().map(Bytes::from);
        let decode = Decode::Direct(<Req::Response as JsonRpcResponse>::from_text);
        PreparedRequest::new(reply, self.shared.clone(), decode, params)
    }

    /// Sends a request to the peer. When this returns, the request is registered and queued; that
    /// says nothing about the peer.
    ///
    /// A failure to write or queue it is the outcome of the request. Prefer
    /// [`prepare_request`](Self::prepare_request) for an ordered callback: this request may be
    /// answered before the callback is there (spec §6.3, 72).
    pub fn send_request<Req: JsonRpcRequest>(&self, request: Req) -> SentRequest<Req::Response>
    where
        Counterpart: HasPeer<Counterpart>,
    {
        self.prepare_request(request).send()
    }

    /// Sends a request to a logical peer: as [`send_request`](Self::send_request).
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
    /// before. A `session/cancel` also answers the open permission requests of its session, behind
    /// it, as cancelled.
    ///
    /// # Errors
    /// `-32603` when the params cannot be written (JSON-RPC 2.0 §4.2: an object, an array or none),
    /// when the connection is over, or when more than
    /// [`outgoing_cap`](crate::ConnectionOptions::outgoing_cap) waits to be written, which ends the
    /// connection.
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
        let cancelled = (notification.method() == method::SESSION_CANCEL)
            .then(|| std::str::from_utf8(&params).ok().and_then(session_of).map(|id| id.into_owned()))
            .flatten();
        let method = MethodText::Name(notification.method().to_owned().into());
        self.shared.publish_notification(method, params, to, None)?;
        // After the notification: the agent must not take the answers for decisions of the user.
        if let Some(session) = cancelled {
            self.shared.cancel_session(&session);
        }
        Ok(())
    }

    /// Passes a message on to the peer: see [`send_proxied_message_to`](Self::send_proxied_message_to).
    ///
    /// # Errors
    /// As there.
    pub fn send_proxied_message<Req, Notif>(&self, message: Dispatch<Req, Notif>) -> Result<()>
    where
        Counterpart: HasPeer<Counterpart>,
        Req: JsonRpcRequest<Response: Send>,
        Notif: JsonRpcNotification,
    {
        self.send_proxied_message_to(self.counterpart.clone(), message)
    }

    /// Passes a message on to a logical peer.
    ///
    /// A request gets the peer's answer as its own, errors included, and its cancellation, earlier or
    /// later, is passed on with the id of the new request (spec §6.1, 20). A response goes to whoever
    /// waits for it. A `$/cancel_request`, plain or in an envelope, is not sent: its id means nothing to the peer,
    /// and the request that it is about was told already (spec §6.1, 22).
    ///
    /// # Errors
    /// When the message cannot be written, or the connection is over; a request is answered then.
    pub fn send_proxied_message_to<Peer, Req, Notif>(&self, peer: Peer, message: Dispatch<Req, Notif>) -> Result<()>
    where
        Peer: Role,
        Counterpart: HasPeer<Peer>,
        Req: JsonRpcRequest<Response: Send>,
        Notif: JsonRpcNotification,
    {
        match message {
            Dispatch::Request(request, responder) => {
                self.prepare_request_to(peer, request).forward_response_to(responder)
            }
            Dispatch::Notification(notification) if is_cancellation(&notification)? => {
                tracing::debug!(connection = %self.shared.name, "a cancellation is not passed on");
                Ok(())
            }
            Dispatch::Notification(notification) => self.send_notification_to(peer, notification),
            Dispatch::Response(result, router) => router.route_with_result(result),
        }
    }

    /// Asks the peer to cancel the request with this id, unconditionally: it is sent although the
    /// request was never sent, was answered, or was cancelled before. A
    /// [`RequestCancellationHandle`](crate::RequestCancellationHandle) knows better.
    ///
    /// # Errors
    /// `-32602` for an id that is not an integer: those of this side are. `-32603` as
    /// [`send_notification`](Self::send_notification).
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

    /// Runs a task beside the connection. It may wait for responses. If it fails or panics, only
    /// the requests that it had taken over are affected, unless the connection was built with
    /// [`end_on_failure`](Builder::end_on_failure). It survives the death of every actor below the
    /// connection's supervisor.
    ///
    /// Ordering: none. Cancel-safety: the task is aborted at an `.await` when the connection ends.
    ///
    /// # Errors
    /// When the connection is over; then the task is dropped.
    pub fn spawn(&self, task: impl IntoFuture<Output = Result<()>, IntoFuture: Send + 'static>) -> Result<()> {
        let task = Box::pin(task.into_future());
        self.shared.tasks.send(TaskItem::Spawn(task)).map_err(|_| self.shared.closed_error())
    }

    /// Runs another connection as a task of this one and returns the handle to it at once.
    ///
    /// What is sent on the new connection before its transport is open waits for that; if it does
    /// not open, it fails with the reason. The new connection serves until its peer is done, and
    /// ends at the latest with this one. That it fails is reported like the failure of any
    /// [spawned](Self::spawn) task.
    ///
    /// # Errors
    /// When this connection is over.
    pub fn spawn_connection<R: Role>(
        &self,
        builder: Builder<
            R,
            impl HandleDispatchFrom<R::Counterpart> + 'static,
            impl RunWithConnectionTo<R::Counterpart> + 'static,
            impl HandleConnectionClose<R::Counterpart> + 'static,
            impl ConnectionContext,
        >,
        transport: impl ConnectTo<R> + 'static,
    ) -> Result<ConnectionTo<R::Counterpart>> {
        let ready = builder.prepare(true);
        let connection = ready.connection().ok_or_else(|| self.shared.closed_error())?;
        self.spawn(ready.serve(transport.into_link()))?;
        Ok(connection)
    }

    /// As [`spawn_connection`](Self::spawn_connection), with the kind of handle that the builder's
    /// own callbacks get.
    ///
    /// # Errors
    /// As there.
    pub fn spawn_connection_with_context<R: Role, Context: ConnectionContext>(
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
        self.spawn_connection(builder, transport).map(Context::of)
    }

    /// Adds a handler behind those that are there, for as long as its guard lives.
    ///
    /// It takes part from the next message on that is dispatched after this returned; before that
    /// it is offered what was kept for a handler to come (messages that a handler passed on with
    /// [`Handled::No`](crate::Handled::No) and `retry`, and notifications of sessions that an agent
    /// sent before anybody handled them: at most 1024 of them, 16 MiB together). It runs like every
    /// handler, one message at a time, and must not wait for a response of its own connection.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn add_dynamic_handler(
        &self,
        handler: impl HandleDispatchFrom<Counterpart> + 'static,
    ) -> Result<DynamicHandlerGuard<Counterpart>> {
        // The registry was made for the role of this connection's peer, so the cast cannot fail.
        let registry = self.shared.dynamic.clone().into_any().downcast::<Registry<Counterpart>>().ok();
        let guard = registry.and_then(|registry| registry.add(handler)).ok_or_else(|| self.shared.closed_error())?;
        // Wakes the dispatch loop, in case something waits for this very handler.
        let _ = self.shared.steps.send(Step::HandlerAdded);
        Ok(guard)
    }

    /// Waits while more than [`outgoing_high_mark`](crate::ConnectionOptions::outgoing_high_mark) is
    /// unsent, until that has fallen to one half. For tasks that produce a lot. Inside a handler it
    /// returns at once, because handlers must not wait for their own connection. Cancel-safe.
    pub async fn ready(&self) {
        if !crate::runtime::Scope::is_inside(self.shared.id) {
            self.shared.out_credit.room().await;
        }
    }

    /// Waits until the peer has closed its side and the close callbacks are done, or the connection
    /// is over. Cancel-safe.
    ///
    /// Inside a handler or a close callback of this connection it waits for ever, because the end of
    /// the input waits for them (spec §6.2, 45). Nothing detects that.
    pub async fn incoming_closed(&self) {
        // The sender lives in the shared part, so waiting cannot fail.
        let _ = self.shared.incoming_closed.subscribe().wait_for(|closed| *closed).await;
    }

    /// Whether the peer has closed its side and the close callbacks are done, or the connection is
    /// over (spec §6.2, 46).
    #[must_use]
    pub fn is_incoming_closed(&self) -> bool {
        *self.shared.incoming_closed.borrow()
    }

    /// Waits for the end of the connection and says how it ended (spec §6.2, 63). Cancel-safe.
    ///
    /// Inside a handler it does not return for an end that waits for the handler, such as the peer
    /// closing its side. Nothing detects that.
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

    /// The live tree of the connection's actors. It stays after their end, for inspection.
    #[must_use]
    pub fn tree(&self) -> Arc<Node> {
        self.shared.node.clone()
    }

    /// A picture of the connection's actors: status, restarts, mailboxes, open requests. The parts
    /// are looked at one after the other, so that numbers of a busy tree need not fit each other.
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

/// Whether a notification is a cancellation, plain or in an envelope.
fn is_cancellation(notification: &impl JsonRpcNotification) -> Result<bool> {
    if Dialect::of_successor(notification.method()).is_none() {
        return Ok(notification.method() == method::CANCEL_REQUEST);
    }
    let envelope = notification.to_untyped_message()?;
    let inner = envelope.params.get("method").and_then(|inner| inner.as_str());
    Ok(inner == Some(method::CANCEL_REQUEST))
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// Which handle the callbacks of a builder get. Sealed.
pub trait ConnectionContext: sealed::Sealed + Send + Sync + 'static {
    /// The handle.
    type Connection<Counterpart: Role>: Clone + Send + Sync + 'static;

    /// Whether notifications of sessions wait for a handler that is not there yet: a rule of
    /// protocol version 1.
    #[doc(hidden)]
    const PARKS: bool;

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

    const PARKS: bool = true;

    fn of<Counterpart: Role>(connection: ConnectionTo<Counterpart>) -> ConnectionTo<Counterpart> {
        connection
    }
}
