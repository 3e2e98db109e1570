//! The events of a recording.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The protocol of a logical message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Protocol {
    /// The Agent Client Protocol.
    Acp,
    /// The Model Context Protocol, inside `mcp/message`.
    Mcp,
}

/// One line of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum TraceEvent {
    /// A request.
    Request(RequestEvent),
    /// The response to a request.
    Response(ResponseEvent),
    /// A notification.
    Notification(NotificationEvent),
    /// Events that are missing here.
    Lost(LostEvent),
    /// Something that was no message: its length only.
    Noise(NoiseEvent),
}

/// A request that was passed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RequestEvent {
    /// Seconds since the recording began, monotonic.
    pub ts: f64,
    /// Of the method.
    pub protocol: Protocol,
    /// Who asked: `Client`, `Proxy(0)`, `Agent`.
    pub from: String,
    /// Who was asked; `Conductor` for a request that it refused itself.
    pub to: String,
    /// The JSON-RPC id under which `from` asked: a string, an integer or null.
    pub id: Value,
    /// The method, without any envelope.
    pub method: String,
    /// The session, where the params name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The params, null when there are none.
    pub params: Value,
}

/// A response that was passed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResponseEvent {
    /// Seconds since the recording began, monotonic.
    pub ts: f64,
    /// Who answered.
    pub from: String,
    /// Who had asked.
    pub to: String,
    /// The id of the request.
    pub id: Value,
    /// Whether `payload` is an error object.
    pub is_error: bool,
    /// For an error of an MCP request: whether MCP says so, or the ACP message around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_domain: Option<Protocol>,
    /// The result or the error.
    pub payload: Value,
}

/// A notification that was passed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NotificationEvent {
    /// Seconds since the recording began, monotonic.
    pub ts: f64,
    /// Of the method.
    pub protocol: Protocol,
    /// Who said it.
    pub from: String,
    /// To whom.
    pub to: String,
    /// The method, without any envelope.
    pub method: String,
    /// The session, where the params name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The params, null when there are none.
    pub params: Value,
}

/// Events that could not be recorded, because the recording was slower than the chain, or could not
/// be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LostEvent {
    /// How many.
    pub events: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
}

/// A line that does not start like JSON, or a response that is malformed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NoiseEvent {
    /// Seconds since the recording began, monotonic.
    pub ts: f64,
    /// Who said it.
    pub from: String,
    /// How long it was.
    pub bytes: u64,
}

impl TraceEvent {
    /// Reads one line of a recording.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_line(line: &str) -> serde_json::Result<Self> {
        serde_json::from_str(line)
    }
}
