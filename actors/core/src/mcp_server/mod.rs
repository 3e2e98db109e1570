//! MCP servers that are part of this process, and how they reach an agent.
//!
//! An [`McpServer`] can be served by itself, like any component ([`ConnectTo`](crate::ConnectTo)), or
//! travel inside an ACP connection (feature `unstable_mcp_over_acp`): then it is attached to a session
//! ([`SessionBuilder::with_mcp_server`](crate::SessionBuilder)) or to everything that a proxy passes on
//! ([`Builder::with_mcp_server`](crate::Builder)), the agent learns its id when a session is set up,
//! and calls it with `mcp/message` requests.
//!
//! What the server does is an `McpService`, which is asked once for each operation, or a component
//! that speaks MCP, which is connected once for each operation ([`McpServerConnect`]).

mod connect;
mod context;
#[cfg(feature = "unstable_mcp_over_acp")]
mod native;
#[cfg(not(feature = "unstable_mcp_over_acp"))]
#[path = "without_native.rs"]
mod native;
mod server;
mod standalone;
#[cfg(feature = "schemars")]
mod tools;

pub use connect::McpServerConnect;
pub use context::{McpConnectionContext, McpConnectionTo};
#[cfg(feature = "unstable_mcp_over_acp")]
pub use native::{
    MCP_BACKEND_FAILURE, MCP_SERVER_UNAVAILABLE, McpOperationCancellation, McpOutcome, McpRequest, McpRequestContext,
    McpService,
};
pub use server::McpServer;
#[cfg(feature = "schemars")]
pub use tools::{
    EnabledTools, McpTool, McpToolMetadata, McpToolRegistry, McpToolSchema, RegisteredMcpTool, tool_fn, tool_fn_mut,
};

pub(crate) use native::{Attached, Attachments, ConnectionServers, answer_unclaimed, supervised};
