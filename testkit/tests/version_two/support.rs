//! Messages of version 2, and endpoints over real byte streams.

use greenroom::schema::{ProtocolVersion, v2};
use greenroom::{Agent, Client, ConnectTo, Result, V2ConnectionTo};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::sync::oneshot;

pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

pub(crate) fn note(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

pub(crate) fn result(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

pub(crate) fn initialize(id: impl Into<Value>, version: Value) -> Value {
    request(id, "initialize", json!({ "protocolVersion": version, "info": { "name": "peer", "version": "1" } }))
}

pub(crate) fn initialized() -> Value {
    json!({ "protocolVersion": 2, "info": { "name": "peer", "version": "1" }, "capabilities": {}, "authMethods": [] })
}

pub(crate) fn hello() -> v2::InitializeRequest {
    v2::InitializeRequest::new(ProtocolVersion::V2, v2::Implementation::new("test", "1"))
}

pub(crate) fn idle(session: &str, reason: &str) -> Value {
    let update = json!({ "sessionUpdate": "state_update", "state": "idle", "stopReason": reason });
    note("session/update", json!({ "sessionId": session, "update": update }))
}

/// Serves a scripted client.
pub(crate) fn serve(agent: impl ConnectTo<Client>) -> Local {
    let (peer, link) = pair(1 << 16);
    tokio::spawn(agent.connect_to(link));
    peer
}

/// The code of the error in an answer to this id.
pub(crate) async fn refused(peer: &mut Local, id: impl Into<Value>) -> i64 {
    let answer = peer.receive().await;
    assert_eq!(answer["id"], id.into(), "{answer}");
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("an error: {answer}"))
}

/// Reads a request of this method and gives its id.
pub(crate) async fn asked(peer: &mut Local, method: &str) -> Value {
    let request = peer.receive().await;
    assert_eq!(request["method"], method, "{request}");
    request["id"].clone()
}

/// A client that has done its handshake with a scripted agent.
pub(crate) struct Side {
    pub(crate) agent: Local,
    pub(crate) cx: V2ConnectionTo<Agent>,
    pub(crate) foreground: oneshot::Sender<()>,
}

pub(crate) async fn client() -> Side {
    connected(Client.v2()).await
}

pub(crate) async fn connected<H, R, C>(builder: greenroom::V2Builder<Client, H, R, C>) -> Side
where
    H: greenroom::HandleDispatchFrom<Agent> + 'static,
    R: greenroom::RunWithConnectionTo<Agent> + 'static,
    C: greenroom::HandleConnectionClose<Agent> + 'static,
{
    let (mut agent, link) = pair(1 << 16);
    let (give, take) = oneshot::channel();
    let (foreground, end) = oneshot::channel::<()>();
    tokio::spawn(builder.connect_with(link, async move |cx: V2ConnectionTo<Agent>| -> Result<()> {
        cx.send_request(hello()).block_task().await?;
        give.send(cx).expect("the test waits");
        let _ = end.await;
        Ok(())
    }));
    let id = asked(&mut agent, "initialize").await;
    agent.send(&result(&id, initialized())).await;
    Side { agent, cx: take.await.expect("a connection"), foreground }
}
