//! MCP servers that are attached to sessions, to proxies, or served by themselves.

#![cfg(all(feature = "unstable_mcp_over_acp", feature = "unstable_protocol_v2"))]

mod backends;
mod cancelling;
mod chain;
mod failing;
mod global;
mod provider;
mod sessions;
mod standalone;
mod support;
#[cfg(feature = "schemars")]
mod tools;
