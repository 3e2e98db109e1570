//! A client that offers a tool to its agent, through the ACP connection itself.
//!
//! `mcp_tool --command "my-agent --flag" "the prompt"`
//!
//! The agent has to understand MCP servers of type `acp`. Each call of the tool is printed, and so is
//! what the agent says.

use std::io::Write;
use std::str::FromStr;

use greenroom::mcp_server::{McpOutcome, McpRequest, McpRequestContext, McpServer, McpService};
use greenroom::schema::{InitializeRequest, McpError, ProtocolVersion};
use greenroom::{AcpAgent, Agent, BoxFuture, Client, ConnectionTo, Error, NullRun, Result};
use serde_json::{Value, json};

/// Says it louder.
struct Shouter;

impl McpService<Agent> for Shouter {
    fn execute(
        &self,
        request: McpRequest,
        _context: McpRequestContext<Agent>,
    ) -> BoxFuture<'static, Result<McpOutcome, Error>> {
        let params = Value::Object(request.params.unwrap_or_default());
        let outcome = match &*request.method {
            "server/discover" => McpOutcome::Result(json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "shouter", "version": "1" },
            })),
            "tools/list" => McpOutcome::Result(json!({
                "resultType": "complete",
                "ttlMs": 0,
                "cacheScope": "private",
                "tools": [{
                    "name": "shout",
                    "description": "Says the message louder.",
                    "inputSchema": {
                        "type": "object",
                        "properties": { "message": { "type": "string" } },
                        "required": ["message"],
                    },
                }],
            })),
            "tools/call" if params["name"] == "shout" => {
                let loud = params["arguments"]["message"].as_str().unwrap_or_default().to_uppercase();
                // A tool still works when nobody reads what this program prints.
                let _ = writeln!(std::io::stdout(), "shout: {loud}");
                let content = json!([{ "type": "text", "text": loud }]);
                McpOutcome::Result(json!({ "resultType": "complete", "content": content }))
            }
            "tools/call" => McpOutcome::Error(McpError::new(-32602, "there is one tool: shout")),
            other => McpOutcome::Error(McpError::new(-32601, format!("this server has no method {other}"))),
        };
        Box::pin(std::future::ready(Ok(outcome)))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some("--command"), Some(command), Some(prompt)) =
        (arguments.next().as_deref(), arguments.next(), arguments.next())
    else {
        return Err(Error::invalid_params().data("usage: mcp_tool --command COMMAND PROMPT"));
    };
    let said = Client
        .connect_with(AcpAgent::from_str(&command)?, async |agent: ConnectionTo<Agent>| {
            let hello = InitializeRequest::new(ProtocolVersion::V1);
            let capabilities = agent.send_request(hello).block_task().await?.agent_capabilities;
            if !capabilities.mcp_capabilities.acp {
                return Err(Error::invalid_request().data("this agent does not use MCP servers of type acp"));
            }
            let server = McpServer::new_service("shouter", Shouter, NullRun);
            let session = agent.build_session_cwd()?.with_mcp_server(server)?;
            let mut session = session.block_task().start_session().await?;
            session.send_prompt(prompt)?;
            session.read_to_string().await
        })
        .await?;
    writeln!(std::io::stdout(), "{said}").map_err(Error::into_internal_error)
}
