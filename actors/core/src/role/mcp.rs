//! The roles of the Model Context Protocol, for MCP servers that travel over ACP.

use super::plain_role;

plain_role!(
    /// Uses tools.
    Client, Server
);
plain_role!(
    /// Offers tools.
    Server, Client
);
