//! Streams of sessions, and the header that names them.

use serde_json::{Value, json};

use crate::local::{Local, call, in_session, note, result};
use crate::server::{Events, Server};

/// Opens a session's stream by calling into it; the call is answered 202.
async fn session(local: &Local, server: &mut Server, id: i64, name: &str) -> Events {
    local.send(call(id, "session/load", in_session(name)));
    let get = server.expect("GET").await;
    assert_eq!((get.header("acp-connection-id"), get.header("acp-session-id")), (Some("c-1"), Some(name)));
    let events = get.events().await;
    let post = server.expect("POST").await;
    assert_eq!((post.call().as_str(), post.header("acp-session-id")), ("session/load", Some(name)));
    post.accepted().await;
    events
}

#[tokio::test]
async fn a_sessions_stream_is_open_before_the_first_message_to_it_and_opened_once() {
    let mut server = Server::start().await;
    let (local, _events) = Local::connected(&mut server).await;
    local.send(call(1, "session/prompt", in_session("s")));
    local.send(call(2, "_anything/else", in_session("s")));
    let get = server.expect("GET").await;
    assert_eq!(get.header("acp-session-id"), Some("s"));
    server.stays_quiet().await;
    let _session = get.events().await;
    for method in ["session/prompt", "_anything/else"] {
        let post = server.expect("POST").await;
        assert_eq!((post.call().as_str(), post.header("acp-session-id")), (method, Some("s")));
        assert_eq!(post.header("acp-connection-id"), Some("c-1"));
        post.accepted().await;
    }
}

#[tokio::test]
async fn the_stream_of_a_new_session_opens_when_its_result_arrives() {
    for method in ["session/new", "session/fork"] {
        let mut server = Server::start().await;
        let (mut local, mut events) = Local::connected(&mut server).await;
        let params = if method == "session/fork" {
            let _source = session(&local, &mut server, 1, "source").await;
            local.send(call(2, method, in_session("source")));
            server.expect("POST").await.accepted().await;
            events.send(result(2, in_session("fresh"))).await;
            assert_eq!(local.recv().await, result(2, in_session("fresh")));
            assert_eq!(server.expect("GET").await.header("acp-session-id"), Some("fresh"));
            continue;
        } else {
            json!({})
        };
        local.send(call(2, method, params));
        server.expect("POST").await.accepted().await;
        events.send(result(2, in_session("fresh"))).await;
        assert_eq!(local.recv().await, result(2, in_session("fresh")));
        local.send(call(3, "session/prompt", in_session("fresh")));
        let get = server.expect("GET").await;
        assert_eq!(get.header("acp-session-id"), Some("fresh"));
        server.stays_quiet().await;
        let mut session = get.events().await;
        server.expect("POST").await.accepted().await;
        session.send(note("session/update", in_session("fresh"))).await;
        assert_eq!(local.recv().await, note("session/update", in_session("fresh")));
    }
}

#[tokio::test]
async fn a_result_of_another_method_opens_nothing() {
    let mut server = Server::start().await;
    let (mut local, mut events) = Local::connected(&mut server).await;
    local.send(call(1, "session/list", json!({})));
    server.expect("POST").await.accepted().await;
    events.send(result(1, in_session("x"))).await;
    assert_eq!(local.recv().await["id"], 1);
    server.stays_quiet().await;
}

#[tokio::test]
async fn a_method_that_needs_its_session_is_refused_here_without_one() {
    let mut server = Server::start().await;
    let (mut local, _events) = Local::connected(&mut server).await;
    for (id, params) in [(1, json!({})), (2, json!({ "sessionId": 5 })), (3, json!([])), (4, in_session("a\nb"))] {
        local.send(call(id, "session/prompt", params.clone()));
        let answer = local.recv().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32602)), "{params}");
    }
    // A notification has nobody to tell.
    local.send(note("session/cancel", json!({})));
    local.send(call(5, "session/list", json!({})));
    let post = server.expect("POST").await;
    assert_eq!((post.call().as_str(), post.header("acp-session-id")), ("session/list", None));
}

/// The header of the next answer that is posted.
async fn answers_with(server: &mut Server, answer: &Value) -> Option<String> {
    let post = server.expect("POST").await;
    assert_eq!(&post.json(), answer);
    assert_eq!(post.header("acp-connection-id"), Some("c-1"));
    let header = post.header("acp-session-id").map(str::to_owned);
    post.accepted().await;
    header
}

#[tokio::test]
async fn answers_carry_the_session_of_their_question() {
    let mut server = Server::start().await;
    let (mut local, mut events) = Local::connected(&mut server).await;
    let mut session = session(&local, &mut server, 1, "s").await;
    let answer = result(0, json!({}));
    for (on_session, params, expected) in [
        (true, in_session("s"), Some("s")),
        // Nothing in the question names it, but its stream does.
        (true, json!({}), Some("s")),
        (false, in_session("s"), Some("s")),
        (false, json!({}), None),
    ] {
        let question = call(0, "_ask", params.clone());
        if on_session {
            session.send(question).await
        } else {
            events.send(question).await
        }
        assert_eq!(local.recv().await["method"], "_ask");
        local.send(answer.clone());
        assert_eq!(answers_with(&mut server, &answer).await.as_deref(), expected, "{on_session} {params}");
    }
}

#[tokio::test]
async fn questions_with_the_same_id_are_answered_in_order() {
    let mut server = Server::start().await;
    let (mut local, mut events) = Local::connected(&mut server).await;
    for session in ["a", "b"] {
        events.send(call(3, "_ask", in_session(session))).await;
        local.recv().await;
    }
    let answer = result(3, json!({}));
    local.send(answer.clone());
    local.send(answer.clone());
    assert_eq!(answers_with(&mut server, &answer).await.as_deref(), Some("a"));
    assert_eq!(answers_with(&mut server, &answer).await.as_deref(), Some("b"));
    // What nobody asked for concerns no session.
    local.send(answer.clone());
    assert_eq!(answers_with(&mut server, &answer).await, None);
}

#[tokio::test]
async fn a_batch_of_one_session_is_posted_whole_with_its_header() {
    let mut server = Server::start().await;
    let (local, _events) = Local::connected(&mut server).await;
    let batch = json!([call(1, "_x", in_session("s")), note("_y", in_session("s"))]);
    local.send(batch.clone());
    let _session = server.expect("GET").await.events().await;
    let post = server.expect("POST").await;
    assert_eq!((post.json(), post.header("acp-session-id")), (batch, Some("s")));
    post.accepted().await;

    // With two sessions it belongs to neither, and both streams are there first.
    let batch = json!([call(2, "_x", in_session("s")), call(3, "_x", in_session("t"))]);
    local.send(batch.clone());
    let get = server.expect("GET").await;
    assert_eq!(get.header("acp-session-id"), Some("t"));
    let _other = get.events().await;
    let post = server.expect("POST").await;
    assert_eq!((post.json(), post.header("acp-session-id")), (batch, None));
}

#[tokio::test]
async fn a_closed_session_leaves_no_stream_behind_and_can_be_opened_again() {
    for method in ["session/close", "session/delete"] {
        let mut server = Server::start().await;
        let (mut local, _events) = Local::connected(&mut server).await;
        let mut stream = session(&local, &mut server, 1, "s").await;
        local.send(call(2, method, in_session("s")));
        server.expect("POST").await.accepted().await;
        stream.send(result(2, json!({}))).await;
        assert_eq!(local.recv().await["id"], 2);
        stream.left().await;

        local.send(call(3, "session/load", in_session("s")));
        // A server that has not noticed yet is asked again.
        server.expect("GET").await.answer(409, &[], "outbound stream already has a subscriber").await;
        let _stream = server.expect("GET").await.events().await;
        assert_eq!(server.expect("POST").await.call(), "session/load");
    }
}

#[tokio::test]
async fn the_end_of_a_closed_sessions_stream_is_no_failure() {
    let mut server = Server::start().await;
    let (mut local, mut events) = Local::connected(&mut server).await;
    let mut stream = session(&local, &mut server, 1, "s").await;
    local.send(call(2, "session/close", in_session("s")));
    server.expect("POST").await.accepted().await;
    events.send(result(2, json!({}))).await;
    assert_eq!(local.recv().await["id"], 2);
    // Its stream may still have something to say.
    stream.send(note("session/update", in_session("s"))).await;
    assert_eq!(local.recv().await["method"], "session/update");
    stream.end().await;
    local.send(call(3, "session/list", json!({})));
    assert_eq!(server.expect("POST").await.call(), "session/list");
}
