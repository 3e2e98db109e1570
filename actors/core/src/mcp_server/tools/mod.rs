//! Typed tools, for whatever serves them: a registry with schemas, and tools made of closures.

mod function;
mod line;
mod registry;
mod tool;

pub use function::{tool_fn, tool_fn_mut};
pub use registry::{EnabledTools, McpToolRegistry};
pub use tool::{McpTool, McpToolMetadata, McpToolSchema, RegisteredMcpTool};
