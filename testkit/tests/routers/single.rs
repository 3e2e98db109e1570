//! A router or connector with one implementation, of version 1, or none: the same in every build.

use greenroom::link::Link;
use greenroom::{Agent, Batches, Client, ConnectTo, ConnectionOptions, DynConnectTo, Error};
use greenroom_testkit::scripted::pair;
use serde_json::json;

use super::support::*;

#[tokio::test]
async fn an_initialize_of_version_one_passes_byte_for_byte_and_so_does_the_rest() {
    let (mut v1, link) = pair(ROOM);
    let (mut peer, run) = serve(Agent.protocol_router().with_v1(link));
    let first =
        r#"{"id":"a\u0041", "params":{"unknown":1.50e1,"protocolVersion" : 1},"jsonrpc":"2.0","method":"initialize"}"#;
    passes(&mut peer, &mut v1, first).await;
    for line in ODD_LINES {
        passes(&mut peer, &mut v1, line).await;
        passes(&mut v1, &mut peer, line).await;
    }
    // Each direction ends by itself.
    peer.close().await;
    soon(v1.expect_end()).await;
    passes(&mut v1, &mut peer, ODD_LINES[0]).await;
    v1.close().await;
    soon(peer.expect_end()).await;
    soon(run).await.expect("no panic").expect("both sides were done");
}

#[tokio::test]
async fn a_later_version_is_translated_and_an_earlier_one_replaced() {
    let (mut v1, link) = pair(ROOM);
    let (mut peer, _run) = serve(Agent.protocol_router().with_v1(link));
    peer.send(&initialize("i", 7)).await;
    let told = soon(v1.receive()).await;
    assert_eq!((&told["id"], &told["params"]["protocolVersion"]), (&json!("i"), &json!(1)));
    assert_eq!(told["params"]["clientInfo"]["name"], "peer");

    let (mut v1, link) = pair(ROOM);
    let (mut peer, _run) = serve(Agent.protocol_router().with_v1(link));
    peer.write(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"x\" :1,\"protocolVersion\":0}}\n",
    )
    .await;
    let line = soon(v1.line()).await.expect("a line");
    assert!(line.ends_with(r#""params":{"x" :1,"protocolVersion":1}}"#), "{line}");
}

#[tokio::test]
async fn what_is_no_initialize_is_answered_as_without_a_router() {
    let wire = async |agent: DynConnectTo<Client>| {
        let (mut peer, _run) = serve(agent);
        let mut answers = Vec::new();
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"initialize"}"#,
            r#"{"jsonrpc":"#,
            r#"[]"#,
            r#"{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"protocolVersion":99999}}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":1}}"#,
        ] {
            peer.write(format!("{line}\n")).await;
            answers.push(soon(peer.line()).await.expect("an answer"));
        }
        answers
    };
    let alone = wire(DynConnectTo::new(echo("one"))).await;
    let routed = wire(DynConnectTo::new(Agent.protocol_router().with_v1(echo("one")))).await;
    assert_eq!(alone, routed);
    assert!(alone[1].contains("-32602") && alone[6].contains(r#""name":"one""#), "{alone:?}");
}

#[tokio::test]
async fn what_wants_no_answer_selects_nothing() {
    let (mut v1, link) = pair(ROOM);
    let (mut peer, _run) = serve(Agent.protocol_router().with_v1(link));
    peer.write("Welcome\n\u{1b}[?2004h\n\n").await;
    peer.send(&note("session/cancel", json!({}))).await;
    peer.send(&result(1, json!({}))).await;
    peer.send(&json!([result(1, json!({})), result(2, json!({}))])).await;
    let first = initialize(1, 1).to_string();
    passes(&mut peer, &mut v1, &first).await;
}

#[tokio::test]
async fn a_batch_is_kept_whole() {
    let (mut v1, link) = pair(ROOM);
    let (mut peer, _run) = serve(Agent.protocol_router().with_v1(link));
    let first = format!(
        r#"[ {},{}, {} ]"#,
        result(9, json!({})),
        initialize("i", 1),
        request(2, "session/new", json!({ "n": 1 }))
    );
    passes(&mut peer, &mut v1, &first).await;
    let answers = json!([result("i", json!({ "protocolVersion": 1 })), result(2, json!({}))]).to_string();
    passes(&mut v1, &mut peer, &answers).await;
}

#[tokio::test]
async fn batches_can_be_refused() {
    let mut options = ConnectionOptions::default();
    options.batches = Batches::Reject;
    let (mut peer, _run) = serve(Agent.protocol_router().options(options));
    peer.send(&json!([initialize(1, 1)])).await;
    let answer = soon(peer.receive()).await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(null), &json!(-32600)));
}

#[tokio::test]
async fn the_input_may_end_before_a_selection() {
    let (mut v1, link) = pair(ROOM);
    let (mut peer, run) = serve(Agent.protocol_router().with_v1(link));
    peer.send(&note("early", json!({}))).await;
    peer.close().await;
    soon(peer.expect_end()).await;
    soon(run).await.expect("no panic").expect("a clean end");
    soon(v1.expect_end()).await;
}

#[tokio::test]
async fn a_router_without_implementations_refuses_every_version_and_stays() {
    let (mut peer, run) = serve(Agent.protocol_router());
    for version in [0, 1, 2, 3] {
        peer.send(&initialize("i", version)).await;
        let answer = soon(peer.receive()).await;
        assert_eq!(answer["error"]["code"], -32022);
        assert_eq!(answer["error"]["data"], json!({ "requested": version, "supported": [] }));
    }
    peer.send(&request(2, "session/new", json!({}))).await;
    assert_eq!(refused(&mut peer, 2).await, -32600);
    // Refusals leave before the end.
    peer.send(&json!([initialize("i", 1), request(3, "x", json!({}))])).await;
    peer.close().await;
    let answers = soon(peer.receive()).await;
    assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&json!("i"), &json!(3)));
    soon(peer.expect_end()).await;
    soon(run).await.expect("no panic").expect("a clean end");
}

#[tokio::test]
async fn a_rejection_reaches_the_peer_before_the_close() {
    // A pipe that is full long before the answer is written.
    let (mut peer, link) = pair(16);
    let run = tokio::spawn(Agent.protocol_router().close_after_rejection().connect_to(link));
    peer.send(&initialize("i", 1)).await;
    assert_eq!(refused(&mut peer, "i").await, -32022);
    // The peer's own output is still open.
    soon(peer.expect_end()).await;
    soon(run).await.expect("no panic").expect("a rejection is no error of the router");
}

/// A peer that answers malformed input with malformed input would never stop.
#[tokio::test(start_paused = true)]
async fn answers_to_malformed_input_are_limited() {
    let (mut peer, _run) = serve(Agent.protocol_router());
    peer.write("{\n".repeat(100)).await;
    peer.send(&initialize("i", 1)).await;
    let mut answered = 0;
    loop {
        let answer = soon(peer.receive()).await;
        if answer["id"] == "i" {
            break;
        }
        assert_eq!(answer["error"]["code"], -32700);
        answered += 1;
    }
    assert_eq!(answered, 60);
}

#[tokio::test]
async fn an_implementation_that_does_not_open_is_told_to_the_peer() {
    for batch in [false, true] {
        let broken = Link::opening(async { Err(Error::internal_error().data("no such program")) });
        let (mut peer, run) = serve(Agent.protocol_router().with_v1(broken));
        if batch {
            peer.send(&json!([note("x", json!({})), request(1, "x", json!({})), request(2, "y", json!({}))])).await;
            let answers = soon(peer.receive()).await;
            assert_eq!((&answers[0]["id"], &answers[1]["error"]["code"]), (&json!(1), &json!(-32603)));
        } else {
            peer.send(&initialize("i", 1)).await;
            assert_eq!(refused(&mut peer, "i").await, -32603);
        }
        soon(peer.expect_end()).await;
        let error = soon(run).await.expect("no panic").expect_err("it did not open");
        assert_eq!(error.data, Some(json!("no such program")));
    }
}

#[tokio::test]
async fn an_implementation_that_fails_ends_the_connection() {
    let failing = Link::component(|_link| async { Err::<(), _>(Error::internal_error().data("broken")) });
    let (mut peer, run) = serve(Agent.protocol_router().with_v1(failing));
    peer.send(&initialize("i", 1)).await;
    soon(peer.expect_end()).await;
    let error = soon(run).await.expect("no panic").expect_err("it failed");
    assert_eq!(error.data, Some(json!("broken")));
}

#[tokio::test]
async fn dropping_the_router_ends_both_sides() {
    let (mut v1, link) = pair(ROOM);
    let (mut peer, run) = serve(Agent.protocol_router().with_v1(link));
    passes(&mut peer, &mut v1, &initialize(1, 1).to_string()).await;
    run.abort();
    soon(peer.expect_end()).await;
    soon(v1.expect_end()).await;
}

#[tokio::test]
async fn a_router_is_a_component_like_any_other() {
    let router = || Agent.protocol_router().with_v1(echo("one"));
    // Below a client, in this process.
    let answer = Client
        .connect_with(router(), async |cx| {
            cx.send_request(greenroom::UntypedMessage::new("initialize", hello(1))?).block_task().await
        })
        .await
        .expect("a connection");
    assert_eq!(answer["name"], "one");
    // Behind another router, and over the documented channel.
    let outer = DynConnectTo::<Client>::new(Agent.protocol_router().with_v1(router()));
    let (channel, driver) = outer.into_channel_and_future();
    let run = tokio::spawn(driver.expect("a router works"));
    let (mut peer, link) = pair(ROOM);
    let relay = tokio::spawn(ConnectTo::<Agent>::connect_to(link, channel));
    peer.send(&initialize("i", 1)).await;
    assert_eq!(soon(peer.receive()).await["result"]["name"], "one");
    peer.close().await;
    soon(peer.expect_end()).await;
    soon(relay).await.expect("no panic").expect("a clean end");
    soon(run).await.expect("no panic").expect("a clean end");
}

#[tokio::test]
async fn a_connector_without_clients_says_so() {
    let (transport, mut agents) = factory();
    let error = Client.protocol_connector().connect_to(transport).await.expect_err("no client");
    assert_eq!(i32::from(error.code), -32600);
    made_no_more(&mut agents);
}

#[tokio::test]
async fn a_client_of_version_one_alone_is_not_probed() {
    let ((client, mut clients), (transport, mut agents)) = (factory(), factory());
    let run = tokio::spawn(Client.protocol_connector().with_v1(client).connect_to(transport));
    let (mut client, mut agent) = (made(&mut clients).await, made(&mut agents).await);
    for line in ODD_LINES {
        passes(&mut client, &mut agent, line).await;
        passes(&mut agent, &mut client, line).await;
    }
    client.close().await;
    soon(agent.expect_end()).await;
    agent.close().await;
    soon(run).await.expect("no panic").expect("a clean end");
    made_no_more(&mut clients);
    made_no_more(&mut agents);
}
