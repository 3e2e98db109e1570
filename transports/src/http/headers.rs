//! Names, paths and media types that client and server agree on.

#![cfg_attr(not(all(feature = "client", feature = "service")), allow(dead_code, reason = "one side needs a part"))]

use http::HeaderName;

/// The endpoint, unless it is configured.
pub(crate) const DEFAULT_PATH: &str = "/acp";

/// Which connection a request belongs to; set by the server when it is opened.
pub(crate) const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");

/// Which session of the connection a request belongs to.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("acp-session-id");

/// Where a broken stream wants to go on.
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The media type of every JSON-RPC body.
pub(crate) const JSON: &str = "application/json";

/// The media type of a stream of server-sent events.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";
