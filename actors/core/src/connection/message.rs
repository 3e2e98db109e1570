//! The typed messages that travel between the actors of one connection.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use greenroom_protocol::{BoxFuture, Error, Frame, Outbound, RemoteStyle, Span};

use super::call::OpenCall;
use crate::port::EndOfInput;
use crate::runtime::Permit;

/// A request or notification from the peer, unwrapped from its envelope.
pub(crate) struct InboundCall {
    pub(crate) frame: Frame,
    /// The logical sender.
    pub(crate) peer: RemoteStyle,
    /// The method inside the frame, when an envelope was peeled off.
    inner_method: Option<Span>,
    /// The inner method decoded, when its spelling has an escape.
    decoded: Option<Box<str>>,
    pub(crate) params: Span,
    /// The bytes of the frame count against the reader's credit until this is dropped.
    pub(crate) permit: Option<Permit>,
}

impl InboundCall {
    /// A call that came plain.
    pub(crate) fn plain(frame: Frame, peer: RemoteStyle, permit: Option<Permit>) -> Self {
        let params = frame.envelope().params;
        Self { frame, peer, inner_method: None, decoded: None, params, permit }
    }

    /// A call that came inside a successor envelope.
    pub(crate) fn wrapped(frame: Frame, inner: &greenroom_protocol::Successor, permit: Option<Permit>) -> Self {
        let decoded = match inner.method_in(&frame) {
            Cow::Borrowed(_) => None,
            Cow::Owned(name) => Some(name.into_boxed_str()),
        };
        let (inner_method, params) = (Some(inner.method), inner.params);
        Self { frame, peer: RemoteStyle::Successor, inner_method, decoded, params, permit }
    }

    /// The logical method.
    pub(crate) fn method(&self) -> &str {
        match (&self.decoded, self.inner_method) {
            (Some(name), _) => name,
            (None, Some(span)) => self.frame.part(span.inner()),
            (None, None) => self.frame.method(),
        }
    }

    /// The same call without its credit, to be passed on if nobody changes it. Shares the memory of
    /// the frame.
    pub(crate) fn unpaid(&self) -> Self {
        Self {
            frame: self.frame.clone(),
            peer: self.peer,
            inner_method: self.inner_method,
            decoded: self.decoded.clone(),
            params: self.params,
            permit: None,
        }
    }

    /// The same call with other params.
    pub(crate) fn with_params(self, params: &[u8]) -> Self {
        Self::plain(Frame::notification(self.method(), params), self.peer, self.permit)
    }

    /// The logical method as JSON text, with quotes.
    pub(crate) fn method_json(&self) -> Bytes {
        self.frame.share(self.inner_method.unwrap_or(self.frame.envelope().method))
    }

    /// The JSON text of the params, `null` when there are none.
    pub(crate) fn params_text(&self) -> &str {
        if self.params.is_present() { self.frame.part(self.params) } else { "null" }
    }

    /// The JSON text of the params, sharing the frame's memory; empty when there are none.
    pub(crate) fn params_bytes(&self) -> Bytes {
        if self.params.is_present() { self.frame.share(self.params) } else { Bytes::new() }
    }
}

impl fmt::Debug for InboundCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InboundCall").field("method", &self.method()).field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// One dispatch step, in wire order.
#[derive(Debug)]
pub(crate) enum Step {
    /// A request wants an answer.
    Request(InboundCall, OpenCall),
    /// A notification.
    Notification(InboundCall),
    /// The answer to one of our requests.
    Response(i64, Result<Bytes, Error>, Option<Permit>),
    /// All entries of this batch were dispatched; gives its credit back.
    BatchDispatched(super::batch::BatchHandle, Option<Permit>),
    /// A handler was added: what waits for one is offered again.
    HandlerAdded,
    /// The end of the input.
    Eof(EndOfInput),
}

/// How a method is given to the outgoing protocol.
pub(crate) enum MethodText {
    /// Its name.
    Name(Cow<'static, str>),
    /// JSON text with quotes, from a frame that is passed on.
    Json(Bytes),
}

impl MethodText {
    /// The name, if its spelling has no escape.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Json(text) => std::str::from_utf8(text).unwrap_or_default().trim_matches('"'),
        }
    }
}

/// What the outgoing protocol turns into wire messages, in publication order.
pub(crate) enum Outgoing {
    /// A request (with an id) or a notification (without).
    Call { id: Option<i64>, method: MethodText, params: Bytes, to: RemoteStyle, permit: Option<Permit> },
    /// An answer, complete.
    Reply(Outbound, Option<Permit>),
    /// Nothing comes after this.
    Seal,
}

/// What the writer puts on the wire.
#[derive(Debug)]
pub enum Wire {
    /// One message, with the credit that it holds until it is written.
    Message(Outbound, Option<Permit>),
    /// Flush, then close the outgoing half.
    Seal,
}

/// A future that the application hands to the connection.
pub(crate) type Task = BoxFuture<'static, Result<(), Error>>;
