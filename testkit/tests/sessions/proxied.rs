//! Sessions that a proxy opens for its client.

use std::sync::Arc;
use std::time::Duration;

use greenroom::runtime::{Fault, Node};
use greenroom::schema::NewSessionRequest;
use greenroom::{ActiveSession, Agent, Client, Conductor, ConnectionTo, Proxy, on_receive_request};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::support::{FAULTS, coordinator, permission, result, soon, told, update, waiting};

fn beyond(mut message: Value) -> Value {
    message["params"] = json!({ "method": message["method"], "params": message["params"] });
    message["method"] = json!("_proxy/successor");
    message
}

fn new(id: i64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "session/new", "params": { "cwd": "/", "mcpServers": [] } })
}

/// A proxy that opens sessions in its handler and tells their ids.
fn opening() -> (Local, mpsc::UnboundedReceiver<String>) {
    let (tell, told) = mpsc::unbounded_channel();
    let proxy = Proxy.builder().on_receive_request_from(
        Client,
        async move |request: NewSessionRequest, responder, cx: ConnectionTo<Conductor>| {
            let tell = tell.clone();
            cx.build_session_from(request).on_proxy_session_start(responder, async move |id| {
                tell.send(id.0.to_string()).map_err(|_| greenroom::Error::internal_error())
            })
        },
        on_receive_request!(),
    );
    let (conductor, link) = pair(64 * 1024);
    tokio::spawn(proxy.connect_to(link));
    (conductor, told)
}

#[tokio::test]
async fn statement_79_the_client_gets_the_answer_before_what_comes_after_it() {
    let (mut conductor, mut told) = opening();
    conductor.send(&new(1)).await;
    let asked = conductor.receive().await;
    assert_eq!((&asked["method"], &asked["params"]["method"]), (&json!("_proxy/successor"), &json!("session/new")));
    let answer = json!({ "sessionId": "s", "_meta": { "vendor": [1, 2] } });
    let messages = [result(&asked["id"], answer.clone()), beyond(update("s", "early"))];
    conductor.write(messages.map(|message| format!("{message}\n")).concat()).await;
    conductor.expect(result(&json!(1), answer)).await;
    conductor.expect(update("s", "early")).await;
    assert_eq!(told.recv().await.as_deref(), Some("s"));
    // From the client.
    let prompt =
        json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": { "sessionId": "s", "prompt": [] } });
    conductor.send(&prompt).await;
    assert_eq!(conductor.receive().await["params"]["params"], prompt["params"]);
}

/// Statement 33, the part of protocol v1.
#[tokio::test]
async fn refusal_and_cancellation_are_passed_on() {
    let (mut conductor, mut told) = opening();
    conductor.send(&new(1)).await;
    let asked = conductor.receive().await;
    conductor.send(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 1 } })).await;
    let cancel = conductor.receive().await;
    assert_eq!(cancel["params"]["method"], "$/cancel_request");
    assert_eq!(cancel["params"]["params"]["requestId"], asked["id"]);
    let error = json!({ "code": -32800, "message": "Request cancelled" });
    conductor.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })).await;
    conductor.expect(json!({ "jsonrpc": "2.0", "id": 1, "error": error })).await;
    conductor.close().await;
    assert_eq!(told.recv().await, None, "the callback was not called");
}

#[tokio::test]
async fn the_rest_of_a_session_can_be_passed_on() {
    let (mut conductor, link) = pair(64 * 1024);
    tokio::spawn(Proxy.builder().connect_with(link, async |cx: ConnectionTo<Conductor>| {
        let mut session = cx.build_session("/").block_task().start_session().await?;
        session.send_prompt("prepare")?;
        assert_eq!(session.read_to_string().await?, "prepared");
        session.proxy_remaining_messages()?;
        cx.incoming_closed().await;
        Ok(())
    }));
    let asked = conductor.receive().await;
    conductor.send(&result(&asked["id"], json!({ "sessionId": "s" }))).await;
    let prompt = conductor.receive().await;
    assert_eq!(prompt["params"]["params"]["prompt"][0]["text"], "prepare");
    let request = json!({ "jsonrpc": "2.0", "id": "f", "method": "fs/read_text_file", "params": { "sessionId": "s", "path": "/x" } });
    let messages = [
        beyond(update("s", "prepared")),
        result(&prompt["id"], json!({ "stopReason": "end_turn" })),
        // Nobody has read these when the session is passed on.
        beyond(update("s", "one")),
        beyond(request),
        beyond(update("s", "two")),
    ];
    conductor.write(messages.map(|message| format!("{message}\n")).concat()).await;
    conductor.expect(update("s", "one")).await;
    let passed = conductor.receive().await;
    assert_eq!((&passed["method"], &passed["params"]["path"]), (&json!("fs/read_text_file"), &json!("/x")));
    conductor.expect(update("s", "two")).await;
    conductor.send(&result(&passed["id"], json!({ "content": "text" }))).await;
    conductor.expect(result(&json!("f"), json!({ "content": "text" }))).await;
    conductor.send(&beyond(update("s", "three"))).await;
    conductor.expect(update("s", "three")).await;
}

/// A proxy whose foreground is in the hands of the test.
async fn proxy() -> (Local, ConnectionTo<Conductor>) {
    let (conductor, link) = pair(64 * 1024);
    let (give, take) = oneshot::channel();
    tokio::spawn(Proxy.builder().connect_with(link, async |cx: ConnectionTo<Conductor>| {
        give.send(cx.clone()).expect("the test waits");
        cx.incoming_closed().await;
        Ok(())
    }));
    (conductor, take.await.expect("a connection"))
}

/// Opens a session of the proxy itself.
async fn own(
    conductor: &mut Local,
    cx: &ConnectionTo<Conductor>,
    session: &str,
) -> (ActiveSession<'static, Conductor>, Arc<Node>) {
    let cx = cx.clone();
    let tree = cx.clone();
    let ours = tokio::spawn(async move { cx.build_session("/").block_task().start_session().await });
    let asked = conductor.receive().await;
    conductor.send(&result(&asked["id"], json!({ "sessionId": session }))).await;
    (ours.await.expect("no panic").expect("a session"), coordinator(&tree))
}

/// The session's coordinator dies while the message that passes the rest on, and more on both sides of
/// it, waits in its mailbox.
#[tokio::test(start_paused = true)]
async fn a_session_that_is_being_passed_on_survives_its_coordinator() {
    for (name, fault) in FAULTS {
        let (mut conductor, cx) = proxy().await;
        let (mut other, _) = own(&mut conductor, &cx, "other").await;
        let (mut session, node) = own(&mut conductor, &cx, "s").await;
        conductor.send(&beyond(update("s", "unread"))).await;
        conductor.send(&beyond(update("other", "first"))).await;
        assert_eq!(told(soon(other.read_update()).await.expect("a message")), "first");
        assert!(node.inject(Fault::Stall(Duration::from_millis(1))), "{name}: it runs");
        session.send_prompt("prepare").expect("sent");
        assert_eq!(conductor.receive().await["params"]["method"], "session/prompt");
        for message in [update("s", "one"), permission("p", "s"), update("other", "second")] {
            conductor.send(&beyond(message)).await;
        }
        assert_eq!(told(soon(other.read_update()).await.expect("a message")), "second");
        session.proxy_remaining_messages().expect("it runs");
        for message in [update("s", "two"), update("other", "third")] {
            conductor.send(&beyond(message)).await;
        }
        assert_eq!(told(soon(other.read_update()).await.expect("a message")), "third");
        assert_eq!(waiting(&node), 5, "{name}: a turn, two messages, the change, a message");
        assert!(fault(&node), "{name}: it runs");
        conductor.send(&beyond(update("s", "three"))).await;
        for expected in ["unread", "one"] {
            assert_eq!(soon(conductor.receive()).await, update("s", expected), "{name}");
        }
        let passed = soon(conductor.receive()).await;
        assert_eq!(passed["method"], "session/request_permission", "{name}");
        for expected in ["two", "three"] {
            assert_eq!(soon(conductor.receive()).await, update("s", expected), "{name}");
        }
        conductor.send(&result(&passed["id"], json!({ "outcome": { "outcome": "cancelled" } }))).await;
        let answer = soon(conductor.receive()).await;
        assert_eq!((&answer["id"], &answer["result"]["outcome"]["outcome"]), (&json!("p"), &json!("cancelled")));
    }
}

/// It dies later: where messages go is not forgotten.
#[tokio::test(start_paused = true)]
async fn a_session_that_was_passed_on_survives_its_coordinator() {
    for (name, fault) in FAULTS {
        let (mut conductor, cx) = proxy().await;
        let (mut other, _) = own(&mut conductor, &cx, "other").await;
        let (session, node) = own(&mut conductor, &cx, "s").await;
        session.proxy_remaining_messages().expect("it runs");
        conductor.send(&beyond(update("s", "one"))).await;
        conductor.expect(update("s", "one")).await;
        assert!(node.inject(Fault::Stall(Duration::from_millis(1))), "{name}: it runs");
        for message in [update("s", "two"), permission("p", "s"), update("other", "behind it")] {
            conductor.send(&beyond(message)).await;
        }
        assert_eq!(told(soon(other.read_update()).await.expect("a message")), "behind it");
        assert_eq!(waiting(&node), 2, "{name}: both messages");
        assert!(fault(&node), "{name}: it runs");
        conductor.send(&beyond(update("s", "three"))).await;
        assert_eq!(soon(conductor.receive()).await, update("s", "two"), "{name}");
        assert_eq!(soon(conductor.receive()).await["method"], "session/request_permission", "{name}");
        assert_eq!(soon(conductor.receive()).await, update("s", "three"), "{name}");
    }
}

#[tokio::test]
async fn the_foreground_may_wait_for_a_session_of_its_client() {
    let (mut conductor, link) = pair(64 * 1024);
    let (give, mut take) = mpsc::unbounded_channel();
    let proxy = Proxy.builder().on_receive_request_from(
        Client,
        async move |request: NewSessionRequest, responder, _cx: ConnectionTo<Conductor>| {
            give.send((request, responder)).map_err(|_| greenroom::Error::internal_error())
        },
        on_receive_request!(),
    );
    let ours = tokio::spawn(proxy.connect_with(link, async move |cx: ConnectionTo<Conductor>| {
        let (request, responder) = take.recv().await.expect("a request");
        let id = cx.build_session_from(request).block_task().start_session_proxy(responder).await?;
        cx.send_request_to(Agent, greenroom::UntypedMessage::new("mark", json!({ "id": id }))?).detach();
        Ok(())
    }));
    conductor.send(&new(1)).await;
    let asked = conductor.receive().await;
    conductor.send(&result(&asked["id"], json!({ "sessionId": "s" }))).await;
    conductor.expect(result(&json!(1), json!({ "sessionId": "s" }))).await;
    assert_eq!(conductor.receive().await["params"]["params"], json!({ "id": "s" }));
    ours.await.expect("no panic").expect("no error");
}
