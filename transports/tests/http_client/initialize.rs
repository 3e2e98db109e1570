//! The first message and its answer.

use greenroom_protocol::ErrorCode;
use greenroom_transports::HttpClient;
use serde_json::json;

use crate::local::{Local, call, initialize, note, reason, result};
use crate::server::Server;

fn client(server: &Server) -> HttpClient {
    HttpClient::builder(server.url()).configure_http(|http| http.no_proxy()).build().unwrap()
}

#[tokio::test]
async fn initialize_is_posted_alone_and_then_the_connection_stream_opens() {
    let mut server = Server::start().await;
    let mut local = Local::start(client(&server));
    local.send(initialize(7));
    local.send(call(8, "session/new", json!({})));
    let post = server.expect("POST").await;
    assert_eq!(post.target, "/acp");
    assert_eq!(post.header("content-type"), Some("application/json"));
    assert_eq!(post.header("accept"), Some("application/json"));
    assert_eq!((post.header("acp-connection-id"), post.header("acp-session-id")), (None, None));
    assert_eq!(post.json(), initialize(7));
    server.stays_quiet().await;
    post.initialized().await;
    assert_eq!(local.recv().await, result(7, json!({ "protocolVersion": 1 })));

    let get = server.expect("GET").await;
    assert_eq!(get.target, "/acp");
    assert_eq!(get.header("acp-connection-id"), Some("c-1"));
    assert_eq!(get.header("acp-session-id"), None);
    // Its headers are not there yet.
    server.stays_quiet().await;
    let _events = get.events().await;
    let post = server.expect("POST").await;
    assert_eq!((post.call().as_str(), post.header("acp-connection-id")), ("session/new", Some("c-1")));
    assert_eq!(post.header("accept"), Some("application/json"));
    assert_eq!(post.header("acp-session-id"), None);
}

#[tokio::test]
async fn another_first_message_is_refused_before_anything_is_sent() {
    let batch = json!([initialize(1)]);
    for first in [call(1, "session/new", json!({})), batch, note("hello", json!({})), result(1, json!({}))] {
        let mut server = Server::start().await;
        let local = Local::start(client(&server));
        local.send(first.clone());
        let error = local.outcome().await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidRequest, "{first}");
        assert_eq!(reason(&error), "ACP HTTP transport: first message must be `initialize`");
        server.stays_quiet().await;
    }
}

#[tokio::test]
async fn a_refused_initialize_names_the_status() {
    let mut server = Server::start().await;
    let local = Local::start(client(&server));
    local.send(initialize(0));
    server.expect("POST").await.answer(503, &[], "the body stays private").await;
    let error = local.outcome().await.unwrap_err();
    assert_eq!(error.data.as_ref().unwrap()["status"], 503);
    assert!(reason(&error).contains("posting `initialize` failed") && reason(&error).contains("503"), "{error}");
    assert!(!error.to_string().contains("private"));
}

#[tokio::test]
async fn a_success_without_connection_id_is_an_error() {
    let mut server = Server::start().await;
    let local = Local::start(client(&server));
    local.send(initialize(0));
    server.expect("POST").await.answer(200, &[], &result(0, json!({})).to_string()).await;
    assert!(local.reason().await.contains("Acp-Connection-Id"));
}

#[tokio::test]
async fn only_an_individual_response_answers_initialize() {
    let bodies = [
        json!([result(0, json!({}))]).to_string(),
        "<html>".to_owned(),
        String::new(),
        result(1, json!({})).to_string(),
        call(0, "initialize", json!({})).to_string(),
    ];
    for body in bodies {
        let mut server = Server::start().await;
        let local = Local::start(client(&server));
        local.send(initialize(0));
        server.expect("POST").await.answer(200, &[("acp-connection-id", "c")], &body).await;
        let said = local.reason().await;
        assert!(said.contains("no response to it"), "{body}: {said}");
    }
}

#[tokio::test]
async fn an_error_is_delivered_and_initialize_may_be_tried_again() {
    let mut server = Server::start().await;
    let mut local = Local::start(client(&server));
    local.send(initialize(0));
    let refusal = json!({ "jsonrpc": "2.0", "id": 0, "error": { "code": -32000, "message": "log in" } });
    server.expect("POST").await.answer(200, &[], &refusal.to_string()).await;
    assert_eq!(local.recv().await, refusal);
    server.stays_quiet().await;

    local.send(initialize(1));
    let post = server.expect("POST").await;
    assert_eq!(post.header("acp-connection-id"), None);
    post.initialized().await;
    assert_eq!(local.recv().await["id"], 1);
    let _events = server.expect("GET").await.events().await;
}

#[tokio::test]
async fn after_an_error_only_initialize_may_follow() {
    let mut server = Server::start().await;
    let mut local = Local::start(client(&server));
    local.send(initialize(0));
    let refusal = json!({ "jsonrpc": "2.0", "id": 0, "error": { "code": -32000, "message": "log in" } });
    server.expect("POST").await.answer(200, &[], &refusal.to_string()).await;
    local.recv().await;
    local.send(call(1, "session/new", json!({})));
    assert!(local.reason().await.contains("first message must be `initialize`"));
}

#[tokio::test]
async fn a_second_initialize_is_refused_here() {
    let mut server = Server::start().await;
    let (mut local, _events) = Local::connected(&mut server).await;
    local.send(initialize(1));
    let answer = local.recv().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32600)));
    // And the connection goes on.
    local.send(call(2, "session/list", json!({})));
    assert_eq!(server.expect("POST").await.call(), "session/list");
}

#[tokio::test]
async fn a_connection_stream_that_does_not_open_ends_the_connection() {
    for (status, kind, named) in [(200, "text/html", "no text/event-stream"), (404, "text/event-stream", "404")] {
        let mut server = Server::start().await;
        let local = Local::start(client(&server));
        local.send(initialize(0));
        server.expect("POST").await.initialized().await;
        server.expect("GET").await.answer(status, &[("content-type", kind)], "").await;
        let said = local.reason().await;
        assert!(said.contains("opening the connection's event stream") && said.contains(named), "{said}");
        // The server is told all the same.
        server.expect("DELETE").await.accepted().await;
    }
}

#[tokio::test]
async fn nobody_at_the_address_is_said_in_words() {
    let server = Server::start().await;
    let client = client(&server);
    drop(server);
    let local = Local::start(client);
    local.send(initialize(0));
    let said = local.reason().await;
    assert!(said.contains("connection refused; is the server running"), "{said}");
}

#[tokio::test]
async fn clones_have_connections_of_their_own() {
    let mut server = Server::start().await;
    let client = client(&server);
    let (first, _one) = Local::connect(client.clone(), &mut server).await;
    let (_second, _two) = Local::connect(client, &mut server).await;
    first.abandon().await;
    assert_eq!(server.expect("DELETE").await.header("acp-connection-id"), Some("c-1"));
}
