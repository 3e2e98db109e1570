//! Components that speak MCP behind an attached server: one connection for each operation.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom::mcp_server::{McpConnectionTo, McpServer, McpServerConnect};
use greenroom::role::mcp;
use greenroom::{Agent, BoxFuture, Channel, DynConnectTo, NullRun, Result, TransportFrame};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::support::*;

type Script = fn(Channel, mpsc::UnboundedSender<&'static str>) -> BoxFuture<'static, Result<()>>;

/// A component that is a script.
struct Scripted {
    script: Script,
    made: Arc<AtomicUsize>,
    say: mpsc::UnboundedSender<&'static str>,
}

struct Component(Script, mpsc::UnboundedSender<&'static str>);

impl greenroom::ConnectTo<mcp::Client> for Component {
    async fn connect_to(self, client: impl greenroom::ConnectTo<mcp::Server>) -> Result<()> {
        let (channel, driver) = client.into_channel_and_future();
        let work = (self.0)(channel, self.1);
        match driver {
            Some(driver) => futures_util::future::try_join(work, driver).await.map(|_| ()),
            None => work.await,
        }
    }
}

impl McpServerConnect<Agent> for Scripted {
    fn name(&self) -> String {
        "tools".to_owned()
    }

    fn connect(&self, connection: McpConnectionTo<Agent>) -> DynConnectTo<mcp::Client> {
        assert!(connection.server_id().is_some() && connection.request_id().is_some());
        self.made.fetch_add(1, Ordering::SeqCst);
        DynConnectTo::new(Component(self.script, self.say.clone()))
    }
}

async fn backed(script: Script) -> (Attached, Arc<AtomicUsize>, Heard) {
    let (say, heard) = log();
    let made = Arc::<AtomicUsize>::default();
    let it = attached(McpServer::new(Scripted { script, made: made.clone(), say }, NullRun)).await;
    (it, made, heard)
}

async fn read(channel: &mut Channel) -> Option<Value> {
    use futures_util::StreamExt as _;
    let frame: TransportFrame = channel.rx.next().await?;
    Some(serde_json::from_str(&frame.to_json().expect("JSON")).expect("JSON"))
}

fn write(channel: &Channel, text: &Value) {
    let _ = channel.tx.unbounded_send(TransportFrame::parse_json(&text.to_string()));
}

fn talking(mut channel: Channel, _say: mpsc::UnboundedSender<&'static str>) -> BoxFuture<'static, Result<()>> {
    Box::pin(async move {
        let Some(asked) = read(&mut channel).await else { return Ok(()) };
        assert_eq!(asked["id"], "logical", "the logical id is the id of MCP");
        write(&channel, &note("notifications/progress", json!({ "n": 1 })));
        // The binding has no requests of the server.
        write(&channel, &request(1, "roots/list", json!({})));
        let refused = read(&mut channel).await.expect("an answer");
        assert_eq!(refused["error"]["code"], -32601);
        let error = json!({ "code": -5, "message": "m", "data": null, "more": 1 });
        if asked["method"] == "error" {
            write(&channel, &json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }));
        } else {
            write(&channel, &result(asked["id"].clone(), json!({ "params": asked["params"]["x"] })));
        }
        Ok(())
    })
}

#[tokio::test]
async fn each_operation_has_a_component_of_its_own() {
    let (mut it, made, _) = backed(talking).await;
    let progress = note(
        "mcp/message",
        json!({ "serverId": it.id, "requestId": "logical", "method": "notifications/progress", "params": { "n": 1 } }),
    );
    it.agent.send(&call(1, &it.id, "logical", "tools/list", json!({ "x": 1 }))).await;
    it.agent.expect(progress.clone()).await;
    it.agent.expect(result(1, json!({ "result": { "params": 1 } }))).await;
    it.agent.send(&call(2, &it.id, "logical", "error", json!({}))).await;
    it.agent.expect(progress).await;
    it.agent.expect(result(2, json!({ "error": { "code": -5, "message": "m", "data": null, "more": 1 } }))).await;
    assert_eq!(made.load(Ordering::SeqCst), 2);
}

fn broken(mut channel: Channel, _say: mpsc::UnboundedSender<&'static str>) -> BoxFuture<'static, Result<()>> {
    Box::pin(async move {
        let Some(asked) = read(&mut channel).await else { return Ok(()) };
        match asked["method"].as_str() {
            Some("batch") => write(&channel, &json!([result(asked["id"].clone(), json!(1))])),
            Some("noise") => drop(channel.tx.unbounded_send(TransportFrame::parse_json("{nonsense"))),
            Some("other") => write(&channel, &result("somebody", json!(1))),
            Some("fails") => return Err(greenroom::Error::internal_error().data("a disk is full")),
            Some("panics") => panic!("expected by this test"),
            _ => {}
        }
        Ok(())
    })
}

#[tokio::test]
async fn a_component_that_does_not_speak_mcp_is_a_failed_backend() {
    let (mut it, _, _) = backed(broken).await;
    for method in ["batch", "noise", "other", "fails", "panics", "ends"] {
        it.agent.send(&call(method, &it.id, "logical", method, json!({}))).await;
        assert_eq!(refused(&mut it.agent, method).await, -33002, "{method}");
    }
}

fn cancellable(mut channel: Channel, say: mpsc::UnboundedSender<&'static str>) -> BoxFuture<'static, Result<()>> {
    Box::pin(async move {
        read(&mut channel).await.expect("a request");
        let _ = say.send("began");
        let told = read(&mut channel).await.expect("a cancellation");
        assert_eq!(told["method"], "notifications/cancelled");
        assert_eq!(told["params"]["requestId"], "logical");
        assert!(read(&mut channel).await.is_none(), "the end of the input");
        let _ = say.send("clean");
        Ok(())
    })
}

#[tokio::test]
async fn a_cancelled_component_is_told_and_waited_for() {
    let (mut it, _, mut heard) = backed(cancellable).await;
    it.agent.send(&call(1, &it.id, "logical", "waits", json!({}))).await;
    heard.expect("began").await;
    it.agent.send(&note("$/cancel_request", json!({ "requestId": 1 }))).await;
    assert_eq!(refused(&mut it.agent, 1).await, -32800);
    heard.expect("clean").await;
}
