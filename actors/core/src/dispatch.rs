//! A message on its way through the handlers.

use std::fmt::Debug;

use greenroom_protocol::{Error, JsonRpcNotification, JsonRpcRequest, RequestId, Result, UntypedMessage};

use crate::responder::{Responder, ResponseRouter};

/// A request, a notification, or the answer to one of our requests.
#[derive(Debug)]
pub enum Dispatch<Req: JsonRpcRequest = UntypedMessage, Notif: JsonRpcNotification = UntypedMessage> {
    /// A request, with the right to answer it.
    Request(Req, Responder<Req::Response>),
    /// A notification.
    Notification(Notif),
    /// The answer to a request of ours, with the right to settle it.
    Response(Result<Req::Response>, ResponseRouter<Req::Response>),
}

impl<Req: JsonRpcRequest, Notif: JsonRpcNotification> Dispatch<Req, Notif> {
    /// The id on this connection: the peer's for a request, ours for a response. `None` for
    /// notifications.
    #[must_use]
    pub fn id(&self) -> Option<&RequestId> {
        match self {
            Self::Request(_, responder) => Some(responder.id()),
            Self::Notification(_) => None,
            Self::Response(_, router) => Some(router.id()),
        }
    }

    /// The method; for a response, the method of the request.
    #[must_use]
    pub fn method(&self) -> &str {
        match self {
            Self::Request(request, _) => request.method(),
            Self::Notification(notification) => notification.method(),
            Self::Response(_, router) => router.method(),
        }
    }

    /// Method and params of a call.
    ///
    /// # Errors
    /// `-32603` when the params cannot be written, or for a response, which has none.
    pub fn to_untyped_message(&self) -> Result<UntypedMessage> {
        match self {
            Self::Request(request, _) => request.to_untyped_message(),
            Self::Notification(notification) => notification.to_untyped_message(),
            Self::Response(..) => Err(Error::internal_error().data("a response has no params")),
        }
    }

    /// The same message with its content as JSON values.
    ///
    /// # Errors
    /// When the content cannot be written. The message is lost then: its responder or router is
    /// dropped, which answers the peer or fails the local caller.
    pub fn into_untyped_dispatch(self) -> Result<Dispatch> {
        Ok(match self {
            Self::Request(request, responder) => {
                Dispatch::Request(request.to_untyped_message()?, responder.erase_to_json())
            }
            Self::Notification(notification) => Dispatch::Notification(notification.to_untyped_message()?),
            Self::Response(result, router) => {
                let method = router.method().to_owned();
                let result = match result {
                    Ok(response) => Ok(greenroom_protocol::JsonRpcResponse::into_json(response, &method)?),
                    Err(error) => Err(error),
                };
                Dispatch::Response(result, router.erase_to_json())
            }
        })
    }

    /// Changes request and notification. A response keeps its type, which is why both request types
    /// must have the same response.
    pub fn map<Req1, Notif1>(
        self,
        map_request: impl FnOnce(Req, Responder<Req::Response>) -> (Req1, Responder<Req1::Response>),
        map_notification: impl FnOnce(Notif) -> Notif1,
    ) -> Dispatch<Req1, Notif1>
    where
        Req1: JsonRpcRequest<Response = Req::Response>,
        Notif1: JsonRpcNotification,
    {
        match self {
            Self::Request(request, responder) => {
                let (request, responder) = map_request(request, responder);
                Dispatch::Request(request, responder)
            }
            Self::Notification(notification) => Dispatch::Notification(map_notification(notification)),
            Self::Response(result, router) => Dispatch::Response(result, router),
        }
    }
}

impl<M: JsonRpcRequest + JsonRpcNotification> Dispatch<M, M> {
    /// The message of a call; `None` for a response.
    #[must_use]
    pub fn message(&self) -> Option<&M> {
        match self {
            Self::Request(message, _) | Self::Notification(message) => Some(message),
            Self::Response(..) => None,
        }
    }
}

impl Dispatch {
    /// Whether the params of a call have this member, null included. False for a response.
    #[must_use]
    pub fn has_field(&self, name: &str) -> bool {
        self.message().is_some_and(|message| message.params.get(name).is_some())
    }

    /// Reads the message as a notification of a type, or gives it back (the inner `Err`).
    ///
    /// # Errors
    /// `-32602` when the method fits and the params do not.
    pub fn into_notification<N: JsonRpcNotification>(self) -> Result<Result<N, Self>> {
        match self {
            Self::Notification(message) if N::matches_method(&message.method) => {
                match N::parse_message(&message.method, &message.params) {
                    Err(_) if N::is_foreign(&message.method, &message.params.to_string()) => {
                        Ok(Err(Self::Notification(message)))
                    }
                    read => read.map(Ok),
                }
            }
            other => Ok(Err(other)),
        }
    }

    /// Reads the message as a request of a type, or gives it back (the inner `Err`).
    ///
    /// # Errors
    /// `-32602` when the method fits and the params do not; the peer gets that error as its answer.
    /// `-32603` when it cannot be answered, because the connection is over.
    #[expect(clippy::type_complexity, reason = "the documented signature")]
    pub fn into_request<Req: JsonRpcRequest>(self) -> Result<Result<(Req, Responder<Req::Response>), Self>> {
        match self {
            Self::Request(message, responder) if Req::matches_method(&message.method) => {
                match Req::parse_message(&message.method, &message.params) {
                    Ok(request) => Ok(Ok((request, responder.cast()))),
                    Err(error) => {
                        responder.respond_with_error(error.clone())?;
                        Err(error)
                    }
                }
            }
            other => Ok(Err(other)),
        }
    }
}

/// Whether a handler took a message.
#[must_use]
#[derive(Debug)]
pub enum Handled<T> {
    /// It did.
    Yes,
    /// It did not: the next handler gets the message; after the last one the protocol decides.
    No {
        /// The message, possibly changed.
        message: T,
        /// Whether the message is kept, if nobody takes it, for a handler that is added later
        /// ([`ConnectionTo::add_dynamic_handler`](crate::ConnectionTo::add_dynamic_handler)). One
        /// handler that says so is enough. Responses are never kept.
        retry: bool,
    },
}

/// What a handler may return to say whether it took its message: `()` for "yes", or [`Handled`].
pub trait IntoHandled<T> {
    /// As [`Handled`].
    fn into_handled(self) -> Handled<T>;
}

impl<T> IntoHandled<T> for () {
    fn into_handled(self) -> Handled<T> {
        Handled::Yes
    }
}

impl<T> IntoHandled<T> for Handled<T> {
    fn into_handled(self) -> Handled<T> {
        self
    }
}
