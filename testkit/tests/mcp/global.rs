//! A server that a proxy attaches to every session of its client.

use greenroom::mcp_server::{McpServer, McpService};
use greenroom::schema::{v1, v2};
use greenroom::{Client, Conductor, ConnectTo, NullRun, Proxy, V2ConnectionTo, on_receive_request};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};

use super::support::*;

fn tools() -> McpServer<Conductor, NullRun> {
    fn service(answer: impl McpService<Conductor>) -> McpServer<Conductor, NullRun> {
        McpServer::new_service("tools", answer, NullRun)
    }
    service(Asks(shouting))
}

fn wrapped(mut message: Value) -> Value {
    message["params"] = json!({ "method": message["method"], "params": message["params"] });
    message["method"] = json!("_proxy/successor");
    message
}

/// A proxy after its handshake, and its conductor in the hands of a test.
async fn conducted(proxy: impl ConnectTo<Conductor>, version: u16) -> Local {
    let (mut conductor, link) = pair(1 << 16);
    tokio::spawn(proxy.connect_to(link));
    let mut params = json!({ "protocolVersion": version });
    if version == 2 {
        params["info"] = json!({ "name": "peer", "version": "1" });
    }
    conductor.send(&request("hello", "_proxy/initialize", params)).await;
    let asked = next(&mut conductor).await;
    let mut answer = json!({ "protocolVersion": version });
    if version == 2 {
        answer = json!({ "protocolVersion": 2, "info": { "name": "peer", "version": "1" }, "capabilities": {}, "authMethods": [] });
    }
    conductor.send(&result(asked["id"].clone(), answer.clone())).await;
    conductor.expect(result("hello", answer)).await;
    conductor
}

/// Sends a setup request and gives what passes on, as text.
async fn passed(conductor: &mut Local, method: &str, params: &str) -> String {
    conductor.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{params}}}\n")).await;
    soon(conductor.line()).await.expect("a line")
}

#[tokio::test]
async fn the_declaration_is_all_that_changes_in_every_setup_request() {
    for version in [1, 2] {
        let mut conductor = match version {
            1 => conducted(Proxy.builder().with_mcp_server(tools()), 1).await,
            _ => conducted(Proxy.v2().with_mcp_server(tools()), 2).await,
        };
        let mut ids = Vec::new();
        let methods: &[&str] = if version == 1 {
            &["session/new", "session/load", "session/resume", "session/fork"]
        } else {
            &["session/new", "session/resume", "session/fork"]
        };
        for method in methods {
            let before = r#"{ "cwd":"/","sessionId":"s", "x":1.50,"_meta":{"k":[1e3]},"mcpServers":[ {"name":"mine","command":"c","args":[],"env":[],"odd":1.0} ] }"#;
            let line = passed(&mut conductor, method, before).await;
            let id =
                serde_json::from_str::<Value>(&line).expect("JSON")["params"]["params"]["mcpServers"][1]["serverId"]
                    .clone();
            let declaration = format!(r#",{{"type":"acp","name":"tools","serverId":{id}}}]"#);
            let expected = before.replace(" ] }", &format!(" {}{}", declaration.trim_end_matches(']'), "] }"));
            assert!(line.contains(&expected), "{method}: {line}\n{expected}");
            ids.push(id);
        }
        ids.dedup();
        assert_eq!(ids.len(), 1, "one id for the whole connection");
        let line = passed(&mut conductor, "session/new", r#"{"cwd":"/","mcpServers":null}"#).await;
        assert!(line.contains(&format!(
            r#"{{"cwd":"/","mcpServers":[{{"type":"acp","name":"tools","serverId":{}}}]}}"#,
            ids[0]
        )));
        let line = passed(&mut conductor, "session/prompt", r#"{"mcpServers":[],"y":1.0}"#).await;
        assert!(line.contains(r#""params":{"mcpServers":[],"y":1.0}"#), "other requests pass: {line}");
    }
}

#[tokio::test]
async fn the_agent_behind_the_proxy_calls_it() {
    let mut conductor = conducted(Proxy.builder().with_mcp_server(tools()), 1).await;
    conductor.send(&request(1, "session/new", json!({ "cwd": "/", "mcpServers": [] }))).await;
    let setup = next(&mut conductor).await;
    let (id, _) = declared(&json!({ "params": setup["params"]["params"] }));
    let ask = call("op", &id, "a", "tools/call", json!({ "name": "shout", "arguments": { "text": "hi" } }));
    conductor.send(&wrapped(ask.clone())).await;
    conductor.expect(result("op", json!({ "result": { "content": [{ "type": "text", "text": "HI" }] } }))).await;
    // The client is not the agent: what it says about that server passes on.
    conductor.send(&ask).await;
    assert_eq!(next(&mut conductor).await["params"]["method"], "mcp/message");
    // A server that this proxy does not have is for somebody to its left.
    let other = call("other", "elsewhere", "a", "tools/list", json!({}));
    conductor.send(&wrapped(other.clone())).await;
    let passed = next(&mut conductor).await;
    assert_eq!((&passed["method"], &passed["params"]), (&json!("mcp/message"), &other["params"]));
}

#[tokio::test]
async fn malformed_setups_and_taken_names_are_answered_and_not_passed_on() {
    for version in [1, 2] {
        let mut conductor = match version {
            1 => conducted(Proxy.builder().with_mcp_server(tools()), 1).await,
            _ => conducted(Proxy.v2().with_mcp_server(tools()), 2).await,
        };
        for params in [json!([]), json!({}), json!({ "cwd": 7, "mcpServers": [] })] {
            conductor.send(&request("bad", "session/new", params.clone())).await;
            assert_eq!(refused(&mut conductor, "bad").await, -32602, "{params}");
        }
        let taken =
            json!({ "cwd": "/", "mcpServers": [{ "type": "http", "name": "tools", "url": "u", "headers": [] }] });
        conductor.send(&request("taken", "session/new", taken)).await;
        if version == 2 {
            assert_eq!(refused(&mut conductor, "taken").await, -32602);
        } else {
            let passed = next(&mut conductor).await;
            assert_eq!(passed["params"]["params"]["mcpServers"][1]["name"], "tools");
        }
    }
}

#[tokio::test]
async fn handlers_behind_it_see_the_declaration() {
    let proxy = Proxy.v2().with_mcp_server(tools()).on_receive_request_from(
        Client,
        async |request: v2::NewSessionRequest, responder, cx: V2ConnectionTo<Conductor>| {
            assert!(matches!(request.mcp_servers.last(), Some(v2::McpServer::Acp(_))));
            cx.build_session_from(request).on_proxy_session_start(responder, async |_| Ok(()))
        },
        on_receive_request!(),
    );
    let mut conductor = conducted(proxy, 2).await;
    conductor.send(&request(1, "session/new", json!({ "cwd": "/" }))).await;
    let setup = next(&mut conductor).await;
    assert_eq!(declared(&json!({ "params": setup["params"]["params"] })).1, "tools");
    let plain = Proxy.builder().with_mcp_server(tools()).on_receive_request_from(
        Client,
        async |request: v1::NewSessionRequest, responder, cx: greenroom::ConnectionTo<Conductor>| {
            assert!(matches!(request.mcp_servers.last(), Some(v1::McpServer::Acp(_))));
            cx.build_session_from(request).on_proxy_session_start(responder, async |_| Ok(()))
        },
        on_receive_request!(),
    );
    let mut conductor = conducted(plain, 1).await;
    conductor.send(&request(1, "session/new", json!({ "cwd": "/", "mcpServers": [] }))).await;
    let setup = next(&mut conductor).await;
    assert_eq!(declared(&json!({ "params": setup["params"]["params"] })).1, "tools");
}
