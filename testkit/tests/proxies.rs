//! The proxies of this package below a scripted conductor.

use greenroom::{Conductor, ConnectTo};
use greenroom_testkit::scripted::{Local, pair};
use greenroom_testkit::{arrow, pass_through};
use serde_json::{Value, json};

fn below_conductor(proxy: impl ConnectTo<Conductor>) -> Local {
    let (peer, link) = pair(4096);
    tokio::spawn(proxy.connect_to(link));
    peer
}

fn call(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// From or to the agent's side.
fn beyond(method: &str, params: Value) -> Value {
    call("_proxy/successor", json!({ "method": method, "params": params }))
}

fn said(kind: &str, text: &str) -> Value {
    json!({ "sessionId": "s", "update": { "sessionUpdate": kind, "content": { "type": "text", "text": text } } })
}

#[tokio::test]
async fn the_arrow_points_at_what_the_agent_says() {
    let mut conductor = below_conductor(arrow());
    for (kind, text, after) in [
        ("agent_message_chunk", "hello", "→ hello"),
        ("agent_message_chunk", "→ twice", "→ → twice"),
        ("agent_thought_chunk", "hm", "hm"),
    ] {
        conductor.send(&beyond("session/update", said(kind, text))).await;
        conductor.expect(call("session/update", said(kind, after))).await;
    }
}

#[tokio::test]
async fn everything_else_passes_through() {
    for mut conductor in [below_conductor(arrow()), below_conductor(pass_through())] {
        // From the agent.
        conductor.send(&beyond("_vendor/note", json!({ "k": [1] }))).await;
        conductor.expect(call("_vendor/note", json!({ "k": [1] }))).await;
        // From the client, there and back.
        let mut request = call("session/prompt", json!({ "sessionId": "s", "prompt": [], "_meta": { "k": 1 } }));
        request["id"] = json!("client-1");
        conductor.send(&request).await;
        let passed = conductor.receive().await;
        assert_eq!(passed["method"], "_proxy/successor");
        assert_eq!(passed["params"]["method"], request["method"]);
        assert_eq!(passed["params"]["params"], request["params"]);
        conductor.send(&json!({ "jsonrpc": "2.0", "id": passed["id"], "result": { "stopReason": "end_turn" } })).await;
        let answer = json!({ "jsonrpc": "2.0", "id": "client-1", "result": { "stopReason": "end_turn" } });
        conductor.expect(answer).await;
        // Without an arrow.
        conductor.send(&call("session/update", said("user_message_chunk", "me"))).await;
        conductor.expect(beyond("session/update", said("user_message_chunk", "me"))).await;
    }
}
