//! What ends an HTTP connection, in words that say what to do.
//!
//! Never part of it: a URL, a header, a body, the reason in a WebSocket's close.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use greenroom_protocol::{Error, Origin};
use reqwest::StatusCode;
use tokio::time::Duration;

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Initialize,
    Post,
    OpenConnectionStream,
    OpenSessionStream,
    OpenWebSocket,
}

impl Action {
    fn words(self) -> &'static str {
        match self {
            Self::Initialize => "posting `initialize`",
            Self::Post => "posting a message",
            Self::OpenConnectionStream => "opening the connection's event stream",
            Self::OpenSessionStream => "opening a session's event stream",
            Self::OpenWebSocket => "opening the WebSocket",
        }
    }
}

/// Why the connection is over.
#[derive(Debug)]
pub(super) enum Failure {
    /// Something else was to be sent before `initialize`.
    FirstMessage,
    /// No answer at all.
    Request(Action, Trouble),
    /// No answer in time.
    Deadline(Action, Duration),
    /// An answer that is no success.
    Status(Action, StatusCode),
    /// A successful `initialize` without a connection id.
    NoConnectionId,
    /// The body of the answer to `initialize` is something else.
    NoInitializeResponse,
    /// An event stream of another media type.
    NoEventStream(Action),
    /// An event stream ended.
    StreamEnded,
    /// An event stream broke.
    StreamBroken(Trouble),
    /// An event stream that cannot be read.
    BadEvent,
    /// A message longer than the limit.
    TooLong(usize),
    /// The answer to the handshake is not what it has to be.
    Handshake(&'static str),
    /// The server closed the WebSocket, with this code if it gave one.
    Closed(Option<u16>),
    /// The WebSocket broke.
    Socket(Trouble),
}

impl Failure {
    /// The error of a request that had no answer.
    pub(super) fn request(action: Action, error: &reqwest::Error) -> Self {
        Self::Request(action, Trouble::of(error))
    }

    /// The same as an error of the connection.
    pub(super) fn to_error(&self) -> Error {
        if matches!(self, Self::FirstMessage) {
            return Error::invalid_request().data(self.to_string());
        }
        let mut data = serde_json::json!({ "reason": self.to_string(), "transport": "http" });
        if let Self::Status(_, status) = self {
            data["status"] = status.as_u16().into();
        }
        if let Self::Closed(Some(code)) = self {
            data["closeCode"] = (*code).into();
        }
        let error = Error::internal_error().data(data);
        match self {
            Self::TooLong(_) => error.with_origin(Origin::Overflow),
            _ => error,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FirstMessage => f.write_str("ACP HTTP transport: first message must be `initialize`"),
            Self::Request(action, trouble) => write!(f, "{} failed: {trouble}", action.words()),
            Self::Deadline(action, after) => {
                write!(f, "{} took longer than {after:?}: the server does not answer", action.words())
            }
            Self::Status(action, status) => {
                write!(f, "{} failed: the server answered {}: {}", action.words(), status.as_u16(), advice(*status))
            }
            Self::NoConnectionId => f.write_str(
                "the server accepted `initialize` without an Acp-Connection-Id: the URL is not that of an ACP endpoint",
            ),
            Self::NoInitializeResponse => f.write_str(
                "the server answered `initialize` with something that is no response to it: \
                 the URL is not that of an ACP endpoint",
            ),
            Self::NoEventStream(action) => write!(
                f,
                "{} failed: the answer is no text/event-stream; is there a proxy that changes it?",
                action.words()
            ),
            Self::StreamEnded => {
                f.write_str("the server ended an event stream: the agent or the server stopped; connect again")
            }
            Self::StreamBroken(trouble) => write!(f, "an event stream broke: {trouble}; connect again"),
            Self::BadEvent => f.write_str("an event stream holds something that is no server-sent event"),
            Self::TooLong(limit) => write!(
                f,
                "the server sent a message longer than {limit} bytes; raise HttpClientOptions::max_message to accept it"
            ),
            Self::Handshake(what) => write!(f, "the WebSocket handshake failed: {what}"),
            Self::Closed(code) => {
                f.write_str("the server closed the WebSocket")?;
                if let Some(code) = code {
                    write!(f, " with code {code}")?;
                }
                f.write_str(": the agent or the server stopped; connect again")
            }
            Self::Socket(trouble) => write!(f, "the WebSocket broke: {trouble}; connect again"),
        }
    }
}

/// What a status most likely means.
fn advice(status: StatusCode) -> &'static str {
    match status.as_u16() {
        300..=399 => "a redirect that is not followed, because it leaves the endpoint; use the URL that it points to",
        400 => "it refuses the message",
        401 | 403 | 407 => "check the credentials",
        404 => "it does not know the path or has forgotten the connection; check the URL, or connect again",
        405 => "the URL is not that of an ACP endpoint",
        406 | 415 => "it speaks another media type; the URL may not be that of an ACP endpoint",
        409 => "another client reads this stream",
        410 => "what came while the stream was down is lost; connect again",
        413 => "the message is too long for it",
        429 | 503 => "it is busy; connect again later",
        500..=599 => "the agent or the server failed",
        _ => "the URL may not be that of an ACP endpoint",
    }
}

/// Why bytes did not travel, without any text that a peer or a URL could have put there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    TimedOut,
    Tls(String),
    Io(io::ErrorKind),
    Redirects,
    Connect,
    Protocol,
}

impl Trouble {
    /// Looks for the deepest cause that says something.
    pub(super) fn of(error: &reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::TimedOut;
        }
        if error.is_redirect() {
            return Self::Redirects;
        }
        Self::deep(error).unwrap_or(if error.is_connect() { Self::Connect } else { Self::Protocol })
    }

    fn deep(error: &(dyn StdError + 'static)) -> Option<Self> {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(Self::Tls(tls.to_string()));
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            // A custom error wraps what matters.
            let inner = error.get_ref().and_then(|inner| Self::deep(inner));
            return Some(inner.unwrap_or(Self::Io(error.kind())));
        }
        error.source().and_then(Self::deep)
    }

    pub(super) fn of_io(error: &io::Error) -> Self {
        Self::deep(error).unwrap_or(Self::Io(error.kind()))
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("a configured timeout ran out"),
            Self::Tls(error) => write!(f, "TLS failed ({error}); check certificates and trust roots"),
            Self::Io(io::ErrorKind::ConnectionRefused) => {
                f.write_str("connection refused; is the server running at this address?")
            }
            Self::Io(kind) => write!(f, "{kind}"),
            Self::Redirects => f.write_str("too many redirects"),
            Self::Connect => f.write_str("no connection; check host name, port and proxy"),
            Self::Protocol => f.write_str("the connection ended, or what came is no HTTP"),
        }
    }
}
