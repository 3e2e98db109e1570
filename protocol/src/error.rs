//! The error of every fallible call, and the only shape in which an error crosses the wire.
//!
//! One version-neutral type: the names and fields of the v1 schema error, plus three things that
//! never travel: where the error was made ([`Origin`]), so that a peer cannot imitate a local
//! failure; what stands behind it ([`LocalError`], or any other error); and the exact wire text of
//! an error that a relay only passes on.
//!
//! Code, message and data are what a peer sees. What this crate family puts there by itself are
//! fixed reasons: paths, the words of the operating system and the last lines of a process stand
//! in the source. What application code puts there travels as it is.

mod local;

use std::fmt;
use std::sync::Arc;

use agent_client_protocol_schema::{IntoOption, v1};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub use agent_client_protocol_schema::v1::ErrorCode;

pub use local::{LocalError, Origin};

use crate::raw::RawJsonRpcError;

/// The result of a protocol operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// `data.reason` of requests that failed because the peer's side of the transport ended.
pub const INCOMING_TRANSPORT_CLOSED_REASON: &str = "incoming_transport_closed";

/// `data.reason` of requests that failed because the local connection ended.
pub const CONNECTION_TERMINATED_REASON: &str = "connection_terminated";

/// A JSON-RPC error with its code, message and optional data.
///
/// Two errors are equal when a peer could not tell them apart: code, message and data.
///
/// `Debug` and `Display` show the data, which may quote payload: log the code instead. An error that
/// came from the wire and was not changed is written again with its exact text, unknown members
/// included.
#[derive(Clone)]
#[non_exhaustive]
pub struct Error {
    /// The numeric kind. Codes that this crate does not know stay as they are.
    pub code: ErrorCode,
    /// One short sentence for people.
    pub message: String,
    /// Whatever else the sender wants to say.
    pub data: Option<Value>,
    /// What never travels; out of line so that a `Result` stays small.
    local: Option<Arc<Local>>,
}

#[derive(Clone, Default)]
struct Local {
    origin: Origin,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    /// The error object exactly as it came from the wire, so that relays repeat it unchanged.
    wire: Option<Box<RawValue>>,
}

/// An error object as it is read: whatever else it holds stays text.
#[derive(Deserialize)]
struct WireError<'a> {
    code: i32,
    message: String,
    #[serde(default, borrow, deserialize_with = "present")]
    data: Option<&'a RawValue>,
}

/// A member that is there, be it null.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Error {
    /// An error with any code.
    #[must_use]
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), data: None, local: None }
    }

    /// Replaces the data; `None` takes it away. It travels to the peer.
    #[must_use]
    pub fn data(mut self, data: impl IntoOption<Value>) -> Self {
        self.data = data.into_option();
        self
    }

    /// `-32700`: the text is not JSON (JSON-RPC 2.0 §5.1, like the next four).
    #[must_use]
    pub fn parse_error() -> Self {
        ErrorCode::ParseError.into()
    }

    /// `-32600`: JSON, but not a valid request at this point.
    #[must_use]
    pub fn invalid_request() -> Self {
        ErrorCode::InvalidRequest.into()
    }

    /// `-32601`: nobody handles this method.
    #[must_use]
    pub fn method_not_found() -> Self {
        ErrorCode::MethodNotFound.into()
    }

    /// `-32602`: the method exists, its params do not fit.
    #[must_use]
    pub fn invalid_params() -> Self {
        ErrorCode::InvalidParams.into()
    }

    /// `-32603`: the receiver failed.
    #[must_use]
    pub fn internal_error() -> Self {
        ErrorCode::InternalError.into()
    }

    /// `-32800`: ended by a cancellation.
    #[must_use]
    pub fn request_cancelled() -> Self {
        ErrorCode::RequestCancelled.into()
    }

    /// `-32000`: log in first.
    #[must_use]
    pub fn auth_required() -> Self {
        ErrorCode::AuthRequired.into()
    }

    /// `-32002`: a file or other resource is missing; `data.uri` names it when given.
    #[must_use]
    pub fn resource_not_found(uri: Option<String>) -> Self {
        v1::Error::resource_not_found(uri).into()
    }

    /// `-32002` with the session that does not exist in `data.sessionId`.
    #[must_use]
    pub fn session_not_found(session_id: impl Into<v1::SessionId>) -> Self {
        v1::Error::session_not_found(session_id).into()
    }

    /// `-32603` with the text of another error as data, for everybody to read: it travels. To keep
    /// it from the peer, use [`with_source`](Self::with_source).
    #[must_use]
    pub fn into_internal_error(error: impl std::error::Error) -> Self {
        Self::internal_error().data(error.to_string())
    }

    /// Marks where the error was made.
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Self {
        Arc::make_mut(self.local.get_or_insert_default()).origin = origin;
        self
    }

    /// Says what lies behind the error. For this process only: the source never travels.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Arc::make_mut(self.local.get_or_insert_default()).source = Some(Arc::new(source));
        self
    }

    /// The code in words: a fixed text without anything that the error's sender chose, for logs.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        reason_of(self.code)
    }

    /// Where the error was made; always [`Origin::Ordinary`] for errors that came from a peer.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.local.as_ref().map_or(Origin::Ordinary, |local| local.origin)
    }

    /// Reads an error object from the wire, keeping its exact text for relays.
    ///
    /// # Errors
    /// `-32603` when the object has no integer code or no message.
    pub fn from_wire(raw: &RawValue) -> Result<Self> {
        let parsed: WireError<'_> = serde_json::from_str(raw.get())
            .map_err(|_| Self::internal_error().data("the peer's error object has no integer code or no message"))?;
        let data = parsed.data.map(|data| {
            // JSON that no value holds, such as a number beyond the range of a float, becomes text.
            serde_json::from_str(data.get()).unwrap_or_else(|_| Value::String(data.get().to_owned()))
        });
        let mut error = Self::new(parsed.code, parsed.message).data(data);
        error.local = Some(Arc::new(Local { wire: Some(raw.to_owned()), ..Local::default() }));
        Ok(error)
    }

    /// The error object for the wire: the exact text it came with, unless code, message or data
    /// were changed since. The only way of an error to a peer; origin and source stay here.
    #[must_use]
    pub fn to_wire(&self) -> Box<RawValue> {
        if let Some(raw) = self.local.as_ref().and_then(|local| local.wire.as_ref())
            && Self::from_wire(raw).is_ok_and(|unchanged| unchanged == *self)
        {
            return raw.clone();
        }
        serde_json::value::to_raw_value(self).unwrap_or_else(|_| {
            // A `Value` always serialises; this keeps the promise without a panic all the same.
            serde_json::value::to_raw_value(&Self::internal_error()).unwrap_or_default()
        })
    }
}

impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code && self.message == other.message && self.data == other.data
    }
}

impl Eq for Error {}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Error");
        out.field("code", &i32::from(self.code)).field("message", &self.message).field("data", &self.data);
        if self.origin() != Origin::Ordinary {
            out.field("origin", &self.origin());
        }
        if let Some(source) = std::error::Error::source(self) {
            out.field("source", &local::Chain(source));
        }
        out.finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            write!(f, "{}", i32::from(self.code))?
        } else {
            f.write_str(&self.message)?
        }
        match &self.data {
            Some(data) => write!(f, ": {data:#}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.local.as_ref().and_then(|local| local.source.as_deref()).map(|source| source as _)
    }
}

impl From<ErrorCode> for Error {
    fn from(code: ErrorCode) -> Self {
        Self::new(code.into(), code.to_string())
    }
}

impl From<v1::Error> for Error {
    fn from(error: v1::Error) -> Self {
        Self::new(error.code.into(), error.message).data(error.data)
    }
}

impl From<Error> for v1::Error {
    fn from(error: Error) -> Self {
        v1::Error::new(error.code.into(), error.message).data(error.data)
    }
}

#[cfg(feature = "unstable_protocol_v2")]
impl From<agent_client_protocol_schema::v2::Error> for Error {
    fn from(error: agent_client_protocol_schema::v2::Error) -> Self {
        Self::new(error.code.into(), error.message).data(error.data)
    }
}

#[cfg(feature = "unstable_protocol_v2")]
impl From<Error> for agent_client_protocol_schema::v2::Error {
    fn from(error: Error) -> Self {
        agent_client_protocol_schema::v2::Error::new(i32::from(error.code), error.message).data(error.data)
    }
}

impl From<anyhow::Error> for Error {
    /// An error of ours comes out as it went in; anything else is `-32603` with its text as data.
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => error,
            Err(error) => Self::into_internal_error(&*error),
        }
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::invalid_params().data(error.to_string())
    }
}

impl Serialize for Error {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawJsonRpcError::from(self.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Error {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawJsonRpcError::deserialize(deserializer).map(RawJsonRpcError::into_acp_error)
    }
}

/// What an error code means, in words of ours.
fn reason_of(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::ParseError => "parse error",
        ErrorCode::InvalidRequest => "invalid request",
        ErrorCode::MethodNotFound => "method not found",
        ErrorCode::InvalidParams => "invalid params",
        ErrorCode::InternalError => "internal error",
        ErrorCode::RequestCancelled => "request cancelled",
        ErrorCode::AuthRequired => "authentication required",
        ErrorCode::ResourceNotFound => "resource not found",
        ErrorCode::Other(-32022) => "unsupported protocol version",
        #[allow(unreachable_patterns, reason = "features of the schema add codes")]
        _ => "another code",
    }
}

/// Whether a request failed because the peer's side of the transport ended.
///
/// False for an error that a peer sent, whatever data it carries.
#[must_use]
pub fn is_incoming_transport_closed(error: &Error) -> bool {
    error.origin() == Origin::IncomingClosed
}

/// Whether a request failed because the local connection ended.
///
/// False for an error that a peer sent, whatever data it carries.
#[must_use]
pub fn is_connection_terminated(error: &Error) -> bool {
    error.origin() == Origin::Terminated
}
