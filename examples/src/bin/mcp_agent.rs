//! An agent that uses the MCP servers of its client, through the ACP connection itself: every prompt
//! goes through the tool `shout` of each of them.

use std::collections::HashMap;
use std::sync::Mutex;

use greenroom::schema::{
    AgentCapabilities, ContentBlock, ContentChunk, InitializeRequest, InitializeResponse, McpCapabilities, McpServer,
    McpServerAcp, MessageMcpRequest, MessageMcpResponse, NewSessionRequest, NewSessionResponse, PromptRequest,
    PromptResponse, ProtocolVersion, SessionId, SessionNotification, SessionUpdate, StopReason,
};
use greenroom::{Agent, Client, ConnectionTo, Error, Responder, Result, Stdio, on_receive_request};
use serde_json::json;

/// Calls the tool and returns what it said.
async fn shout(cx: &ConnectionTo<Client>, server: &McpServerAcp, call: usize, message: &str) -> Result<String> {
    let params = json!({
        "name": "shout",
        "arguments": { "message": message },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    });
    let request = MessageMcpRequest::new(server.server_id.clone(), format!("call-{call}"), "tools/call");
    let answer = cx.send_request(request.params(params.as_object().cloned())).block_task().await?;
    match answer {
        MessageMcpResponse::Result { result, .. } => {
            Ok(result["content"][0]["text"].as_str().unwrap_or_default().to_owned())
        }
        _ => Err(Error::internal_error().data("the tool refused")),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let sessions = Mutex::new(HashMap::<SessionId, Vec<McpServerAcp>>::new());
    let mut calls = 0;
    Agent
        .builder()
        .name("mcp-agent")
        .on_receive_request(
            async |_: InitializeRequest, responder: Responder<InitializeResponse>, _cx| {
                let capabilities = AgentCapabilities::new().mcp_capabilities(McpCapabilities::new().acp(true));
                responder.respond(InitializeResponse::new(ProtocolVersion::V1).agent_capabilities(capabilities))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |new: NewSessionRequest, responder: Responder<NewSessionResponse>, _cx| {
                let servers = new.mcp_servers.into_iter().filter_map(|server| match server {
                    McpServer::Acp(server) => Some(server),
                    _ => None,
                });
                let mut sessions = sessions.lock().map_err(Error::into_internal_error)?;
                let id = SessionId::new(format!("session-{}", sessions.len() + 1));
                sessions.insert(id.clone(), servers.collect());
                responder.respond(NewSessionResponse::new(id))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |prompt: PromptRequest, responder: Responder<PromptResponse>, cx: ConnectionTo<Client>| {
                let known = sessions.lock().map_err(Error::into_internal_error)?.get(&prompt.session_id).cloned();
                let servers = known.ok_or_else(|| Error::invalid_params().data("there is no such session"))?;
                let Some(ContentBlock::Text(text)) = prompt.prompt.into_iter().next() else {
                    return Err(Error::invalid_params().data("say something"));
                };
                calls += 1;
                let call = calls;
                // Answers of the client wait behind this handler: a task waits for them.
                cx.clone().spawn(async move {
                    for server in servers {
                        let said = shout(&cx, &server, call, &text.text).await?;
                        let chunk = ContentChunk::new(format!("{} says {said}", server.name).into());
                        let update = SessionUpdate::AgentMessageChunk(chunk);
                        cx.send_notification(SessionNotification::new(prompt.session_id.clone(), update))?;
                    }
                    responder.respond(PromptResponse::new(StopReason::EndTurn))
                })
            },
            on_receive_request!(),
        )
        .connect_to(Stdio::new())
        .await
}
