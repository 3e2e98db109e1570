//! A server, before anybody can reach it.

use std::fmt;
use std::sync::Arc;

use super::connect::McpServerConnect;
#[cfg(feature = "unstable_mcp_over_acp")]
use super::native::{Backend, McpService};
use crate::role::Role;
use crate::run::RunWithConnectionTo;

/// An MCP server of this process, with what runs beside it for as long as it can be reached.
///
/// `Counterpart` is the role at the other end of the connection that hosts it: `Agent` for a server
/// that a client attaches to its sessions, `Conductor` for one of a proxy, `role::mcp::Client` for a
/// standalone one.
#[must_use = "a server does nothing before it is attached or served"]
pub struct McpServer<Counterpart: Role, Run> {
    pub(super) name: String,
    /// Answers operations that come over ACP.
    #[cfg(feature = "unstable_mcp_over_acp")]
    pub(super) service: Arc<dyn McpService<Counterpart>>,
    /// Serves standalone connections, if the server is made for that.
    pub(super) connect: Option<Arc<dyn McpServerConnect<Counterpart>>>,
    pub(super) run: Run,
}

impl<Counterpart: Role, Run> McpServer<Counterpart, Run>
where
    Run: RunWithConnectionTo<Counterpart>,
{
    /// A server whose components are made anew for each connection; over ACP, for each operation.
    ///
    /// `run` runs beside it: the queue of a `tool_fn_mut`, for example, or
    /// [`NullRun`](crate::NullRun).
    pub fn new(connect: impl McpServerConnect<Counterpart>, run: Run) -> Self {
        let connect: Arc<dyn McpServerConnect<Counterpart>> = Arc::new(connect);
        Self {
            name: connect.name(),
            #[cfg(feature = "unstable_mcp_over_acp")]
            service: Arc::new(Backend::new(connect.clone())),
            connect: Some(connect),
            run,
        }
    }

    /// A server for ACP only: it cannot be served by itself.
    #[cfg(feature = "unstable_mcp_over_acp")]
    pub fn new_service(name: impl Into<String>, service: impl McpService<Counterpart>, run: Run) -> Self {
        Self { name: name.into(), service: Arc::new(service), connect: None, run }
    }

    /// A server that `service` answers over ACP, and `connect` where it is served by itself. Its name
    /// is that of `connect`.
    #[cfg(feature = "unstable_mcp_over_acp")]
    pub fn new_service_with_standalone(
        service: impl McpService<Counterpart>,
        connect: impl McpServerConnect<Counterpart>,
        run: Run,
    ) -> Self {
        let connect: Arc<dyn McpServerConnect<Counterpart>> = Arc::new(connect);
        Self { name: connect.name(), service: Arc::new(service), connect: Some(connect), run }
    }
}

impl<Counterpart: Role, Run> fmt::Debug for McpServer<Counterpart, Run> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer").field("name", &self.name).finish_non_exhaustive()
    }
}
