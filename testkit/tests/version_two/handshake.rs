//! Initialization: which messages pass before it, and which version it selects. The tables themselves
//! are tests of the protocol crate; these show that connections follow them.

use greenroom::schema::{v1, v2};
use greenroom::{
    Agent, Client, ConnectTo, ConnectionTo, InitializeOutcome, Proxy, Responder, SelectedInitializeResponse,
    UntypedMessage, V2ConnectionTo, on_receive_notification, on_receive_request,
};
use greenroom_testkit::scripted::pair;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::support::*;

fn agent(told: mpsc::UnboundedSender<String>) -> impl ConnectTo<Client> {
    let notes = told.clone();
    Agent
        .v2()
        .on_receive_request(
            async |initialize: v2::InitializeRequest, responder: Responder<v2::InitializeResponse>, _cx| {
                responder.respond(v2::InitializeResponse::new(
                    initialize.protocol_version,
                    v2::Implementation::new("agent", "1"),
                ))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: UntypedMessage, responder: Responder<Value>, _cx: V2ConnectionTo<Client>| {
                let _ = told.send(request.method);
                responder.respond(json!("served"))
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, _cx: V2ConnectionTo<Client>| {
                let _ = notes.send(note.method);
                Ok(())
            },
            on_receive_notification!(),
        )
}

#[tokio::test]
async fn an_agent_serves_nothing_before_its_handshake() {
    let (told, mut seen) = mpsc::unbounded_channel();
    let mut peer = serve(agent(told));
    peer.send(&request(1, "session/new", json!({}))).await;
    assert_eq!(refused(&mut peer, 1).await, -32600);
    peer.send(&note("early", json!({}))).await;
    peer.send(&initialize(2, json!(1))).await;
    let answer = peer.receive().await;
    assert_eq!(answer["error"]["code"], -32022);
    assert_eq!(answer["error"]["data"], json!({ "requested": 1, "supported": [2] }));
    peer.send(&initialize("three", json!(7))).await;
    let answer = peer.receive().await;
    assert_eq!((&answer["id"], &answer["result"]["protocolVersion"]), (&json!("three"), &json!(2)));
    peer.send(&request(4, "now", json!({}))).await;
    peer.expect(result(&json!(4), json!("served"))).await;
    peer.send(&note("late", json!({}))).await;
    // In use: it cannot be initialized again.
    peer.send(&initialize(5, json!(2))).await;
    assert_eq!(refused(&mut peer, 5).await, -32600);
    peer.close().await;
    peer.expect_end().await;
    let mut all = Vec::new();
    while let Some(next) = seen.recv().await {
        all.push(next);
    }
    assert_eq!(all, ["now", "late"], "handlers saw what came after the handshake and nothing else");
}

#[tokio::test]
async fn refusals_keep_their_places_in_a_batch() {
    let (told, _seen) = mpsc::unbounded_channel();
    let mut peer = serve(agent(told));
    peer.send(&json!([request(1, "early", json!({})), initialize(2, json!(2)), request(3, "too", json!({}))])).await;
    let answers = peer.receive().await;
    assert_eq!(answers[0]["error"]["code"], -32600);
    assert_eq!(answers[1]["result"]["protocolVersion"], 2);
    assert_eq!(answers[2]["error"]["code"], -32600, "the handshake is not done before its answer");
}

#[tokio::test]
async fn a_client_sends_nothing_before_its_handshake() {
    let (mut agent, link) = pair(1 << 16);
    let ours = tokio::spawn(Client.v2().connect_with(link, async |cx: V2ConnectionTo<Agent>| {
        let early = cx.send_request(UntypedMessage::new("early", json!({}))?).block_task().await;
        assert_eq!(i32::from(early.expect_err("too early").code), -32600);
        assert!(cx.send_notification(UntypedMessage::new("early", json!({}))?).is_err());
        let low = cx.send_request(hello()).block_task().await;
        assert_eq!(i32::from(low.expect_err("version 1").code), -32600);
        // It stays uninitialized and may try again; a lower version can also be an outcome.
        let outcome = cx.send_initialize(hello()).block_task().await?;
        let InitializeOutcome::LowerVersion(mismatch) = outcome else { panic!("version 1: {outcome:?}") };
        assert_eq!((mismatch.requested.as_u16(), mismatch.selected.as_u16()), (2, 1));
        let SelectedInitializeResponse::V1(response) = mismatch.response else { panic!("version 1") };
        assert_eq!(response.protocol_version.as_u16(), 1);
        assert!(cx.send_notification(UntypedMessage::new("still early", json!({}))?).is_err());
        let outcome = cx.send_initialize(hello()).block_task().await?;
        assert!(matches!(outcome, InitializeOutcome::Initialized(_)), "{outcome:?}");
        cx.send_notification(UntypedMessage::new("now", json!({}))?)
    }));
    for version in [1, 1, 2] {
        let id = asked(&mut agent, "initialize").await;
        // The other direction is closed meanwhile.
        agent.send(&request("early", "fs/read", json!({}))).await;
        assert_eq!(refused(&mut agent, "early").await, -32600);
        let mut selected = initialized();
        selected["protocolVersion"] = json!(version);
        agent.send(&result(&id, selected)).await;
    }
    assert_eq!(agent.receive().await["method"], "now");
    ours.await.expect("no panic").expect("no error");
}

/// Spec §5.5: what is no answer of version 2 fails the handshake, which may be tried again.
#[tokio::test]
async fn an_answer_that_a_client_cannot_read_opens_nothing() {
    let unfit = [
        json!({ "protocolVersion": 2 }),
        json!({ "protocolVersion": 2, "info": "nameless" }),
        json!({ "protocolVersion": 0, "info": { "name": "a", "version": "1" } }),
        json!({ "protocolVersion": 3, "info": { "name": "a", "version": "1" } }),
        json!({ "protocolVersion": "2", "info": { "name": "a", "version": "1" } }),
        json!({}),
    ];
    let (mut agent, link) = pair(1 << 16);
    let times = unfit.len();
    let ours = tokio::spawn(Client.v2().connect_with(link, async move |cx: V2ConnectionTo<Agent>| {
        for _ in 0..times {
            cx.send_request(hello()).block_task().await.expect_err("no handshake");
            assert!(cx.send_notification(UntypedMessage::new("early", json!({}))?).is_err());
            cx.send_initialize(hello()).block_task().await.expect_err("no handshake");
            assert!(cx.send_notification(UntypedMessage::new("early", json!({}))?).is_err());
        }
        cx.send_request(hello()).block_task().await?;
        cx.send_notification(UntypedMessage::new("now", json!({}))?)
    }));
    for answer in unfit.iter().flat_map(|answer| [answer, answer]).chain([&initialized()]) {
        let id = asked(&mut agent, "initialize").await;
        agent.send(&result(&id, answer.clone())).await;
    }
    assert_eq!(agent.receive().await["method"], "now");
    ours.await.expect("no panic").expect("no error");
}

#[tokio::test]
async fn an_agent_of_version_one_serves_a_later_client_as_version_one() {
    let (told, mut heard) = mpsc::unbounded_channel();
    let agent = Agent.builder().on_receive_request(
        async move |request: v1::InitializeRequest, responder: Responder<v1::InitializeResponse>, _cx| {
            let _ = told.send(request.clone());
            responder.respond(v1::InitializeResponse::new(request.protocol_version))
        },
        on_receive_request!(),
    );
    let mut peer = serve(agent);
    peer.send(&request(0, "session/new", json!({}))).await;
    assert_eq!(refused(&mut peer, 0).await, -32600, "its initialize is handled, so it is waited for");
    peer.send(&initialize(1, json!(2))).await;
    peer.expect(result(&json!(1), serde_json::to_value(v1::InitializeResponse::new(1.into())).expect("JSON"))).await;
    let request = heard.recv().await.expect("told");
    assert_eq!(request.client_info.map(|info| info.name).as_deref(), Some("peer"));
}

#[tokio::test]
async fn endpoints_without_a_guard_do_as_they_like() {
    let open = Agent.builder().without_acp_version_guard().on_receive_request(
        async |request: UntypedMessage, responder: Responder<Value>, _cx| responder.respond(request.params),
        on_receive_request!(),
    );
    let mut peer = serve(open);
    let params = json!({ "protocolVersion": "any", "x": 1 });
    peer.send(&request(1, "initialize", params.clone())).await;
    peer.expect(result(&json!(1), params)).await;
}

#[tokio::test]
async fn a_proxy_follows_its_dialect() {
    for (dialect, asked_for, code, passed) in
        [("_proxy/initialize", 1, None, 1), ("_proxy/initialize", 2, Some(-32600), 0), ("proxy/initialize", 2, None, 1)]
    {
        let (mut conductor, link) = pair(1 << 16);
        tokio::spawn(Proxy.builder().connect_to(link));
        let mut hello = initialize(1, json!(asked_for));
        hello["method"] = json!(dialect);
        conductor.send(&hello).await;
        if let Some(code) = code {
            assert_eq!(refused(&mut conductor, 1).await, code, "{dialect} {asked_for}");
            continue;
        }
        let beyond = conductor.receive().await;
        assert_eq!(beyond["params"]["method"], "initialize");
        assert_eq!(beyond["params"]["params"]["protocolVersion"], passed, "{dialect} {asked_for}");
        conductor.send(&result(&beyond["id"], json!({ "protocolVersion": 1, "k": [1] }))).await;
        conductor.expect(result(&json!(1), json!({ "protocolVersion": 1, "k": [1] }))).await;
        // A plain initialize is for agents.
        conductor.send(&initialize(2, json!(1))).await;
        assert_eq!(refused(&mut conductor, 2).await, -32600);
    }
}

#[tokio::test]
async fn the_kind_of_handle_follows_the_builder() {
    // On a raw connection the child's handle is raw, unless it is asked for.
    let (_told, _) = (0, 0);
    let (tell, _seen) = mpsc::unbounded_channel();
    let outer = Agent.builder();
    Client
        .builder()
        .connect_with(outer, async |cx: ConnectionTo<Agent>| {
            let child: V2ConnectionTo<Agent> = cx.spawn_connection_with_context(Client.v2(), agent(tell.clone()))?;
            child.send_request(hello()).block_task().await?;
            let raw: ConnectionTo<Agent> = cx.spawn_connection(Client.v2(), agent(tell.clone()))?;
            let answer = raw.send_request(hello()).block_task().await?;
            assert_eq!(answer.protocol_version.as_u16(), 2);
            let grandchild = child.spawn_connection(Client.v2(), agent(tell.clone()))?;
            grandchild.send_request(hello()).block_task().await?;
            Ok(())
        })
        .await
        .expect("no error");
}

#[tokio::test]
async fn an_agent_that_cancels_nothing_knows_nothing_to_cancel() {
    let agent = Agent.v2().on_receive_request(
        async |initialize: v2::InitializeRequest, responder: Responder<v2::InitializeResponse>, _cx| {
            let info = v2::Implementation::new("agent", "1");
            responder.respond(v2::InitializeResponse::new(initialize.protocol_version, info))
        },
        on_receive_request!(),
    );
    let mut peer = serve(agent);
    peer.send(&request(1, "terminal/cancel", json!({ "terminalId": "t" }))).await;
    assert_eq!(refused(&mut peer, 1).await, -32600, "before the handshake");
    peer.send(&initialize(2, json!(2))).await;
    peer.receive().await;
    for (method, params) in
        [("terminal/cancel", json!({ "terminalId": "t" })), ("tool_call/cancel", json!({ "toolCallId": "c" }))]
    {
        peer.send(&request(3, method, params.clone())).await;
        let answer = peer.receive().await;
        assert_eq!((&answer["error"]["code"], &answer["error"]["data"]), (&json!(-32602), &params), "{method}");
    }
}
