//! Matching a message by type and logical peer.

use greenroom_protocol::{JsonRpcNotification, JsonRpcRequest, Result};

use super::dispatch::MatchDispatch;
use crate::connection_to::ConnectionTo;
use crate::dispatch::{Dispatch, Handled, IntoHandled};
use crate::handlers::HandleDispatchFrom;
use crate::responder::{Responder, ResponseRouter};
use crate::role::{HasPeer, Role};

/// As [`MatchDispatch`], for connections with more than one logical peer: a proxy talks to its
/// client and to its agent over one connection. Handlers see what came from the agent without the
/// conductor's envelope; what they pass on is put back into it.
#[derive(Debug)]
#[must_use = "end the chain with `done` or `otherwise`"]
pub struct MatchDispatchFrom<Counterpart: Role> {
    chain: MatchDispatch,
    connection: ConnectionTo<Counterpart>,
}

impl<Counterpart: Role> MatchDispatchFrom<Counterpart> {
    /// Begins with a message of this connection that nobody took yet.
    pub fn new(message: Dispatch, connection: &ConnectionTo<Counterpart>) -> Self {
        Self { chain: MatchDispatch::new(message), connection: connection.clone() }
    }

    /// Takes a request of a type.
    pub async fn if_request<Req: JsonRpcRequest, H>(
        self,
        op: impl AsyncFnOnce(Req, Responder<Req::Response>) -> Result<H>,
    ) -> Self
    where
        Counterpart: HasPeer<Counterpart>,
        H: IntoHandled<(Req, Responder<Req::Response>)>,
    {
        let peer = self.connection.counterpart();
        self.if_request_from(peer, op).await
    }

    /// Takes a request of a type from a logical peer.
    pub async fn if_request_from<Peer: Role, Req: JsonRpcRequest, H>(
        self,
        peer: Peer,
        op: impl AsyncFnOnce(Req, Responder<Req::Response>) -> Result<H>,
    ) -> Self
    where
        Counterpart: HasPeer<Peer>,
        H: IntoHandled<(Req, Responder<Req::Response>)>,
    {
        let style = self.connection.style_of(peer);
        Self { chain: self.chain.request_from(style, op).await, connection: self.connection }
    }

    /// Takes a notification of a type.
    pub async fn if_notification<N: JsonRpcNotification, H>(self, op: impl AsyncFnOnce(N) -> Result<H>) -> Self
    where
        Counterpart: HasPeer<Counterpart>,
        H: IntoHandled<N>,
    {
        let peer = self.connection.counterpart();
        self.if_notification_from(peer, op).await
    }

    /// Takes a notification of a type from a logical peer.
    pub async fn if_notification_from<Peer: Role, N: JsonRpcNotification, H>(
        self,
        peer: Peer,
        op: impl AsyncFnOnce(N) -> Result<H>,
    ) -> Self
    where
        Counterpart: HasPeer<Peer>,
        H: IntoHandled<N>,
    {
        let style = self.connection.style_of(peer);
        Self { chain: self.chain.notification_from(style, op).await, connection: self.connection }
    }

    /// Takes a request of a type, the response to one, or a notification of a type, from a logical
    /// peer.
    pub async fn if_dispatch_from<Peer: Role, Req: JsonRpcRequest, N: JsonRpcNotification, H>(
        self,
        peer: Peer,
        op: impl AsyncFnOnce(Dispatch<Req, N>) -> Result<H>,
    ) -> Self
    where
        Counterpart: HasPeer<Peer>,
        H: IntoHandled<Dispatch<Req, N>>,
    {
        let style = self.connection.style_of(peer);
        Self { chain: self.chain.try_from_peer::<Req, N, H>(style, |_| true, op).await, connection: self.connection }
    }

    /// Takes the response to a request of a type, good or bad, whoever answered.
    pub async fn if_response_to<Req: JsonRpcRequest, H>(
        self,
        op: impl AsyncFnOnce(Result<Req::Response>, ResponseRouter<Req::Response>) -> Result<H>,
    ) -> Self
    where
        H: IntoHandled<(Result<Req::Response>, ResponseRouter<Req::Response>)>,
    {
        Self { chain: self.chain.if_response_to::<Req, H>(op).await, connection: self.connection }
    }

    /// Takes the response of a logical peer to a request of a type, good or bad.
    pub async fn if_response_to_from<Req: JsonRpcRequest, Peer: Role, H>(
        self,
        peer: Peer,
        op: impl AsyncFnOnce(Result<Req::Response>, ResponseRouter<Req::Response>) -> Result<H>,
    ) -> Self
    where
        Counterpart: HasPeer<Peer>,
        H: IntoHandled<(Result<Req::Response>, ResponseRouter<Req::Response>)>,
    {
        let style = self.connection.style_of(peer);
        Self { chain: self.chain.response_from::<Req, H>(style, op).await, connection: self.connection }
    }

    /// Takes the good response to a request of a type, whoever answered; a bad one passes on. In a
    /// proxy use [`if_ok_response_to_from`](Self::if_ok_response_to_from).
    pub async fn if_ok_response_to<Req: JsonRpcRequest, H>(
        self,
        op: impl AsyncFnOnce(Req::Response, ResponseRouter<Req::Response>) -> Result<H>,
    ) -> Self
    where
        Counterpart: HasPeer<Counterpart>,
        H: IntoHandled<(Req::Response, ResponseRouter<Req::Response>)>,
    {
        Self { chain: self.chain.if_ok_response_to::<Req, H>(op).await, connection: self.connection }
    }

    /// Takes the good response of a logical peer to a request of a type.
    pub async fn if_ok_response_to_from<Req: JsonRpcRequest, Peer: Role, H>(
        self,
        peer: Peer,
        op: impl AsyncFnOnce(Req::Response, ResponseRouter<Req::Response>) -> Result<H>,
    ) -> Self
    where
        Counterpart: HasPeer<Peer>,
        H: IntoHandled<(Req::Response, ResponseRouter<Req::Response>)>,
    {
        let style = self.connection.style_of(peer);
        Self { chain: self.chain.ok_response_from::<Req, H>(style, op).await, connection: self.connection }
    }

    /// What became of the message.
    ///
    /// # Errors
    /// The error of the handler that took it.
    pub fn done(self) -> Result<Handled<Dispatch>> {
        self.chain.done()
    }

    /// Takes whatever is left, as it came: a message from the agent of a proxy in its envelope.
    ///
    /// # Errors
    /// The error of the handler that took it, or of `op`.
    pub async fn otherwise(self, op: impl AsyncFnOnce(Dispatch) -> Result<()>) -> Result<()> {
        self.chain.otherwise(op).await
    }

    /// Lets another handler look at whatever is left, as it came.
    ///
    /// # Errors
    /// The error of the handler that took it, or of `handler`.
    pub async fn otherwise_delegate(
        self,
        mut handler: impl HandleDispatchFrom<Counterpart>,
    ) -> Result<Handled<Dispatch>> {
        match self.chain.done()? {
            Handled::Yes => Ok(Handled::Yes),
            Handled::No { message, retry } => {
                Ok(match handler.handle_dispatch_from(message, self.connection).await? {
                    Handled::Yes => Handled::Yes,
                    Handled::No { message, retry: again } => Handled::No { message, retry: retry | again },
                })
            }
        }
    }
}
