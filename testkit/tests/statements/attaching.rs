//! Statement 83: servers that are attached to a session of protocol version 2.

use greenroom::mcp_server::{McpOutcome, McpRequest, McpRequestContext, McpServer, McpService};
use greenroom::schema::{ProtocolVersion, v2};
use greenroom::{
    Agent, BoxFuture, Client, ConnectionTo, Error, Result, RunWithConnectionTo, UntypedMessage, V2ConnectionTo,
};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};

use super::support::*;

struct Says(Log);

impl McpService<Agent> for Says {
    fn execute(&self, _: McpRequest, _: McpRequestContext<Agent>) -> BoxFuture<'static, Result<McpOutcome>> {
        self.0.say("called");
        Box::pin(std::future::ready(Ok(McpOutcome::Result(Value::Null))))
    }
}

struct Runs(Log);

impl RunWithConnectionTo<Agent> for Runs {
    async fn run_with_connection_to(self, connection: ConnectionTo<Agent>) -> Result<()> {
        self.0.say("polled");
        // Before anything is awaited: it shows on the wire what came first.
        connection.send_notification(UntypedMessage::new("_runs", json!({}))?)?;
        std::future::pending().await
    }
}

fn tools(log: &Log) -> McpServer<Agent, Runs> {
    McpServer::new_service("tools", Says(log.clone()), Runs(log.clone()))
}

/// Starts a session of this kind. When this returns, the request is published.
fn start(kind: &str, cx: &V2ConnectionTo<Agent>, log: &Log) -> Result<()> {
    match kind {
        "session/new" => cx.build_session("/").with_mcp_server(tools(log))?.start_session().detach(),
        "session/resume" => cx.resume_session("s", "/").with_mcp_server(tools(log))?.start_session().detach(),
        _ => cx.fork_session("s", "/").with_mcp_server(tools(log))?.start_session().detach(),
    }
    Ok(())
}

fn message(server: &Value, id: u64) -> Value {
    let metadata = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params =
        json!({ "serverId": server, "requestId": "r", "method": "tools/list", "params": { "_meta": metadata } });
    request_with(id, "mcp/message", params)
}

/// Reads the setup request, calls the server before its answer, and gives both ids.
async fn call_during_setup(agent: &mut Local, kind: &str, reader: &mut LogReader) -> (Value, Value) {
    assert_eq!(soon(agent.receive()).await["method"], "_runs", "the runner comes first");
    let setup = soon(agent.receive()).await;
    assert_eq!(setup["method"], kind);
    let declared = &setup["params"]["mcpServers"][0];
    assert_eq!((&declared["type"], &declared["name"]), (&json!("acp"), &json!("tools")));
    agent.send(&message(&declared["serverId"], 1)).await;
    reader.expect("called").await;
    agent.expect(result(1, json!({ "result": null }))).await;
    (setup["id"].clone(), declared["serverId"].clone())
}

#[tokio::test]
async fn statement_83_servers_are_there_before_the_request_that_declares_them() {
    for kind in ["session/new", "session/resume", "session/fork"] {
        let (mut agent, link) = pair(ROOM);
        let (log, mut reader) = log();
        let run = Client.v2().connect_with(link, async |cx: V2ConnectionTo<Agent>| {
            let implementation = v2::Implementation::new("test", "1");
            let hello = cx.send_request(v2::InitializeRequest::new(ProtocolVersion::V2, implementation));
            let initialized = json!({
                "protocolVersion": 2, "info": { "name": "a", "version": "1" }, "capabilities": {}, "authMethods": [],
            });
            answer(&mut agent, initialized).await;
            hello.block_task().await?;

            start(kind, &cx, &log)?;
            // Nothing was awaited since: the runner was polled in that very call.
            assert_eq!(reader.so_far(), ["polled"], "{kind}");
            let (id, server) = call_during_setup(&mut agent, kind, &mut reader).await;
            agent.send(&result(id, json!({ "sessionId": "t" }))).await;
            // Success keeps the server, whatever becomes of the handle.
            agent.send(&message(&server, 2)).await;
            reader.expect("called").await;
            agent.expect(result(2, json!({ "result": null }))).await;

            // A failure removes it, a cancelled setup included.
            for (id, code) in [(3, -32001), (4, -32800)] {
                start(kind, &cx, &log)?;
                assert_eq!(reader.so_far(), ["polled"], "{kind}");
                let (setup, server) = call_during_setup(&mut agent, kind, &mut reader).await;
                agent.send(&refusal(setup, code)).await;
                agent.send(&message(&server, id)).await;
                let refused = soon(agent.receive()).await;
                assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(id), &json!(-33001)), "{kind}");
            }
            assert!(reader.so_far().is_empty());
            Ok::<_, Error>(())
        });
        soon(run).await.expect("the script");
    }
}
