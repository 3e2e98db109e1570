//! Fills the gap between what a proxy may use and what an agent can do.
//!
//! A provider can offer MCP servers inside its own connection (`"type": "acp"`). An agent that
//! only knows MCP over HTTP cannot reach them. [`mcp_over_acp`] has the rules by which such a
//! declaration becomes an HTTP server on the loopback interface, and back. They are pure: no
//! runtime, no clock, no I/O, so every one of them is a table test.
//!
//! The bridge that listens there and turns each HTTP request into an `mcp/message` belongs to
//! this crate too and is built on the same rules; it is not part of this version.

pub mod mcp_over_acp;
