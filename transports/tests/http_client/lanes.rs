//! What is posted when.

use serde_json::json;

use crate::local::{Local, call, in_session, note, result};
use crate::server::Server;

#[tokio::test]
async fn calls_are_posted_one_after_the_other_in_order() {
    let mut server = Server::start().await;
    let (local, _events) = Local::connected(&mut server).await;
    for index in 0..5 {
        local.send(if index % 2 == 0 { call(index, "_c", json!({})) } else { note("_n", json!({ "n": index })) });
    }
    for index in 0..5 {
        let post = server.expect("POST").await;
        if index % 2 == 0 {
            assert_eq!(post.json()["id"], index);
        } else {
            assert_eq!(post.json()["params"]["n"], index);
        }
        if index == 1 {
            server.stays_quiet().await;
        }
        post.accepted().await;
    }
}

#[tokio::test]
async fn an_answer_does_not_wait_behind_the_request_that_made_the_agent_ask() {
    let mut server = Server::start().await;
    let (mut local, mut events) = Local::connected(&mut server).await;
    local.send(call(1, "_slow", json!({})));
    let slow = server.expect("POST").await;
    local.send(call(2, "_later", json!({})));
    for id in [10, 11] {
        events.send(call(id, "_ask", json!({}))).await;
        local.recv().await;
        local.send(result(id, json!({})));
    }
    let first = server.expect("POST").await;
    assert_eq!(first.json()["id"], 10);
    // One answer at a time, too.
    server.stays_quiet().await;
    first.accepted().await;
    let second = server.expect("POST").await;
    assert_eq!(second.json()["id"], 11);
    second.accepted().await;
    slow.accepted().await;
    assert_eq!(server.expect("POST").await.call(), "_later");
}

#[tokio::test]
async fn malformed_answers_of_a_relay_travel_with_the_answers() {
    let mut server = Server::start().await;
    let (local, _events) = Local::connected(&mut server).await;
    local.send(call(1, "_slow", json!({})));
    let _slow = server.expect("POST").await;
    local.send_text(r#"{"jsonrpc":"1.0","id":4,"result":{}}"#);
    assert_eq!(server.expect("POST").await.json()["id"], 4);
}

#[tokio::test]
async fn what_is_no_text_is_not_posted_and_harms_nothing() {
    let mut server = Server::start().await;
    let (local, _events) = Local::connected(&mut server).await;
    local.send_text("a greeting, no JSON");
    local.send(call(1, "_x", json!({})));
    assert_eq!(server.expect("POST").await.call(), "_x");
}

#[tokio::test]
async fn while_a_stream_opens_only_answers_are_posted() {
    let mut server = Server::start().await;
    let (mut local, mut events) = Local::connected(&mut server).await;
    local.send(call(1, "session/prompt", in_session("s")));
    let opening = server.expect("GET").await;
    local.send(call(2, "_of_the_connection", json!({})));
    events.send(call(9, "_ask", json!({}))).await;
    local.recv().await;
    local.send(result(9, json!({})));
    let answer = server.expect("POST").await;
    assert_eq!(answer.json()["id"], 9);
    answer.accepted().await;
    server.stays_quiet().await;
    let _session = opening.events().await;
    for method in ["session/prompt", "_of_the_connection"] {
        let post = server.expect("POST").await;
        assert_eq!(post.call(), method);
        post.accepted().await;
    }
}

#[tokio::test]
async fn a_stream_is_read_while_a_post_takes_its_time() {
    let mut server = Server::start().await;
    let (mut local, mut events) = Local::connected(&mut server).await;
    local.send(call(1, "_slow", json!({})));
    let _slow = server.expect("POST").await;
    events.send(result(1, json!({ "early": true }))).await;
    assert_eq!(local.recv().await["result"]["early"], true);
}

#[tokio::test]
async fn events_are_read_as_the_standard_says() {
    let mut server = Server::start().await;
    let (mut local, mut events) = Local::connected(&mut server).await;
    let text = note("_n", json!({ "text": "中😀é" })).to_string();
    let (left, right) = text.split_at(20);
    for written in [
        format!("data: {text}\n\n"),
        format!("data:{text}\n\n"),
        format!("event: message\ndata: {text}\n\n"),
        format!("id: 7\nretry: 0\ndata: {text}\n\n"),
        format!("data: {text}\r\n\r\n"),
        format!(": a comment\n\ndata: {text}\n\n"),
        format!("event: other\ndata: {{}}\n\ndata:\n\ndata: {text}\n\n"),
        // Two lines of one event: a line end between two tokens.
        format!("data: {}\ndata: {}\n\n", r#"{"jsonrpc":"2.0","#, &text[r#"{"jsonrpc":"2.0","#.len()..].trim()),
    ] {
        events.write(&written).await;
        let heard = local.recv().await;
        assert_eq!(heard["jsonrpc"], "2.0", "{written}: {heard}");
    }
    events.write(&format!("data: {left}")).await;
    local.hears_nothing().await;
    events.write(&format!("{right}\n")).await;
    local.hears_nothing().await;
    events.write("\n").await;
    assert_eq!(local.recv().await["params"]["text"], "中😀é");
    // No stream was opened again because of `retry`.
    server.stays_quiet().await;
}
