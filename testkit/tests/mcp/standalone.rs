//! Servers that are served by themselves.

use greenroom::mcp_server::{McpConnectionTo, McpServer, McpServerConnect};
use greenroom::role::mcp;
use greenroom::{ConnectTo, ConnectionTo, DynConnectTo, NullRun, Responder, UntypedMessage, on_receive_request};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};

use super::support::*;

/// A server that asks its client for a name before it answers, and echoes everything else.
struct Asking;

impl McpServerConnect<mcp::Client> for Asking {
    fn name(&self) -> String {
        "asking".to_owned()
    }

    fn connect(&self, connection: McpConnectionTo<mcp::Client>) -> DynConnectTo<mcp::Client> {
        assert!(connection.context().is_standalone() && connection.server_id().is_none());
        DynConnectTo::new(mcp::Server.builder().on_receive_request(
            async move |request: UntypedMessage, responder: Responder, cx: ConnectionTo<mcp::Client>| {
                if request.method != "ask" {
                    return responder.respond(json!({ "method": request.method, "params": request.params }));
                }
                let host = connection.connection().clone();
                cx.clone().spawn(async move {
                    // Once through the server's own connection, once through that of the host.
                    let own = cx.send_request(UntypedMessage::new("roots/list", json!({}))?);
                    let name = host.send_request(UntypedMessage::new("elicit", json!({}))?);
                    let (own, name) = (own.block_task().await?, name.block_task().await?);
                    responder.respond(json!({ "own": own, "name": name }))
                })
            },
            on_receive_request!(),
        ))
    }
}

fn served(server: McpServer<mcp::Client, NullRun>) -> (Local, tokio::task::JoinHandle<greenroom::Result<()>>) {
    let (client, link) = pair(1 << 16);
    (client, tokio::spawn(server.connect_to(link)))
}

#[tokio::test]
async fn a_client_talks_to_the_server_and_tools_talk_to_the_client() {
    let (mut client, serving) = served(McpServer::new(Asking, NullRun));
    client.send(&request("a\"b", "initialize", json!({ "x": 1 }))).await;
    client.expect(result("a\"b", json!({ "method": "initialize", "params": { "x": 1 } }))).await;
    client.send(&request(7, "ask", json!({}))).await;
    for _ in 0..2 {
        let asked = next(&mut client).await;
        let value = if asked["method"] == "elicit" { json!("Ada") } else { json!([]) };
        client.send(&result(asked["id"].clone(), value)).await;
    }
    client.expect(result(7, json!({ "own": [], "name": "Ada" }))).await;
    client.close().await;
    soon(client.expect_end()).await;
    soon(serving).await.expect("no panic").expect("a clean end");
}

#[tokio::test]
async fn a_native_server_says_that_it_cannot_be_served() {
    let (_client, serving) = served(McpServer::new_service("tools", Asks(shouting), NullRun));
    let error = soon(serving).await.expect("no panic").expect_err("not standalone");
    assert!(
        error.data.as_ref().and_then(Value::as_str).is_some_and(|data| data.contains("new_service_with_standalone"))
    );
    let (mut client, _serving) = served(McpServer::new_service_with_standalone(Asks(shouting), Asking, NullRun));
    client.send(&request(1, "ping", json!({}))).await;
    assert_eq!(next(&mut client).await["result"]["method"], "ping");
}
