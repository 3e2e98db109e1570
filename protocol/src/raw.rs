//! The documented view of what travels: parsed values, for code that inspects or builds messages.
//!
//! Actors pass [`Frame`](crate::Frame)s; these types are built from a frame on demand, at the
//! public edge ([`Channel`](crate::Channel)), and turned back into one.

use std::fmt;

use agent_client_protocol_schema::MaybeUndefined;
use agent_client_protocol_schema::rpc::{Notification, Request, RequestId, Response};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::error::{Error, ErrorCode, Result};
use crate::frame::Frame;

/// The params of a call: an object or an array (JSON-RPC 2.0 §4.2).
#[derive(Clone, Debug, PartialEq)]
pub enum RawJsonRpcParams {
    /// Params by position.
    Array(Vec<Value>),
    /// Params by name.
    Object(Map<String, Value>),
}

impl RawJsonRpcParams {
    /// Reads params; null counts as "no params".
    ///
    /// # Errors
    /// `-32602` when the value is neither an object, an array nor null.
    pub fn from_value(value: Value) -> Result<Option<Self>> {
        match value {
            Value::Null => Ok(None),
            Value::Array(items) => Ok(Some(Self::Array(items))),
            Value::Object(members) => Ok(Some(Self::Object(members))),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Err(Error::invalid_params().data("params must be an object or an array"))
            }
        }
    }

    /// The params as one value.
    #[must_use]
    pub fn into_value(self) -> Value {
        match self {
            Self::Array(items) => Value::Array(items),
            Self::Object(members) => Value::Object(members),
        }
    }
}

impl Serialize for RawJsonRpcParams {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Array(items) => items.serialize(serializer),
            Self::Object(members) => members.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RawJsonRpcParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::from_value(value)
            .ok()
            .flatten()
            .ok_or_else(|| serde::de::Error::custom("params must be an object or an array"))
    }
}

/// An error object with everything that it may carry: a foreign numeric code, data that is
/// omitted or null, and members that the protocol does not know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RawJsonRpcError {
    /// The numeric code, unchanged.
    pub code: i32,
    /// One short sentence for people.
    pub message: String,
    /// Additional data: omitted, null or a value.
    #[serde(default, skip_serializing_if = "MaybeUndefined::is_undefined")]
    pub data: MaybeUndefined<Value>,
    /// Members beside code, message and data.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl RawJsonRpcError {
    /// An error without data.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: MaybeUndefined::Undefined, extra: Map::new() }
    }

    /// Replaces the data; `Value::Null` is kept as an explicit null.
    #[must_use]
    pub fn data(mut self, data: Value) -> Self {
        self.data = if data.is_null() { MaybeUndefined::Null } else { MaybeUndefined::Value(data) };
        self
    }

    /// The error as application code sees it. Extension members are lost; data that is null is not
    /// the same as no data.
    #[must_use]
    pub fn into_acp_error(self) -> Error {
        let data = match self.data {
            MaybeUndefined::Value(value) => Some(value),
            MaybeUndefined::Null => Some(Value::Null),
            MaybeUndefined::Undefined => None,
        };
        Error::new(self.code, self.message).data(data)
    }
}

impl From<Error> for RawJsonRpcError {
    fn from(error: Error) -> Self {
        let raw = Self::new(error.code.into(), error.message);
        match error.data {
            Some(data) => raw.data(data),
            None => raw,
        }
    }
}

impl fmt::Display for RawJsonRpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for RawJsonRpcError {}

/// A response with a raw result or a raw error.
pub type RawJsonRpcResponse = Response<Value, Box<RawJsonRpcError>>;

/// One JSON-RPC message as parsed values.
#[derive(Clone, Debug)]
pub enum RawJsonRpcMessage {
    /// A call that wants an answer.
    Request(Request<RawJsonRpcParams>),
    /// A call without an answer.
    Notification(Notification<RawJsonRpcParams>),
    /// An answer.
    Response(RawJsonRpcResponse),
}

impl RawJsonRpcMessage {
    /// A notification.
    ///
    /// # Errors
    /// `-32602` when `params` is neither an object, an array nor null.
    pub fn notification(method: String, params: Value) -> Result<Self> {
        let params = RawJsonRpcParams::from_value(params)?;
        Ok(Self::Notification(Notification { method: method.into(), params }))
    }

    /// A request.
    ///
    /// # Errors
    /// `-32602` when `params` is neither an object, an array nor null.
    pub fn request(method: String, params: Value, id: RequestId) -> Result<Self> {
        let params = RawJsonRpcParams::from_value(params)?;
        Ok(Self::Request(Request { id, method: method.into(), params }))
    }

    /// A response.
    #[must_use]
    pub fn response(id: RequestId, response: Result<Value>) -> Self {
        Self::Response(RawJsonRpcResponse::new(id, response.map_err(|error| Box::new(error.into()))))
    }

    /// The id of a response; `None` for calls.
    #[must_use]
    pub fn response_id(&self) -> Option<&RequestId> {
        match self {
            Self::Response(Response::Result { id, .. } | Response::Error { id, .. }) => Some(id),
            Self::Request(_) | Self::Notification(_) => None,
        }
    }
}

/// How the members of a message are written: `jsonrpc` first.
#[derive(Serialize)]
struct Versioned<'a, T> {
    jsonrpc: &'static str,
    #[serde(flatten)]
    message: &'a T,
}

impl Serialize for RawJsonRpcMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Request(message) => Versioned { jsonrpc: "2.0", message }.serialize(serializer),
            Self::Notification(message) => Versioned { jsonrpc: "2.0", message }.serialize(serializer),
            Self::Response(message) => Versioned { jsonrpc: "2.0", message }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RawJsonRpcMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        match TransportFrame::parse_json(&value.to_string()) {
            TransportFrame::Single(message) => Ok(message),
            TransportFrame::Batch(_) => Err(serde::de::Error::custom("a batch is not a single message")),
            TransportFrame::Malformed { error, .. } => Err(serde::de::Error::custom(error)),
        }
    }
}

/// One value that travelled as a whole: a message, a batch, or input that is neither.
#[derive(Clone, Debug)]
pub enum TransportFrame {
    /// One message.
    Single(RawJsonRpcMessage),
    /// A JSON array of messages, never empty.
    Batch(TransportBatch),
    /// Input that is not JSON-RPC, kept so that relays can pass it on.
    Malformed {
        /// The input, byte for byte (invalid UTF-8 replaced).
        raw: String,
        /// What an endpoint would answer.
        error: Error,
    },
}

impl TransportFrame {
    /// Reads one frame, without a line end. Never fails: what is no JSON-RPC becomes
    /// [`TransportFrame::Malformed`], noise included.
    #[must_use]
    pub fn parse_json(text: &str) -> Self {
        Frame::parse(bytes::Bytes::copy_from_slice(text.as_bytes())).to_transport_frame()
    }

    /// Writes the frame as JSON text; malformed input is repeated as it came, with the line ends that
    /// it may contain.
    ///
    /// # Errors
    /// `-32603` when a value cannot be serialised.
    pub fn to_json(&self) -> Result<String> {
        match self {
            Self::Single(message) => serde_json::to_string(message).map_err(Error::into_internal_error),
            Self::Batch(batch) => serde_json::to_string(batch).map_err(Error::into_internal_error),
            Self::Malformed { raw, .. } => Ok(raw.clone()),
        }
    }
}

/// A non-empty JSON-RPC batch (JSON-RPC 2.0 §6).
#[derive(Clone, Debug)]
pub struct TransportBatch {
    entries: Vec<TransportBatchEntry>,
}

impl TransportBatch {
    /// A batch of these entries; `None` when there are none.
    pub fn from_entries(entries: impl IntoIterator<Item = TransportBatchEntry>) -> Option<Self> {
        let entries: Vec<_> = entries.into_iter().collect();
        (!entries.is_empty()).then_some(Self { entries })
    }

    /// A batch of these messages; `None` when there are none.
    pub fn from_messages(messages: impl IntoIterator<Item = RawJsonRpcMessage>) -> Option<Self> {
        Self::from_entries(messages.into_iter().map(TransportBatchEntry::Message))
    }

    /// The entries in wire order.
    pub fn entries(&self) -> impl Iterator<Item = &TransportBatchEntry> {
        self.entries.iter()
    }

    /// The entries in wire order, to be changed in place.
    pub fn entries_mut(&mut self) -> impl Iterator<Item = &mut TransportBatchEntry> {
        self.entries.iter_mut()
    }

    /// The entries in wire order, by value.
    pub fn into_entries(self) -> impl Iterator<Item = TransportBatchEntry> {
        self.entries.into_iter()
    }

    /// Number of entries, at least 1.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Always false: a batch is never empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

impl Serialize for TransportBatch {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.entries.serialize(serializer)
    }
}

/// One entry of a batch.
#[derive(Clone, Debug)]
pub enum TransportBatchEntry {
    /// A valid message.
    Message(RawJsonRpcMessage),
    /// A value that is no message, kept so that relays can pass it on.
    Malformed {
        /// The value as it came.
        raw: Value,
        /// What an endpoint would answer.
        error: Error,
    },
}

impl TransportBatchEntry {
    /// An entry with a valid message.
    #[must_use]
    pub fn message(message: RawJsonRpcMessage) -> Self {
        Self::Message(message)
    }

    /// An entry with a value that is no message.
    #[must_use]
    pub fn malformed(raw: Value, error: Error) -> Self {
        Self::Malformed { raw, error }
    }
}

impl Serialize for TransportBatchEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Message(message) => message.serialize(serializer),
            Self::Malformed { raw, .. } => raw.serialize(serializer),
        }
    }
}

impl From<RawJsonRpcError> for Error {
    fn from(error: RawJsonRpcError) -> Self {
        error.into_acp_error()
    }
}

/// The kinds of errors that a malformed frame can carry.
pub(crate) fn malformed_error(code: ErrorCode, detail: &str) -> Error {
    Error::from(code).data(detail)
}
