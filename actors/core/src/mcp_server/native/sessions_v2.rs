//! Attaching servers to sessions of protocol version 2 that are about to be opened.

use greenroom_protocol::schema::v2;
use greenroom_protocol::{Error, Result};

use super::super::server::McpServer;
use super::attachments::Attachments;
use crate::role::HasPeer;
use crate::role::acp::Agent;
use crate::run::{ChainRun, RunWithConnectionTo};
#[cfg(feature = "unstable_session_fork")]
use crate::session::V2ForkSessionBuilder;
use crate::session::{V2ResumeSessionBuilder, V2SessionBuilder};

/// Plans a server and declares it, unless its name is taken: version 2 wants names to be unique.
fn plan<C: HasPeer<Agent>, Run>(
    servers: &mut Attachments<C>,
    declared: &mut Vec<v2::McpServer>,
    server: McpServer<C, Run>,
) -> Result<Run> {
    let taken = |known: &v2::McpServer| {
        serde_json::to_value(known).is_ok_and(|known| known.get("name").is_some_and(|name| *name == *server.name))
    };
    if declared.iter().any(taken) {
        return Err(Error::invalid_params().data("two MCP servers of one session have the same name"));
    }
    let (declaration, beside) = servers.plan(server);
    let declaration = v2::McpServerAcp::new(declaration.name, v2::McpServerAcpId::new(declaration.server_id.0));
    declared.push(v2::McpServer::Acp(declaration));
    Ok(beside)
}

macro_rules! attaching {
    ($builder:ident) => {
        impl<Counterpart, Run> $builder<Counterpart, Run>
        where
            Counterpart: HasPeer<Agent>,
            Run: RunWithConnectionTo<Counterpart>,
        {
            /// Attaches an MCP server to the session: it is declared in the request, and the agent can
            /// call it from then on, also while it works on the request.
            ///
            /// The server can be reached, and what runs beside it has begun, before the request is
            /// sent (spec §6.3, 83). It stays for the rest of the connection once the request
            /// succeeded; otherwise it is removed: its operations are stopped and joined. If what runs
            /// beside it fails, the servers of this session are removed, and nothing else happens.
            ///
            /// # Errors
            /// `-32602` when the session has a server of this name already.
            pub fn with_mcp_server<McpRun>(
                self,
                server: McpServer<Counterpart, McpRun>,
            ) -> Result<$builder<Counterpart, ChainRun<Run, McpRun>>>
            where
                McpRun: RunWithConnectionTo<Counterpart>,
            {
                self.attaching(|servers, request, run| {
                    Ok(ChainRun::new(run, plan(servers, &mut request.mcp_servers, server)?))
                })
            }
        }
    };
}

attaching!(V2SessionBuilder);
attaching!(V2ResumeSessionBuilder);
#[cfg(feature = "unstable_session_fork")]
attaching!(V2ForkSessionBuilder);
