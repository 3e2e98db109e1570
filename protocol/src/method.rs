//! Method names that the protocol layer itself gives a meaning.

/// Opens a connection between a client and an agent.
pub const INITIALIZE: &str = "initialize";

/// Asks the receiver to cancel one request of the same hop; never crosses a hop (spec §6.1, 22).
pub const CANCEL_REQUEST: &str = "$/cancel_request";

/// Prefix of optional notifications: unhandled ones are ignored, never refused (spec §6.1, 16).
pub const PROTOCOL_PREFIX: &str = "$/";

/// Opens a session.
pub const SESSION_NEW: &str = "session/new";

/// Opens a session that the agent knows, with its history.
pub const SESSION_LOAD: &str = "session/load";

/// Opens a session that the agent knows, without its history.
pub const SESSION_RESUME: &str = "session/resume";

/// Stops what a session is doing.
pub const SESSION_CANCEL: &str = "session/cancel";

/// Asks the user for a decision.
pub const SESSION_REQUEST_PERMISSION: &str = "session/request_permission";
