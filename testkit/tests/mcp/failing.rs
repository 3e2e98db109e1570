//! The actors of servers die; operations do not notice.

use std::sync::Arc;

use greenroom::mcp_server::{McpOutcome, McpServer};
use greenroom::role::Role;
use greenroom::runtime::{Fault, Node};
use greenroom::{Conductor, ConnectionTo, NullRun, Proxy};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::json;
use tokio::sync::{oneshot, watch};

use super::support::*;

/// The place of an actor of this kind, once it runs.
async fn place<C: Role>(cx: &ConnectionTo<C>, kind: &str) -> Arc<Node> {
    loop {
        let found = cx.tree().flatten().into_iter().find(|node| node.kind() == kind && node.cell().is_some());
        match found {
            Some(node) => return node,
            None => tokio::task::yield_now().await,
        }
    }
}

async fn restarted(node: &Node, times: u32) {
    soon(async {
        while node.restarts() < times {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// A server whose operations wait until they are let go.
async fn waiting() -> (Attached, watch::Sender<bool>) {
    let (release, released) = watch::channel(false);
    let it = attached(server(move |request, context| {
        let mut released = released.clone();
        Box::pin(async move {
            if request.method == "waits" {
                tokio::select! {
                    _ = released.wait_for(|released| *released) => {}
                    () = context.operation_cancellation().cancelled() => {}
                }
            }
            Ok(McpOutcome::Result(json!(request.method)))
        })
    }))
    .await;
    (it, release)
}

#[tokio::test]
async fn a_killed_actor_loses_no_operation() {
    for kind in ["mcp-server", "mcp-servers", "dispatch"] {
        let (mut it, release) = waiting().await;
        it.agent.send(&call(1, &it.id, "a", "waits", json!({}))).await;
        it.agent.send(&call(2, &it.id, "b", "quick", json!({}))).await;
        it.agent.expect(result(2, json!({ "result": "quick" }))).await;
        let node = place(&it.cx, kind).await;
        assert!(node.kill(), "{kind}");
        it.agent.send(&call(3, &it.id, "a", "quick", json!({}))).await;
        assert_eq!(refused(&mut it.agent, 3).await, -32602, "{kind}: the id is still taken");
        release.send_replace(true);
        it.agent.expect(result(1, json!({ "result": "waits" }))).await;
        it.agent.send(&call(4, &it.id, "a", "quick", json!({}))).await;
        it.agent.expect(result(4, json!({ "result": "quick" }))).await;
        restarted(&node, 1).await;
    }
}

#[tokio::test]
async fn a_panicking_actor_answers_what_it_held() {
    let (mut it, release) = waiting().await;
    it.agent.send(&call(1, &it.id, "a", "waits", json!({}))).await;
    it.agent.send(&call(2, &it.id, "b", "quick", json!({}))).await;
    it.agent.expect(result(2, json!({ "result": "quick" }))).await;
    let node = place(&it.cx, "mcp-server").await;
    assert!(node.inject(Fault::PanicInside));
    it.agent.send(&call(3, &it.id, "c", "quick", json!({}))).await;
    it.agent.expect(result(3, json!({ "result": "quick" }))).await;
    restarted(&node, 1).await;
    release.send_replace(true);
    it.agent.expect(result(1, json!({ "result": "waits" }))).await;
}

#[tokio::test]
async fn a_server_whose_actor_dies_too_often_is_gone_and_nothing_else() {
    let (mut it, _release) = waiting().await;
    it.agent.send(&call(1, &it.id, "a", "waits", json!({}))).await;
    it.agent.send(&call(2, &it.id, "b", "quick", json!({}))).await;
    it.agent.expect(result(2, json!({ "result": "quick" }))).await;
    let node = place(&it.cx, "mcp-server").await;
    for death in 1..=4 {
        assert!(node.kill(), "death {death}");
        if death < 4 {
            restarted(&node, death).await;
        }
    }
    // Its operation was stopped and answered.
    assert_eq!(refused(&mut it.agent, 1).await, -33001);
    it.agent.send(&call(3, &it.id, "c", "quick", json!({}))).await;
    assert_eq!(refused(&mut it.agent, 3).await, -33001);
    it.agent.send(&request(4, "_unknown", json!({}))).await;
    assert_eq!(refused(&mut it.agent, 4).await, -32601, "the connection goes on");
}

#[tokio::test]
async fn kills_at_any_moment_leave_no_call_without_an_answer() {
    let (mut it, release) = waiting().await;
    release.send_replace(true);
    let node = place(&it.cx, "mcp-server").await;
    let supervisor = place(&it.cx, "mcp-servers").await;
    // Not more deaths of one actor than are forgiven.
    for round in 0..60 {
        let id = format!("op-{round}");
        it.agent.send(&call(round, &it.id, &id, if round % 2 == 0 { "waits" } else { "quick" }, json!({}))).await;
        for _ in 0..round % 7 {
            tokio::task::yield_now().await;
        }
        match round {
            10 | 30 | 50 => drop(node.kill()),
            20 | 40 => drop(supervisor.kill()),
            _ => {}
        }
    }
    let mut answered: Vec<u64> = Vec::new();
    while answered.len() < 60 {
        let answer = next(&mut it.agent).await;
        assert!(answer["result"]["result"].is_string(), "{answer}");
        answered.push(answer["id"].as_u64().expect("a number"));
    }
    answered.sort_unstable();
    assert_eq!(answered, (0..60).collect::<Vec<_>>(), "each once");
}

/// Kills the actor as often as is forgiven, and lets it break in the middle of the next item.
async fn next_item_is_the_last(node: &Node) {
    for death in 1..=3 {
        assert!(node.kill(), "death {death}");
        restarted(node, death).await;
    }
    assert!(node.inject(Fault::PanicInside));
}

/// What is refused next, with ids and codes, in the order of the ids.
async fn next_refused(peer: &mut Local, count: usize) -> Vec<(u64, i64)> {
    let mut refused = Vec::new();
    while refused.len() < count {
        let answer = next(peer).await;
        refused.push((answer["id"].as_u64().expect("a number"), answer["error"]["code"].as_i64().expect("an error")));
    }
    refused.sort_unstable();
    refused
}

#[tokio::test]
async fn what_an_actor_held_when_it_gave_up_is_refused() {
    let (mut it, _release) = waiting().await;
    it.agent.send(&call(1, &it.id, "a", "waits", json!({}))).await;
    it.agent.send(&call(2, &it.id, "b", "quick", json!({}))).await;
    it.agent.expect(result(2, json!({ "result": "quick" }))).await;
    next_item_is_the_last(&*place(&it.cx, "mcp-server").await).await;
    // Of these the actor has taken one or more.
    let calls = [3, 4, 5].map(|id| format!("{}\n", call(id, &it.id, &id.to_string(), "quick", json!({}))));
    it.agent.write(calls.concat()).await;
    // With them the operation that ran.
    assert_eq!(next_refused(&mut it.agent, 4).await, [1, 3, 4, 5].map(|id| (id, -33001)));
}

#[tokio::test]
async fn what_the_actor_of_a_whole_connection_held_is_refused_too() {
    let (mut conductor, link) = pair(1 << 16);
    let (give, take) = oneshot::channel();
    let server: McpServer<Conductor, NullRun> = McpServer::new_service("tools", Asks(shouting), NullRun);
    let proxy = Proxy.builder().with_mcp_server(server).connect_with(link, async move |cx| {
        give.send(cx).map_err(|_| greenroom::Error::internal_error())?;
        std::future::pending::<greenroom::Result<()>>().await
    });
    tokio::spawn(proxy);
    conductor.send(&request("hello", "_proxy/initialize", json!({ "protocolVersion": 1 }))).await;
    let asked = next(&mut conductor).await;
    conductor.send(&result(asked["id"].clone(), json!({ "protocolVersion": 1 }))).await;
    conductor.expect(result("hello", json!({ "protocolVersion": 1 }))).await;
    conductor.send(&request(1, "session/new", json!({ "cwd": "/", "mcpServers": [] }))).await;
    let setup = next(&mut conductor).await;
    let (id, _) = declared(&json!({ "params": setup["params"]["params"] }));
    let cx = soon(take).await.expect("a connection");
    next_item_is_the_last(&*place(&cx, "mcp-server").await).await;
    let calls = [3, 4, 5].map(|number| {
        let ask = call(number, &id, &number.to_string(), "tools/list", json!({}));
        let params = json!({ "method": ask["method"], "params": ask["params"] });
        format!("{}\n", request(number, "_proxy/successor", params))
    });
    conductor.write(calls.concat()).await;
    assert_eq!(next_refused(&mut conductor, 3).await, [3, 4, 5].map(|id| (id, -33001)));
}
