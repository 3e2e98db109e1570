//! Which stream a message of the agent goes to.

use super::agent::puppets;
use super::client::{connect, say};
use super::sse_client::Events;
use serde_json::{Value, json};

struct Streams {
    connection: Events,
    session: Events,
}

/// Lets the agent send these frames, with the streams of the connection and of session `s` open.
async fn emitted(frames: &[Value]) -> Streams {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let connection = Events::connection(address, &id).await;
    let session = Events::session(address, &id, "s").await;
    let emit = json!({"jsonrpc":"2.0","id":"done","method":"emit","params":{"frames":frames}});
    say(address, &id, &emit.to_string()).await;
    // The server lives as long as the test.
    std::mem::forget(server);
    Streams { connection, session }
}

#[tokio::test]
async fn calls_that_name_a_session_go_to_its_stream() {
    let request = json!({"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s"}});
    let update = json!({"jsonrpc":"2.0","method":"session/update","params":{"x":{},"sessionId":"s"}});
    let mut streams = emitted(&[request.clone(), update.clone()]).await;
    assert_eq!(streams.session.message().await, request);
    assert_eq!(streams.session.message().await, update);
    assert_eq!(streams.connection.message().await["id"], "done");
}

#[tokio::test]
async fn other_calls_go_to_the_connection() {
    let plain = json!({"jsonrpc":"2.0","id":1,"method":"x","params":{}});
    let number = json!({"jsonrpc":"2.0","method":"x","params":{"sessionId":1}});
    let dollar = json!({"jsonrpc":"2.0","method":"$/cancel_request","params":{"sessionId":"s","requestId":1}});
    let wrapped =
        json!({"jsonrpc":"2.0","method":"_proxy/successor","params":{"sessionId":"s","method":"$/cancel_request"}});
    let frames = [plain, number, dollar, wrapped];
    let mut streams = emitted(&frames).await;
    for frame in frames {
        assert_eq!(streams.connection.message().await, frame);
    }
}

#[tokio::test]
async fn answers_that_nobody_asked_for_go_to_the_connection() {
    let unknown = json!({"jsonrpc":"2.0","id":77,"result":{"sessionId":"s"}});
    let null = json!({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}});
    let mut streams = emitted(&[unknown.clone(), null.clone()]).await;
    assert_eq!(streams.connection.message().await, unknown);
    assert_eq!(streams.connection.message().await, null);
}

#[tokio::test]
async fn malformed_frames_go_to_the_connection_as_they_are() {
    let odd = json!({"jsonrpc":"2.0","params":{"sessionId":"s"}});
    let mut streams = emitted(std::slice::from_ref(&odd)).await;
    assert_eq!(streams.connection.message().await, odd);
}

#[tokio::test]
async fn answers_go_where_their_request_belongs() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut connection = Events::connection(address, &id).await;
    let mut session = Events::session(address, &id, "s").await;
    let call = |n: u64, method: &str, params: Value| {
        json!({"jsonrpc":"2.0","id":n,"method":method,"params":params}).to_string()
    };
    for body in [
        call(1, "session/new", json!({})),
        call(2, "session/fork", json!({"sessionId":"s"})),
        call(3, "session/load", json!({"sessionId":"s"})),
        call(4, "session/prompt", json!({"sessionId":"unlistened"})),
        // The same id twice: the answers come in order.
        call(5, "x", json!({"sessionId":"s"})),
        call(5, "x", json!({})),
    ] {
        say(address, &id, &body).await;
    }
    for n in [1, 4, 5] {
        assert_eq!(connection.message().await["id"], n);
    }
    for n in [2, 3, 5] {
        assert_eq!(session.message().await["id"], n);
    }
}

#[tokio::test]
async fn a_slow_session_does_not_hold_up_the_others() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let slow = Events::session(address, &id, "slow").await;
    let mut fast = Events::session(address, &id, "fast").await;
    let flood =
        json!({"jsonrpc":"2.0","id":1,"method":"flood","params":{"sessionId":"slow","count":12,"bytes":1_000_000}});
    say(address, &id, &flood.to_string()).await;
    say(address, &id, r#"{"jsonrpc":"2.0","id":2,"method":"x","params":{"sessionId":"fast"}}"#).await;
    assert_eq!(fast.message().await["id"], 2);
    drop(slow);
}
