//! A router with agents of both versions.

use std::sync::{Arc, Mutex};

use greenroom::schema::{ProtocolVersion, v1, v2};
use greenroom::{Agent, AgentProtocolRouter, Client, ConnectTo, Error, Responder, V2ConnectionTo, on_receive_request};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::json;
use tokio::task::JoinHandle;

use super::support::*;

/// A peer, a router, and both of its implementations.
struct Both {
    peer: Local,
    v1: Local,
    v2: Local,
    run: JoinHandle<greenroom::Result<()>>,
}

fn both(configure: impl FnOnce(AgentProtocolRouter) -> AgentProtocolRouter) -> Both {
    let ((v1, v1_link), (v2, v2_link)) = (pair(ROOM), pair(ROOM));
    let (peer, run) = serve(configure(Agent.protocol_router().with_v1(v1_link).with_v2(v2_link)));
    Both { peer, v1, v2, run }
}

#[tokio::test]
async fn each_version_gets_its_implementation_and_the_other_is_dropped() {
    for version in [1, 2] {
        let Both { mut peer, v1, v2, run } = both(|router| router);
        let (mut selected, mut other) = if version == 1 { (v1, v2) } else { (v2, v1) };
        let first = format!(
            r#"{{"id":"a\u0041","params":{{"x":1.50e1, "protocolVersion" : {version},"info":{{"version":"1","name":"n"}}}},"jsonrpc":"2.0","method":"initialize"}}"#
        );
        passes(&mut peer, &mut selected, &first).await;
        soon(other.expect_end()).await;
        for line in ODD_LINES {
            passes(&mut peer, &mut selected, line).await;
            passes(&mut selected, &mut peer, line).await;
        }
        // Whatever it asks for: the selection is made.
        for later in [1, 2, 3] {
            passes(&mut peer, &mut selected, &initialize(3, later).to_string()).await;
        }
        peer.close().await;
        soon(selected.expect_end()).await;
        selected.close().await;
        soon(run).await.expect("no panic").expect("a clean end");
    }
}

#[tokio::test]
async fn a_later_version_selects_version_two_and_zero_selects_version_one() {
    let Both { mut peer, mut v2, .. } = both(|router| router);
    peer.send(&initialize("i", 9)).await;
    let told = soon(v2.receive()).await;
    assert_eq!(told["params"]["protocolVersion"], 2);
    let Both { mut peer, mut v1, .. } = both(|router| router);
    peer.send(&initialize("i", 0)).await;
    assert_eq!(soon(v1.receive()).await["params"]["protocolVersion"], 1);
}

#[tokio::test]
async fn a_rejected_client_may_try_again() {
    let Both { mut peer, mut v2, .. } = both(|router| router);
    peer.send(&request("bad", "initialize", json!({ "protocolVersion": 2, "info": 1 }))).await;
    assert_eq!(refused(&mut peer, "bad").await, -32602);
    peer.send(&initialize(json!(null), 2)).await;
    assert_eq!(refused(&mut peer, json!(null)).await, -32600);
    peer.write("{\n").await;
    assert_eq!(refused(&mut peer, json!(null)).await, -32700);
    passes(&mut peer, &mut v2, &initialize("good", 2).to_string()).await;

    // Without version 1 nothing else is served.
    let (mut v2, link) = pair(ROOM);
    let (mut peer, _run) = serve(Agent.protocol_router().with_v2(link));
    peer.send(&request(1, "session/new", json!({}))).await;
    assert_eq!(refused(&mut peer, 1).await, -32600);
    peer.send(&initialize(2, 1)).await;
    let answer = soon(peer.receive()).await;
    assert_eq!(answer["error"]["code"], -32022);
    assert_eq!(answer["error"]["data"], json!({ "requested": 1, "supported": [2] }));
    peer.send(&json!([initialize(3, 1), request(4, "x", json!({})), note("n", json!({}))])).await;
    let answers = soon(peer.receive()).await;
    assert_eq!(answers.as_array().map(Vec::len), Some(2));
    assert_eq!((&answers[0]["error"]["code"], &answers[1]["error"]["code"]), (&json!(-32022), &json!(-32600)));
    passes(&mut peer, &mut v2, &initialize(5, 2).to_string()).await;
}

#[tokio::test]
async fn after_a_rejection_the_application_is_not_started() {
    let Both { mut peer, mut v1, mut v2, run } = both(AgentProtocolRouter::close_after_rejection);
    peer.send(&request("bad", "initialize", json!({ "protocolVersion": 2 }))).await;
    peer.send(&initialize("good", 2)).await;
    assert_eq!(refused(&mut peer, "bad").await, -32602);
    soon(peer.expect_end()).await;
    soon(v1.expect_end()).await;
    soon(v2.expect_end()).await;
    soon(run).await.expect("no panic").expect("no error of the router");
}

#[tokio::test]
async fn a_request_of_another_kind_is_for_version_one() {
    let Both { mut peer, mut v1, mut v2, .. } = both(|router| router);
    passes(&mut peer, &mut v1, &request(1, "session/new", json!({})).to_string()).await;
    soon(v2.expect_end()).await;
    passes(&mut peer, &mut v1, &initialize(2, 2).to_string()).await;
}

/// An agent that says its version, and whether a request of its was cancelled.
fn agents(cancelled: &Arc<Mutex<Vec<u16>>>) -> impl ConnectTo<Client> {
    let (first, second) = (cancelled.clone(), cancelled.clone());
    let v1 = Agent
        .builder()
        .on_receive_request(
            async |initialize: v1::InitializeRequest, responder: Responder<v1::InitializeResponse>, _client| {
                responder.respond(v1::InitializeResponse::new(initialize.protocol_version))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_: v1::PromptRequest,
                        responder: Responder<v1::PromptResponse>,
                        client: greenroom::ConnectionTo<Client>| {
                let cancelled = first.clone();
                client.spawn(async move {
                    responder.cancellation().cancelled().await;
                    cancelled.lock().expect("no panic").push(1);
                    responder.respond_with_error(Error::request_cancelled())
                })
            },
            on_receive_request!(),
        );
    let v2 = Agent
        .v2()
        .on_receive_request(
            async |initialize: v2::InitializeRequest, responder: Responder<v2::InitializeResponse>, _client| {
                let info = v2::Implementation::new("agent", "1");
                responder.respond(v2::InitializeResponse::new(initialize.protocol_version, info))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_: v2::PromptRequest,
                        responder: Responder<v2::PromptResponse>,
                        client: V2ConnectionTo<Client>| {
                let cancelled = second.clone();
                client.spawn(async move {
                    responder.cancellation().cancelled().await;
                    cancelled.lock().expect("no panic").push(2);
                    responder.respond_with_error(Error::request_cancelled())
                })
            },
            on_receive_request!(),
        );
    Agent.protocol_router().with_v1(v1).with_v2(v2)
}

#[tokio::test]
async fn cancellation_passes_through() {
    let cancelled = Arc::default();
    for version in [1, 2] {
        let (mut peer, run) = serve(agents(&cancelled));
        peer.send(&initialize("i", version)).await;
        let answer = soon(peer.receive()).await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        peer.send(&request("p", "session/prompt", json!({ "sessionId": "s", "prompt": [] }))).await;
        peer.send(&note("$/cancel_request", json!({ "requestId": "p" }))).await;
        assert_eq!(refused(&mut peer, "p").await, -32800);
        peer.close().await;
        soon(peer.expect_end()).await;
        soon(run).await.expect("no panic").expect("a clean end");
    }
    assert_eq!(*cancelled.lock().expect("no panic"), [1, 2]);
}

#[tokio::test]
async fn clients_of_both_versions_find_their_agent() {
    let cancelled = Arc::default();
    let answer = Client
        .connect_with(agents(&cancelled), async |cx| {
            cx.send_request(v1::InitializeRequest::new(ProtocolVersion::V1)).block_task().await
        })
        .await
        .expect("version 1");
    assert_eq!(answer.protocol_version, ProtocolVersion::V1);
    let answer = Client
        .v2()
        .connect_with(agents(&cancelled), async |cx: V2ConnectionTo<Agent>| {
            let info = v2::Implementation::new("client", "1");
            cx.send_request(v2::InitializeRequest::new(ProtocolVersion::V2, info)).block_task().await
        })
        .await
        .expect("version 2");
    assert_eq!(answer.protocol_version, ProtocolVersion::V2);
}
