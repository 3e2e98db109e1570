//! Cancelling requests: what belongs to the connection, and when.

use futures_util::{SinkExt as _, StreamExt as _};
use greenroom_transports::HttpClient;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::local::{Local, call, in_session, initialize, note};
use crate::server::Server;

#[tokio::test]
async fn statement_35_cancellation_carries_no_session_and_uses_the_connection() {
    let mut server = Server::start().await;
    let (mut local, mut events) = Local::connected(&mut server).await;
    local.send(call(1, "session/prompt", in_session("s")));
    let _session = server.expect("GET").await.events().await;
    server.expect("POST").await.accepted().await;

    // Even if it names a session, no header does, and no stream is opened for it.
    let inner = json!({ "method": "$/cancel_request", "params": { "requestId": 1, "sessionId": "other" } });
    for cancel in [
        note("$/cancel_request", json!({ "requestId": 1 })),
        note("$/cancel_request", json!({ "requestId": 1, "sessionId": "other" })),
        note("_proxy/successor", inner.clone()),
        note("proxy/successor", inner),
    ] {
        local.send(cancel.clone());
        let post = server.expect("POST").await;
        assert_eq!((post.json(), post.header("acp-session-id")), (cancel, None));
        assert_eq!(post.header("acp-connection-id"), Some("c-1"));
        post.accepted().await;
    }

    // The agent's own come on the connection's stream.
    let cancel = note("$/cancel_request", json!({ "requestId": 4 }));
    events.send(cancel.clone()).await;
    assert_eq!(local.recv().await, cancel);
}

#[tokio::test]
async fn statement_36_an_initialize_under_way_cannot_be_cancelled_over_sse() {
    let mut server = Server::start().await;
    let client = HttpClient::builder(server.url()).configure_http(|http| http.no_proxy()).build().unwrap();
    let mut local = Local::start(client);
    local.send(initialize(5));
    let post = server.expect("POST").await;
    local.send(note("$/cancel_request", json!({ "requestId": 5 })));
    // Of a request that is not posted yet, in contrast, it is kept.
    local.send(call(6, "session/new", json!({})));
    local.send(note("$/cancel_request", json!({ "requestId": 6 })));
    server.stays_quiet().await;
    post.initialized().await;
    local.recv().await;
    let _events = server.expect("GET").await.events().await;
    let post = server.expect("POST").await;
    assert_eq!(post.call(), "session/new");
    post.accepted().await;
    assert_eq!(server.expect("POST").await.json()["params"]["requestId"], 6);
}

#[tokio::test]
async fn statement_36_an_initialize_under_way_can_be_cancelled_over_web_socket() {
    let mut server = Server::start().await;
    let client = HttpClient::builder(server.ws_url()).configure_http(|http| http.no_proxy()).build().unwrap();
    let mut local = Local::start(client);
    local.send(initialize(5));
    let mut socket = server.expect("GET").await.upgraded().await;
    let heard = socket.next().await.unwrap().unwrap();
    assert_eq!(heard.into_text().unwrap().as_str(), initialize(5).to_string());
    let cancel = note("$/cancel_request", json!({ "requestId": 5 }));
    local.send(cancel.clone());
    let heard = socket.next().await.unwrap().unwrap();
    assert_eq!(heard.into_text().unwrap().as_str(), cancel.to_string());
    let refusal = json!({ "jsonrpc": "2.0", "id": 5, "error": { "code": -32800, "message": "cancelled" } });
    socket.send(Message::text(refusal.to_string())).await.unwrap();
    assert_eq!(local.recv().await, refusal);
}

#[tokio::test]
async fn a_late_cancellation_of_a_failed_initialize_harms_nothing() {
    let mut server = Server::start().await;
    let client = HttpClient::builder(server.url()).configure_http(|http| http.no_proxy()).build().unwrap();
    let mut local = Local::start(client);
    local.send(initialize(5));
    let post = server.expect("POST").await;
    local.send(note("$/cancel_request", json!({ "requestId": 5 })));
    let refusal = json!({ "jsonrpc": "2.0", "id": 5, "error": { "code": -32000, "message": "no" } });
    post.answer(200, &[], &refusal.to_string()).await;
    local.recv().await;
    local.send(initialize(6));
    assert_eq!(server.expect("POST").await.json()["id"], 6);
}
