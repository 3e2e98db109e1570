//! MCP over ACP: what `mcp/message` may say, what a provider answers, how a server is declared.

mod declare;
mod message;
mod outcome;

pub use declare::{Names, SETUP_METHODS, declare};
pub use message::{Call, Refusal, declared_server, read};
pub use outcome::{McpOutcome, conclude};

/// The one method of MCP over ACP: a request from the agent, a notification from the provider.
pub const METHOD: &str = "mcp/message";

/// The only version of MCP that travels over ACP.
pub const VERSION: &str = "2026-07-28";

/// Error code: the provider has reached a limit of its own.
pub const RESOURCE_LIMIT: i32 = -33000;

/// Error code: there is no server with this id, or it was removed while it worked.
pub const SERVER_UNAVAILABLE: i32 = -33001;

/// Error code: the server behind the declaration failed.
pub const BACKEND_FAILURE: i32 = -33002;

/// The code of MCP for a version that a server does not speak.
const UNSUPPORTED_VERSION: i32 = -32022;
