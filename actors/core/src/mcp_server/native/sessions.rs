//! Attaching servers to sessions that are about to be opened.

use greenroom_protocol::Result;
use greenroom_protocol::schema::v1;

use super::super::server::McpServer;
use crate::role::HasPeer;
use crate::role::acp::Agent;
use crate::run::{ChainRun, RunWithConnectionTo};
use crate::session::{SessionBlockState, SessionBuilder};

impl<Counterpart, R, BlockState> SessionBuilder<Counterpart, R, BlockState>
where
    Counterpart: HasPeer<Agent>,
    R: RunWithConnectionTo<Counterpart>,
    BlockState: SessionBlockState,
{
    /// Attaches an MCP server to the session: it is declared in the request, and the agent can call
    /// it from then on.
    ///
    /// The server can be reached, and what runs beside it has begun, before the request is sent. It
    /// stays for the rest of the connection once the request succeeded (with
    /// [`run_until`](SessionBuilder::run_until), for as long as that runs); otherwise it is removed:
    /// its operations are stopped and joined. If what runs beside it fails, the servers of this session
    /// are removed, and nothing else happens.
    ///
    /// # Errors
    /// Never at present: protocol version 1 lets two servers have the same name.
    pub fn with_mcp_server<McpRun>(
        self,
        server: McpServer<Counterpart, McpRun>,
    ) -> Result<SessionBuilder<Counterpart, ChainRun<R, McpRun>, BlockState>>
    where
        McpRun: RunWithConnectionTo<Counterpart>,
    {
        Ok(self.attaching(|servers, request, run| {
            let (declaration, beside) = servers.plan(server);
            request.mcp_servers.push(v1::McpServer::Acp(declaration));
            ChainRun::new(run, beside)
        }))
    }
}
