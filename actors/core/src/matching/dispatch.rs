//! Matching a message, whoever sent it.

use greenroom_protocol::{JsonRpcNotification, JsonRpcRequest, RemoteStyle, Result, UntypedMessage};

use super::typed::{Read, passed_on, read, unwrap_from, wrap_again};
use crate::dispatch::{Dispatch, Handled, IntoHandled};
use crate::responder::{Responder, ResponseRouter};

/// Tries one type after the other on a message; the first whose handler takes it wins.
///
/// A request whose method fits and whose params do not is answered `-32602`; such a notification
/// is logged and ignored. Both count as taken. After an error of a handler nothing more is tried;
/// [`done`](Self::done) and the `otherwise…` methods return it.
///
/// Handlers run in the caller's future, so their cancel-safety and their place in the order of
/// messages are the caller's. A handler may pass the message on with [`Handled::No`]; it is written
/// again from its type then.
///
/// Messages are matched as they came: in a proxy, what the agent's side sent is an envelope here.
/// [`MatchDispatchFrom`](super::MatchDispatchFrom) opens it.
#[derive(Debug)]
#[must_use = "end the chain with `done` or `otherwise`"]
pub struct MatchDispatch {
    state: Result<Handled<Dispatch>>,
}

impl MatchDispatch {
    /// Begins with a message that nobody took yet.
    pub fn new(message: Dispatch) -> Self {
        Self { state: Ok(Handled::No { message, retry: false }) }
    }

    /// Tries a type on a message from one peer.
    pub(super) async fn try_from_peer<Req, Notif, H>(
        self,
        peer: RemoteStyle,
        wants: impl FnOnce(&Dispatch) -> bool,
        handler: impl AsyncFnOnce(Dispatch<Req, Notif>) -> Result<H>,
    ) -> Self
    where
        Req: JsonRpcRequest,
        Notif: JsonRpcNotification,
        H: IntoHandled<Dispatch<Req, Notif>>,
    {
        let Ok(Handled::No { message, retry }) = self.state else { return self };
        if !wants(&message) {
            return Self { state: Ok(Handled::No { message, retry }) };
        }
        let (inner, wrapping) = match unwrap_from(message, peer) {
            Ok(opened) => opened,
            Err(message) => return Self { state: Ok(Handled::No { message, retry }) },
        };
        let state = match read::<Req, Notif>(inner) {
            Err(error) => Err(error),
            Ok(Read::Malformed) => Ok(Handled::Yes),
            Ok(Read::Other(inner)) => Ok(Handled::No { message: wrap_again(inner, wrapping), retry }),
            Ok(Read::Typed(typed)) => match handler(typed).await {
                Err(error) => Err(error),
                Ok(handled) => passed_on(handled.into_handled()).map(|handled| match handled {
                    Handled::Yes => Handled::Yes,
                    Handled::No { message, retry: again } => {
                        Handled::No { message: wrap_again(message, wrapping), retry: retry | again }
                    }
                }),
            },
        };
        Self { state }
    }

    pub(super) async fn request_from<Req, H>(
        self,
        peer: RemoteStyle,
        handler: impl AsyncFnOnce(Req, Responder<Req::Response>) -> Result<H>,
    ) -> Self
    where
        Req: JsonRpcRequest,
        H: IntoHandled<(Req, Responder<Req::Response>)>,
    {
        let wants = |message: &Dispatch| matches!(message, Dispatch::Request(..));
        self.try_from_peer::<Req, UntypedMessage, _>(peer, wants, async |dispatch| match dispatch {
            Dispatch::Request(request, responder) => Ok(match handler(request, responder).await?.into_handled() {
                Handled::Yes => Handled::Yes,
                Handled::No { message: (request, responder), retry } => {
                    Handled::No { message: Dispatch::Request(request, responder), retry }
                }
            }),
            message => Ok(Handled::No { message, retry: false }),
        })
        .await
    }

    pub(super) async fn notification_from<N, H>(
        self,
        peer: RemoteStyle,
        handler: impl AsyncFnOnce(N) -> Result<H>,
    ) -> Self
    where
        N: JsonRpcNotification,
        H: IntoHandled<N>,
    {
        let wants = |message: &Dispatch| matches!(message, Dispatch::Notification(_));
        self.try_from_peer::<UntypedMessage, N, _>(peer, wants, async |dispatch| match dispatch {
            Dispatch::Notification(notification) => Ok(match handler(notification).await?.into_handled() {
                Handled::Yes => Handled::Yes,
                Handled::No { message, retry } => Handled::No { message: Dispatch::Notification(message), retry },
            }),
            message => Ok(Handled::No { message, retry: false }),
        })
        .await
    }

    pub(super) async fn response_from<Req, H>(
        self,
        peer: RemoteStyle,
        handler: impl AsyncFnOnce(Result<Req::Response>, ResponseRouter<Req::Response>) -> Result<H>,
    ) -> Self
    where
        Req: JsonRpcRequest,
        H: IntoHandled<(Result<Req::Response>, ResponseRouter<Req::Response>)>,
    {
        let wants = |message: &Dispatch| matches!(message, Dispatch::Response(..));
        self.try_from_peer::<Req, UntypedMessage, _>(peer, wants, async |dispatch| match dispatch {
            Dispatch::Response(result, router) => Ok(match handler(result, router).await?.into_handled() {
                Handled::Yes => Handled::Yes,
                Handled::No { message: (result, router), retry } => {
                    Handled::No { message: Dispatch::Response(result, router), retry }
                }
            }),
            message => Ok(Handled::No { message, retry: false }),
        })
        .await
    }

    pub(super) async fn ok_response_from<Req, H>(
        self,
        peer: RemoteStyle,
        handler: impl AsyncFnOnce(Req::Response, ResponseRouter<Req::Response>) -> Result<H>,
    ) -> Self
    where
        Req: JsonRpcRequest,
        H: IntoHandled<(Req::Response, ResponseRouter<Req::Response>)>,
    {
        self.response_from::<Req, _>(peer, async |result, router| match result {
            Ok(response) => Ok(match handler(response, router).await?.into_handled() {
                Handled::Yes => Handled::Yes,
                Handled::No { message: (response, router), retry } => {
                    Handled::No { message: (Ok(response), router), retry }
                }
            }),
            Err(error) => Ok(Handled::No { message: (Err(error), router), retry: false }),
        })
        .await
    }

    /// Takes a request of a type. Params that do not fit are answered `-32602`, and `op` is not called.
    pub async fn if_request<Req: JsonRpcRequest, H>(
        self,
        op: impl AsyncFnOnce(Req, Responder<Req::Response>) -> Result<H>,
    ) -> Self
    where
        H: IntoHandled<(Req, Responder<Req::Response>)>,
    {
        self.request_from::<Req, H>(RemoteStyle::Counterpart, op).await
    }

    /// Takes a notification of a type. Params that do not fit are logged by method and code, and `op`
    /// is not called.
    pub async fn if_notification<N: JsonRpcNotification, H>(self, op: impl AsyncFnOnce(N) -> Result<H>) -> Self
    where
        H: IntoHandled<N>,
    {
        self.notification_from::<N, H>(RemoteStyle::Counterpart, op).await
    }

    /// Takes a request of a type, the response to one, or a notification of a type.
    pub async fn if_dispatch<R: JsonRpcRequest, N: JsonRpcNotification, H>(
        self,
        op: impl AsyncFnOnce(Dispatch<R, N>) -> Result<H>,
    ) -> Self
    where
        H: IntoHandled<Dispatch<R, N>>,
    {
        self.try_from_peer::<R, N, H>(RemoteStyle::Counterpart, |_| true, op).await
    }

    /// Takes the response to a request of a type, good or bad. A result that does not fit the type
    /// is an error to `op`.
    pub async fn if_response_to<Req: JsonRpcRequest, H>(
        self,
        op: impl AsyncFnOnce(Result<Req::Response>, ResponseRouter<Req::Response>) -> Result<H>,
    ) -> Self
    where
        H: IntoHandled<(Result<Req::Response>, ResponseRouter<Req::Response>)>,
    {
        self.response_from::<Req, H>(RemoteStyle::Counterpart, op).await
    }

    /// Takes the good response to a request of a type; a bad one passes on.
    pub async fn if_ok_response_to<Req: JsonRpcRequest, H>(
        self,
        op: impl AsyncFnOnce(Req::Response, ResponseRouter<Req::Response>) -> Result<H>,
    ) -> Self
    where
        H: IntoHandled<(Req::Response, ResponseRouter<Req::Response>)>,
    {
        self.ok_response_from::<Req, H>(RemoteStyle::Counterpart, op).await
    }

    /// What became of the message: to be returned from a handler.
    ///
    /// # Errors
    /// The error of the handler that took it.
    pub fn done(self) -> Result<Handled<Dispatch>> {
        self.state
    }

    /// Takes whatever is left.
    ///
    /// # Errors
    /// The error of the handler that took it, or of `op`.
    pub async fn otherwise(self, op: impl AsyncFnOnce(Dispatch) -> Result<()>) -> Result<()> {
        match self.state? {
            Handled::Yes => Ok(()),
            Handled::No { message, .. } => op(message).await,
        }
    }

    /// Drops whatever is left: a request is then answered with an error, and a local caller that
    /// waits for a response gets one.
    ///
    /// # Errors
    /// The error of the handler that took it.
    pub fn otherwise_ignore(self) -> Result<()> {
        self.state.map(drop)
    }
}
