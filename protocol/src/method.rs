//! Method names that the protocol layer itself gives a meaning.

/// Opens a connection between a client and an agent.
pub const INITIALIZE: &str = "initialize";

/// Asks the receiver to cancel one request of the same hop; never crosses a hop (spec §6.1, 22).
pub const CANCEL_REQUEST: &str = "$/cancel_request";

/// Prefix of optional notifications: unhandled ones are ignored, never refused (spec §6.1, 16).
pub const PROTOCOL_PREFIX: &str = "$/";
