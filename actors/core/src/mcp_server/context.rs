//! What a server learns about whom it serves.

use std::fmt;

#[cfg(feature = "unstable_mcp_over_acp")]
use greenroom_protocol::schema::{McpRequestId, McpServerAcpId};

use crate::connection_to::ConnectionTo;
use crate::role::Role;

/// How a server was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpConnectionContext {
    /// By a connection of its own, which speaks MCP.
    Standalone,
    /// By an operation inside an ACP connection.
    #[cfg(feature = "unstable_mcp_over_acp")]
    Acp {
        /// The declared server.
        server_id: McpServerAcpId,
        /// The operation.
        request_id: McpRequestId,
    },
}

impl McpConnectionContext {
    /// Whether the server has a connection of its own.
    #[must_use]
    pub fn is_standalone(&self) -> bool {
        matches!(self, Self::Standalone)
    }

    /// The id under which the server was declared to the agent.
    #[cfg(feature = "unstable_mcp_over_acp")]
    #[must_use]
    pub fn server_id(&self) -> Option<&McpServerAcpId> {
        match self {
            Self::Standalone => None,
            Self::Acp { server_id, .. } => Some(server_id),
        }
    }

    /// The logical id of the operation.
    #[cfg(feature = "unstable_mcp_over_acp")]
    #[must_use]
    pub fn request_id(&self) -> Option<&McpRequestId> {
        match self {
            Self::Standalone => None,
            Self::Acp { request_id, .. } => Some(request_id),
        }
    }
}

/// How a server was reached, and the connection that hosts it. Cheap to clone.
///
/// The connection is that of the host: an ACP connection, through which tools can talk to the agent
/// or the client, or the MCP connection of a standalone server. It keeps nothing alive.
pub struct McpConnectionTo<Counterpart: Role> {
    context: McpConnectionContext,
    connection: ConnectionTo<Counterpart>,
}

impl<Counterpart: Role> McpConnectionTo<Counterpart> {
    pub(super) fn new(context: McpConnectionContext, connection: ConnectionTo<Counterpart>) -> Self {
        Self { context, connection }
    }

    /// The connection that hosts the server.
    #[must_use]
    pub fn connection(&self) -> &ConnectionTo<Counterpart> {
        &self.connection
    }

    /// How the server was reached.
    #[must_use]
    pub fn context(&self) -> &McpConnectionContext {
        &self.context
    }

    /// The id under which the server was declared; `None` for a standalone one.
    #[cfg(feature = "unstable_mcp_over_acp")]
    #[must_use]
    pub fn server_id(&self) -> Option<&McpServerAcpId> {
        self.context.server_id()
    }

    /// The logical id of the operation; `None` for a standalone server.
    #[cfg(feature = "unstable_mcp_over_acp")]
    #[must_use]
    pub fn request_id(&self) -> Option<&McpRequestId> {
        self.context.request_id()
    }
}

impl<Counterpart: Role> Clone for McpConnectionTo<Counterpart> {
    fn clone(&self) -> Self {
        Self { context: self.context.clone(), connection: self.connection.clone() }
    }
}

impl<Counterpart: Role> fmt::Debug for McpConnectionTo<Counterpart> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpConnectionTo").field("context", &self.context).finish_non_exhaustive()
    }
}
