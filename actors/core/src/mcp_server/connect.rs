//! Components that speak MCP, made anew for each connection.

use std::sync::Arc;

use super::context::McpConnectionTo;
use crate::component::DynConnectTo;
use crate::role::{Role, mcp};

/// Makes the components behind a server: one for each standalone connection, and, where the server
/// travels over ACP, one for each operation.
pub trait McpServerConnect<Counterpart: Role>: Send + Sync + 'static {
    /// The name under which the server is declared.
    fn name(&self) -> String;

    /// A component that serves one connection. It is called in a task, not in a handler; what takes
    /// time belongs into the component.
    fn connect(&self, connection: McpConnectionTo<Counterpart>) -> DynConnectTo<mcp::Client>;
}

impl<Counterpart: Role, S: ?Sized + McpServerConnect<Counterpart>> McpServerConnect<Counterpart> for Box<S> {
    fn name(&self) -> String {
        S::name(self)
    }

    fn connect(&self, connection: McpConnectionTo<Counterpart>) -> DynConnectTo<mcp::Client> {
        S::connect(self, connection)
    }
}

impl<Counterpart: Role, S: ?Sized + McpServerConnect<Counterpart>> McpServerConnect<Counterpart> for Arc<S> {
    fn name(&self) -> String {
        S::name(self)
    }

    fn connect(&self, connection: McpConnectionTo<Counterpart>) -> DynConnectTo<mcp::Client> {
        S::connect(self, connection)
    }
}
