//! A message as the handlers' machinery passes it: exact text, parsed only by who wants it.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use greenroom_protocol::{Error, Frame, RemoteStyle, Result};

use super::interest::Kind;
use crate::connection::{InboundCall, OpenCall, Shared};
use crate::dispatch::Dispatch;
use crate::request::Reply;
use crate::responder::{Responder, ResponseRouter};
use crate::role::RoleId;
use crate::runtime::Permit;

/// Longer messages have memory that nearly is their own: see the transport reader.
const SHORT: usize = 64 * 1024;

/// One message that is offered to handlers.
#[derive(Debug)]
pub(crate) enum Delivery {
    Request(InboundCall, OpenCall),
    Notification(InboundCall),
    Response(ResponseDelivery),
}

/// The answer to a request of ours, before anybody settled it.
pub(crate) struct ResponseDelivery {
    reply: Arc<Reply>,
    outcome: Result<Bytes>,
    connection: Arc<Shared>,
}

impl ResponseDelivery {
    pub(crate) fn method(&self) -> &str {
        self.reply.method()
    }

    pub(crate) fn peer(&self) -> RemoteStyle {
        self.reply.peer()
    }

    pub(crate) fn into_parts(self) -> (Arc<Reply>, Result<Bytes>) {
        (self.reply, self.outcome)
    }

    /// The outcome as JSON text or error, and the right to settle it.
    pub(crate) fn open(self, role: RoleId) -> (Result<Bytes>, ResponseRouter) {
        (self.outcome, ResponseRouter::new(self.reply, self.connection, role))
    }
}

impl std::fmt::Debug for ResponseDelivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseDelivery").field("method", &self.method()).finish_non_exhaustive()
    }
}

impl Delivery {
    pub(crate) fn response(reply: Arc<Reply>, outcome: Result<Bytes>, connection: &Arc<Shared>) -> Self {
        Self::Response(ResponseDelivery { reply, outcome, connection: connection.clone() })
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Request(..) => Kind::Request,
            Self::Notification(_) => Kind::Notification,
            Self::Response(_) => Kind::Response,
        }
    }

    /// The session that a request or notification belongs to.
    pub(crate) fn session_id(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Request(call, _) | Self::Notification(call) => session_of(call.params_text()),
            Self::Response(_) => None,
        }
    }

    /// What it keeps in memory, about.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Request(call, _) | Self::Notification(call) => call.frame.text().len() + 256,
            Self::Response(response) => response.outcome.as_ref().map_or(0, Bytes::len) + 256,
        }
    }

    /// Gives the credit of its frame back: it will stay for a while.
    pub(crate) fn release_credit(&mut self) {
        if let Self::Request(call, _) | Self::Notification(call) = self {
            call.permit = None;
        }
    }

    /// Lets go of the memory that the message shares with its neighbours on the wire, where that may
    /// be much more than its own: for who keeps many of them and counts their lengths.
    pub(crate) fn detach(&mut self) {
        if let Self::Request(call, _) | Self::Notification(call) = self
            && call.frame.text().len() < SHORT
        {
            call.frame.detach();
        }
    }

    /// Takes the credit of its frame, to give it back or to return it with `put_credit`.
    pub(crate) fn take_credit(&mut self) -> Option<Permit> {
        match self {
            Self::Request(call, _) | Self::Notification(call) => call.permit.take(),
            Self::Response(_) => None,
        }
    }

    /// Returns what `take_credit` took.
    pub(crate) fn put_credit(&mut self, permit: Option<Permit>) {
        if let Self::Request(call, _) | Self::Notification(call) = self {
            call.permit = permit;
        }
    }

    pub(crate) fn method(&self) -> &str {
        match self {
            Self::Request(call, _) | Self::Notification(call) => call.method(),
            Self::Response(response) => response.method(),
        }
    }

    pub(crate) fn peer(&self) -> RemoteStyle {
        match self {
            Self::Request(call, _) | Self::Notification(call) => call.peer,
            Self::Response(response) => response.peer(),
        }
    }

    /// The documented view. A message inside an envelope shows the envelope, as it came.
    pub(crate) fn into_dispatch(self, role: RoleId) -> Result<(Dispatch, RemoteStyle)> {
        let peer = self.peer();
        let dispatch = match self {
            Self::Request(call, open) => {
                let message = untyped(&call)?;
                Dispatch::Request(message, Responder::new(open))
            }
            Self::Notification(call) => Dispatch::Notification(untyped(&call)?),
            Self::Response(response) => {
                let (outcome, router) = response.open(role);
                let result = outcome.and_then(|text| {
                    serde_json::from_slice(&text).map_err(|error| Error::parse_error().data(error.to_string()))
                });
                Dispatch::Response(result, router)
            }
        };
        Ok((dispatch, peer))
    }

    /// The documented view of what is inside the envelope, if there is one.
    pub(crate) fn into_inner_dispatch(self, role: RoleId) -> Result<Dispatch> {
        Ok(match self {
            Self::Request(call, open) => Dispatch::Request(inner(&call)?, Responder::new(open)),
            Self::Notification(call) => Dispatch::Notification(inner(&call)?),
            response @ Self::Response(_) => response.into_dispatch(role)?.0,
        })
    }

    /// A request or notification as it came, to be passed on if nobody changes it.
    pub(crate) fn original(&self) -> Option<InboundCall> {
        match self {
            Self::Request(call, _) | Self::Notification(call) => Some(call.unpaid()),
            Self::Response(_) => None,
        }
    }

    /// A message that a handler passed on: as it came, if the handler did not change it.
    pub(crate) fn passed_on(dispatch: Dispatch, original: Option<InboundCall>) -> Result<Self> {
        let unchanged = match (&dispatch, &original) {
            (Dispatch::Request(message, _) | Dispatch::Notification(message), Some(original)) => {
                untyped(original).is_ok_and(|came| came.method == message.method && came.params == message.params)
            }
            _ => false,
        };
        match (dispatch, original) {
            (Dispatch::Request(_, responder), Some(original)) if unchanged => {
                Ok(Self::Request(original, responder.into_call()))
            }
            (Dispatch::Notification(_), Some(original)) if unchanged => Ok(Self::Notification(original)),
            (dispatch, _) => Self::from_dispatch(dispatch),
        }
    }

    /// Back from the documented view, after a handler looked at it.
    pub(crate) fn from_dispatch(dispatch: Dispatch) -> Result<Self> {
        Ok(match dispatch {
            Dispatch::Request(message, responder) => {
                let call = rebuilt(&message.method, &params_of(&message.params)?)?;
                Self::Request(call, responder.into_call())
            }
            Dispatch::Notification(message) => {
                Self::Notification(rebuilt(&message.method, &params_of(&message.params)?)?)
            }
            Dispatch::Response(result, router) => {
                let outcome = match result {
                    Ok(value) => Ok(serde_json::to_vec(&value).map_err(Error::into_internal_error)?.into()),
                    Err(error) => Err(error),
                };
                let (reply, connection) = router.into_parts();
                Self::Response(ResponseDelivery { reply, outcome, connection })
            }
        })
    }
}

/// The session that these params name.
pub(crate) fn session_of(params: &str) -> Option<Cow<'_, str>> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        #[serde(borrow)]
        session_id: Cow<'a, str>,
    }
    serde_json::from_str::<Params<'_>>(params).ok().map(|params| params.session_id)
}

fn value(text: &str) -> Result<serde_json::Value> {
    serde_json::from_str(text).map_err(|error| Error::invalid_params().data(error.to_string()))
}

fn untyped(call: &InboundCall) -> Result<greenroom_protocol::UntypedMessage> {
    // What came in an envelope is shown with it: that is how handlers of a proxy tell the peers
    // apart. The spelling is the documented one, whatever the hop uses.
    if call.peer == RemoteStyle::Successor {
        let params = serde_json::json!({ "method": call.method(), "params": value(call.params_text())? });
        return greenroom_protocol::UntypedMessage::new(greenroom_protocol::Dialect::Legacy.successor(), params);
    }
    inner(call)
}

/// Method and params, without the envelope if there is one.
fn inner(call: &InboundCall) -> Result<greenroom_protocol::UntypedMessage> {
    Ok(greenroom_protocol::UntypedMessage { method: call.method().to_owned(), params: value(call.params_text())? })
}

fn params_of(params: &serde_json::Value) -> Result<Vec<u8>> {
    if params.is_null() { Ok(Vec::new()) } else { serde_json::to_vec(params).map_err(Error::into_internal_error) }
}

/// A call that application code put together: read again, so that an envelope is understood.
pub(crate) fn rebuilt(method: &str, params: &[u8]) -> Result<InboundCall> {
    let frame = Frame::notification(method, params);
    match greenroom_protocol::Successor::open(&frame) {
        None => Ok(InboundCall::plain(frame, RemoteStyle::Predecessor, None)),
        Some(inner) => Ok(InboundCall::wrapped(frame, &inner?, None)),
    }
}
