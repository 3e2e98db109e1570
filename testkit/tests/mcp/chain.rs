//! A provider in a chain: the agent calls a server that a proxy to its left has.

use greenroom::mcp_server::{McpOutcome, McpServer};
use greenroom::{Conductor, DynConnectTo, NullRun, Proxy};
use greenroom_conductor::{ConductorImpl, ProxiesAndAgent, ProxyDialect};
use greenroom_testkit::pass_through;
use greenroom_testkit::scripted::pair;
use serde_json::{Value, json};

use super::support::*;

fn provider(name: &'static str, v2: bool) -> DynConnectTo<Conductor> {
    let server = McpServer::new_service(
        name,
        Asks(
            move |request: greenroom::mcp_server::McpRequest,
                  context: greenroom::mcp_server::McpRequestContext<Conductor>| {
                let answer: Answer = Box::pin(async move {
                    if request.method == "waits" {
                        context.send_notification("notifications/began", None).await?;
                        context.operation_cancellation().cancelled().await;
                    }
                    Ok(McpOutcome::Result(json!({ "by": name, "id": context.request_id().0.to_string() })))
                });
                answer
            },
        ),
        NullRun,
    );
    if v2 {
        DynConnectTo::new(Proxy.v2().with_mcp_server(server))
    } else {
        DynConnectTo::new(Proxy.builder().with_mcp_server(server))
    }
}

#[tokio::test]
async fn every_provider_of_a_chain_is_found_by_its_id() {
    for dialect in [ProxyDialect::Legacy, ProxyDialect::Modern] {
        for version in [1, 2] {
            let (mut client, upstream) = pair(1 << 16);
            let (mut agent, downstream) = pair(1 << 16);
            let v2 = version == 2;
            let proxies = vec![
                provider("left", v2),
                DynConnectTo::new(pass_through()),
                provider("right", v2),
                DynConnectTo::new(pass_through()),
            ];
            let components = ProxiesAndAgent::new(downstream).proxies(proxies);
            let chain = ConductorImpl::new_agent("chain", components).dialects(vec![dialect; 4]).start(upstream).await;
            let _chain = chain.expect("a chain");
            let mut hello = json!({ "protocolVersion": version });
            let mut hi = hello.clone();
            if v2 {
                hello["info"] = json!({ "name": "peer", "version": "1" });
                hi = json!({ "protocolVersion": 2, "info": hello["info"], "capabilities": {}, "authMethods": [] });
            }
            client.send(&request(0, "initialize", hello)).await;
            let asked = next(&mut agent).await;
            agent.send(&result(asked["id"].clone(), hi)).await;
            next(&mut client).await;
            client.send(&request(1, "session/new", json!({ "cwd": "/", "mcpServers": [] }))).await;
            let setup = next(&mut agent).await;
            let servers = setup["params"]["mcpServers"].as_array().expect("a list").clone();
            assert_eq!(servers.iter().map(|server| server["name"].clone()).collect::<Vec<_>>(), ["left", "right"]);
            agent.send(&result(setup["id"].clone(), json!({ "sessionId": "s" }))).await;
            client.expect(result(1, json!({ "sessionId": "s" }))).await;
            let id = |at: usize| servers[at]["serverId"].as_str().expect("an id").to_owned();
            // Both may use the same logical id at the same time.
            for (at, name) in ["left", "right"].into_iter().enumerate() {
                agent.send(&call(name, &id(at), "op", "tools/list", json!({}))).await;
                agent.expect(result(name, json!({ "result": { "by": name, "id": "op" } }))).await;
            }
            // Notifications come through, and a cancellation finds its way by the ids of each hop.
            agent.send(&call("w", &id(0), "long", "waits", json!({}))).await;
            agent
                .expect(note(
                    "mcp/message",
                    json!({ "serverId": id(0), "requestId": "long", "method": "notifications/began" }),
                ))
                .await;
            agent.send(&note("$/cancel_request", json!({ "requestId": "w" }))).await;
            assert_eq!(refused(&mut agent, "w").await, -32800, "{dialect:?} {version}");
            // A server that nobody has is for the client to refuse.
            let unknown = call("u", "nobody", "op", "tools/list", json!({}));
            agent.send(&unknown).await;
            let asked = next(&mut client).await;
            assert_eq!((&asked["method"], &asked["params"]), (&json!("mcp/message"), &unknown["params"]));
            let error = json!({ "code": -33001, "message": "m", "data": Value::Null });
            client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })).await;
            agent.expect(json!({ "jsonrpc": "2.0", "id": "u", "error": error })).await;
        }
    }
}
