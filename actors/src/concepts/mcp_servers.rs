//! MCP servers: offering tools to an agent through its own connection.
//!
#![doc = include_str!("mcp_servers.md")]
