//! GET: which stream a client gets, and which not.

use super::agent::{puppets, serve};
use super::client::{connect, listen, request, say};
use super::sse_client::Events;
use super::ws_client::Ws;
use greenroom_transports::ServerOptions;
use serde_json::json;

async fn refused(
    server: &greenroom_transports::RunningServer,
    request: super::client::Request,
    status: u16,
    text: &str,
) {
    match Events::try_open(server.local_addr(), &request).await {
        Ok(_) => panic!("a stream instead of {status} {text}"),
        Err(answer) => answer.is(status, text),
    }
}

#[tokio::test]
async fn only_clients_that_accept_event_streams_get_one() {
    let (server, _) = puppets().await;
    let id = connect(server.local_addr()).await;
    let text = "client must accept text/event-stream";
    refused(&server, request("GET").connection(&id), 406, text).await;
    refused(&server, request("GET").connection(&id).header("Accept", "*/*"), 406, text).await;
    // Checked before the connection.
    refused(&server, request("GET"), 406, text).await;
    let both = request("GET").connection(&id).header("Accept", "application/json, text/event-stream");
    Events::open(server.local_addr(), &both).await;
}

#[tokio::test]
async fn a_stream_needs_a_known_connection() {
    let (server, _) = puppets().await;
    let nameless = request("GET").header("Accept", "text/event-stream");
    refused(&server, nameless, 400, "Acp-Connection-Id header required").await;
    refused(&server, listen("nobody"), 404, "").await;
}

#[tokio::test]
async fn a_stream_names_its_connection_and_session() {
    let (server, _) = puppets().await;
    let id = connect(server.local_addr()).await;
    let events = Events::connection(server.local_addr(), &id).await;
    assert_eq!(events.headers["content-type"], "text/event-stream");
    assert_eq!(events.headers["acp-connection-id"], id);
    assert!(!events.headers.contains_key("acp-session-id"));
    let events = Events::session(server.local_addr(), &id, "s").await;
    assert_eq!(events.headers["acp-session-id"], "s");
}

#[tokio::test]
async fn a_stream_has_one_subscriber() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let connection = Events::connection(address, &id).await;
    let session = Events::session(address, &id, "s").await;
    let text = "outbound stream already has a subscriber";
    refused(&server, listen(&id), 409, text).await;
    refused(&server, listen(&id).session("s"), 409, text).await;
    drop((connection, session));
    // Free again as soon as the server has seen that the client left.
    while Events::try_open(address, &listen(&id)).await.is_err() {}
    while Events::try_open(address, &listen(&id).session("s")).await.is_err() {}
}

#[tokio::test]
async fn sixteen_streams_of_unknown_sessions_are_open_at_most() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut strangers = Vec::new();
    for n in 0..16 {
        strangers.push(Events::session(address, &id, &format!("x{n}")).await);
    }
    refused(&server, listen(&id).session("x16"), 404, "unknown Acp-Session-Id").await;
    // A POST confirms nothing, and neither does an error.
    let load = json!({"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"x16","fail":true}});
    say(address, &id, &load.to_string()).await;
    let mut connection = Events::connection(address, &id).await;
    assert_eq!(connection.message().await["id"], 1, "its session has no stream");
    refused(&server, listen(&id).session("x16"), 404, "unknown Acp-Session-Id").await;
    // One that leaves makes room.
    drop(strangers.pop());
    while Events::try_open(address, &listen(&id).session("x16")).await.is_err() {}
}

#[tokio::test]
async fn a_session_that_the_agent_names_is_known() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut connection = Events::connection(address, &id).await;
    let mut strangers = Vec::new();
    for n in 0..16 {
        strangers.push(Events::session(address, &id, &format!("x{n}")).await);
    }
    // (a) By the result of session/new.
    say(address, &id, r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}"#).await;
    assert_eq!(connection.message().await["result"]["sessionId"], "s1");
    Events::session(address, &id, "s1").await;
    // (b) By a result of a request that belongs to it.
    say(address, &id, r#"{"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":"old"}}"#).await;
    assert_eq!(connection.message().await["id"], 2);
    Events::session(address, &id, "old").await;
    // (c) By a call that carries it.
    let update = json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"named"}});
    let emit = json!({"jsonrpc":"2.0","id":3,"method":"emit","params":{"frames":[update]}});
    say(address, &id, &emit.to_string()).await;
    assert_eq!(connection.message().await["id"], 3);
    assert_eq!(Events::session(address, &id, "named").await.message().await, update);
}

#[tokio::test]
async fn a_closed_session_is_unknown_again() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut connection = Events::connection(address, &id).await;
    let mut strangers = Vec::new();
    for n in 0..15 {
        strangers.push(Events::session(address, &id, &format!("x{n}")).await);
    }
    say(address, &id, r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}"#).await;
    connection.message().await;
    let mut session = Events::session(address, &id, "s1").await;
    strangers.push(Events::session(address, &id, "x15").await);
    // The answer goes to its stream, because somebody reads there; then the stream ends.
    say(address, &id, r#"{"jsonrpc":"2.0","id":2,"method":"session/close","params":{"sessionId":"s1"}}"#).await;
    assert_eq!(session.message().await["id"], 2);
    session.end().await;
    refused(&server, listen(&id).session("s1"), 404, "unknown Acp-Session-Id").await;
    // Nobody reads: the answer goes to the connection.
    say(address, &id, r#"{"jsonrpc":"2.0","id":3,"method":"session/new","params":{}}"#).await;
    assert_eq!(connection.message().await["result"]["sessionId"], "s2");
    say(address, &id, r#"{"jsonrpc":"2.0","id":4,"method":"session/delete","params":{"sessionId":"s2"}}"#).await;
    assert_eq!(connection.message().await["id"], 4);
    refused(&server, listen(&id).session("s2"), 404, "unknown Acp-Session-Id").await;
}

#[tokio::test]
async fn a_websocket_connection_has_no_other_streams() {
    let (server, _) = puppets().await;
    let socket = Ws::open(server.local_addr()).await;
    refused(&server, listen(&socket.id), 409, "outbound stream already has a subscriber").await;
    refused(&server, listen(&socket.id).session("s"), 404, "unknown Acp-Session-Id").await;
}

#[tokio::test]
async fn messages_wait_for_the_next_subscriber() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let call = |n: u64| format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"x","params":{{}}}}"#);
    say(address, &id, &call(1)).await;
    let mut events = Events::connection(address, &id).await;
    assert_eq!(events.message().await["id"], 1);
    drop(events);
    // Wait until the server has seen it, so that nothing is sent to a dead socket.
    let mut events = loop {
        if let Ok(events) = Events::try_open(address, &listen(&id)).await {
            break events;
        }
    };
    say(address, &id, &call(2)).await;
    assert_eq!(events.message().await["id"], 2);
}

#[tokio::test]
async fn the_end_of_the_agent_comes_behind_what_it_said() {
    let (server, agents) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let update = |n: u64| json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","n":n}});
    let frames: Vec<_> = (0..100).map(update).collect();
    let emit = json!({"jsonrpc":"2.0","id":1,"method":"emit","params":{"frames":frames}});
    say(address, &id, &emit.to_string()).await;
    say(address, &id, r#"{"jsonrpc":"2.0","id":2,"method":"quit"}"#).await;
    agents.alive(0).await;
    // A stream that is opened after the end still gets everything.
    let mut connection = Events::connection(address, &id).await;
    let mut session = Events::session(address, &id, "s").await;
    assert_eq!(connection.message().await["id"], 1);
    for n in 0..100 {
        assert_eq!(session.message().await["params"]["n"], n);
    }
    assert_eq!(session.end().await, ["the agent ended"]);
    assert_eq!(connection.end().await, ["the agent ended"]);
    while server.connections() > 0 {
        tokio::task::yield_now().await;
    }
    refused(&server, listen(&id), 404, "").await;
}

#[tokio::test]
async fn a_silent_stream_shows_that_it_is_alive() {
    let options =
        ServerOptions::default().with_limits(|limits| limits.keep_alive = std::time::Duration::from_millis(5));
    let (server, _) = serve(options).await;
    let id = connect(server.local_addr()).await;
    let mut events = Events::connection(server.local_addr(), &id).await;
    for _ in 0..3 {
        let event = events.next().await.expect("a comment");
        assert_eq!((event.data, event.id, event.comment.as_deref()), (None, None, Some("")));
    }
}

#[tokio::test]
async fn events_have_no_ids_and_last_event_id_is_ignored() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut events = Events::open(address, &listen(&id).header("Last-Event-ID", "anything")).await;
    say(address, &id, r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#).await;
    let event = events.next().await.expect("a message");
    assert_eq!(event.id, None);
    assert!(event.data.expect("data").contains("\"id\":1"));
}
