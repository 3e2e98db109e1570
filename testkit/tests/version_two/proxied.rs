//! Sessions that a proxy of version 2 opens for its client.

use greenroom::schema::v2;
use greenroom::{Client, Conductor, Error, Proxy, V2ConnectionTo, on_receive_request};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::support::*;

fn beyond(mut message: Value) -> Value {
    message["params"] = json!({ "method": message["method"], "params": message["params"] });
    message["method"] = json!("_proxy/successor");
    message
}

/// A proxy that opens and resumes sessions in its handlers and tells their ids.
async fn opening() -> (Local, mpsc::UnboundedReceiver<String>) {
    let (tell, told) = mpsc::unbounded_channel();
    let resumed = tell.clone();
    let proxy = Proxy
        .v2()
        .on_receive_request_from(
            Client,
            async move |request: v2::NewSessionRequest, responder, cx: V2ConnectionTo<Conductor>| {
                let tell = tell.clone();
                cx.build_session_from(request).on_proxy_session_start(responder, async move |opened| {
                    let (session, response) = opened.into_parts();
                    assert_eq!(session.session_id(), &response.session_id);
                    tell.send(session.session_id().0.to_string()).map_err(|_| Error::internal_error())
                })
            },
            on_receive_request!(),
        )
        .on_receive_request_from(
            Client,
            async move |request: v2::ResumeSessionRequest, responder, cx: V2ConnectionTo<Conductor>| {
                let tell = resumed.clone();
                cx.resume_session_from(request).on_proxy_session_start(responder, async move |opened| {
                    tell.send(opened.session().session_id().0.to_string()).map_err(|_| Error::internal_error())
                })
            },
            on_receive_request!(),
        );
    let (mut conductor, link) = pair(1 << 16);
    tokio::spawn(proxy.connect_to(link));
    let mut hello = initialize(0, json!(2));
    hello["method"] = json!("_proxy/initialize");
    conductor.send(&hello).await;
    let passed = conductor.receive().await;
    assert_eq!(passed["params"]["method"], "initialize");
    conductor.send(&result(&passed["id"], initialized())).await;
    conductor.expect(result(&json!(0), initialized())).await;
    (conductor, told)
}

#[tokio::test]
async fn statement_33_cancellation_is_passed_on_and_a_failure_opens_nothing() {
    let (mut conductor, mut told) = opening().await;
    conductor.send(&request(1, "session/new", json!({ "cwd": "/" }))).await;
    let asked = conductor.receive().await;
    conductor.send(&note("$/cancel_request", json!({ "requestId": 1 }))).await;
    let cancel = conductor.receive().await;
    assert_eq!(cancel["params"]["method"], "$/cancel_request");
    assert_eq!(cancel["params"]["params"]["requestId"], asked["id"]);
    let error = json!({ "code": -32800, "message": "Request cancelled", "data": { "k": 1 } });
    conductor.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })).await;
    conductor.expect(json!({ "jsonrpc": "2.0", "id": 1, "error": error })).await;
    conductor.close().await;
    assert_eq!(told.recv().await, None, "nothing was opened");
}

#[tokio::test]
async fn statement_82_the_answer_comes_before_what_follows_it() {
    let (mut conductor, mut told) = opening().await;
    conductor.send(&request(1, "session/new", json!({ "cwd": "/" }))).await;
    let asked = conductor.receive().await;
    assert_eq!(asked["params"]["method"], "session/new");
    let answer = json!({ "sessionId": "fresh", "_meta": { "k": [1] } });
    let messages = [result(&asked["id"], answer.clone()), beyond(idle("fresh", "end_turn"))];
    conductor.write(messages.map(|message| format!("{message}\n")).concat()).await;
    conductor.expect(result(&json!(1), answer)).await;
    conductor.expect(idle("fresh", "end_turn")).await;
    assert_eq!(told.recv().await.as_deref(), Some("fresh"));
}

/// Statement 81, the part of a proxy: replay passes before the answer.
#[tokio::test]
async fn replay_passes_before_the_answer_to_a_resume() {
    let (mut conductor, mut told) = opening().await;
    conductor.send(&request(1, "session/resume", json!({ "sessionId": "old", "cwd": "/" }))).await;
    let asked = conductor.receive().await;
    let messages = [beyond(idle("old", "one")), beyond(idle("old", "two")), result(&asked["id"], json!({}))];
    conductor.write(messages.map(|message| format!("{message}\n")).concat()).await;
    conductor.expect(idle("old", "one")).await;
    conductor.expect(idle("old", "two")).await;
    conductor.expect(result(&json!(1), json!({}))).await;
    assert_eq!(told.recv().await.as_deref(), Some("old"));
}
