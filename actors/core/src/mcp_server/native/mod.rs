//! MCP over ACP, on the side that offers a server.
//!
//! Every server that is attached to a connection has a registration, and every registration an
//! actor, which decides what is admitted. An admitted operation is a task that outlives that actor:
//! it revokes, signals and joins, whatever becomes of the rest.

mod active;
mod admission;
mod attachments;
mod backend;
mod cancellation;
mod global;
mod operation;
mod registration;
mod route;
mod service;
mod sessions;
#[cfg(feature = "unstable_protocol_v2")]
mod sessions_v2;
mod supervisor;
mod table;

pub use cancellation::McpOperationCancellation;
pub use greenroom_protocol::mcp::McpOutcome;
pub use service::{McpRequest, McpRequestContext, McpService};

pub(crate) use attachments::{Attached, Attachments};
pub(crate) use backend::Backend;
pub(crate) use route::answer_unclaimed;
pub(crate) use supervisor::supervised;
pub(crate) use table::ConnectionServers;

/// Error code of a request for a server that is not there, or was removed while it worked.
pub const MCP_SERVER_UNAVAILABLE: i32 = greenroom_protocol::mcp::SERVER_UNAVAILABLE;

/// Error code of a request whose server failed.
pub const MCP_BACKEND_FAILURE: i32 = greenroom_protocol::mcp::BACKEND_FAILURE;
