//! What happens at each limit: a clear answer, and never a silent gap.

use super::agent::serve;
use super::client::{INITIALIZE, Socket, connect, listen, post, say};
use super::sse_client::Events;
use super::ws_client::{Ws, upgrade};
use greenroom_transports::{ServerLimits, ServerOptions};
use serde_json::json;
use std::time::Duration;

fn limited(change: impl FnOnce(&mut ServerLimits)) -> ServerOptions {
    ServerOptions::default().with_limits(change)
}

#[tokio::test]
async fn connections_are_limited() {
    let (server, agents) = serve(limited(|limits| limits.connections = 2)).await;
    let address = server.local_addr();
    let first = connect(address).await;
    let _socket = Ws::open(address).await;
    post(INITIALIZE).send(address).await.is(503, "too many connections");
    Ws::try_open(address, &upgrade()).await.err().expect("refused").is(503, "too many connections");
    assert_eq!(agents.made(), 2);
    super::client::request("DELETE").connection(&first).send(address).await.is(202, "");
    connect(address).await;
}

#[tokio::test]
async fn sessions_of_a_connection_are_limited() {
    let (server, _) = serve(limited(|limits| limits.sessions = 2)).await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut connection = Events::connection(address, &id).await;
    let new = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}"#;
    for _ in 0..2 {
        say(address, &id, new).await;
        connection.message().await;
    }
    post(new).connection(&id).send(address).await.is(429, "too many sessions");
    listen(&id).session("other").send(address).await.is(429, "too many sessions");
    // What the agent says to yet another session is not lost.
    let update = json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"third"}});
    let emit = json!({"jsonrpc":"2.0","id":3,"method":"emit","params":{"frames":[update]}});
    say(address, &id, &emit.to_string()).await;
    assert_eq!(connection.message().await, update);
}

#[tokio::test]
async fn open_requests_of_a_connection_are_limited() {
    let (server, _) = serve(limited(|limits| limits.open_requests = 2)).await;
    let address = server.local_addr();
    let id = connect(address).await;
    let call = |n: u64, method: &str| format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"{method}","params":{{}}}}"#);
    let mut connection = Events::connection(address, &id).await;
    say(address, &id, &call(1, "silent")).await;
    say(address, &id, &call(2, "x")).await;
    assert_eq!(connection.message().await["id"], 2);
    say(address, &id, &call(3, "silent")).await;
    post(call(4, "x")).connection(&id).send(address).await.is(429, "too many requests are open");
    // Answers and notifications need no place.
    say(address, &id, r#"{"jsonrpc":"2.0","id":9,"result":1}"#).await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let (server, _) = serve(limited(|limits| limits.body_deadline = Duration::from_millis(30))).await;
    let mut socket = Socket::open(server.local_addr()).await;
    let whole = post(INITIALIZE).bytes();
    socket.send(&whole[..whole.len() - 1]).await;
    socket.answer().await.is(408, "POST body took too long");
}

#[tokio::test]
async fn a_client_that_does_not_read_its_stream_ends_the_connection_by_name() {
    let (server, agents) = serve(limited(|limits| limits.stream_cap = 1_000_000)).await;
    let address = server.local_addr();
    let id = connect(address).await;
    let flood = |bytes: u64| {
        json!({"jsonrpc":"2.0","id":1,"method":"flood","params":{"sessionId":"s","count":30,"bytes":bytes}}).to_string()
    };
    // Below the limit everything waits.
    say(address, &id, &flood(10_000)).await;
    let mut session = Events::session(address, &id, "s").await;
    for n in 0..30 {
        assert_eq!(session.message().await["params"]["n"], n);
    }
    assert_eq!(session.message().await["id"], 1);
    // Above it the connection ends; what was sent comes complete and in order, then the reason.
    say(address, &id, &flood(2_000_000)).await;
    agents.alive(0).await;
    assert_eq!(session.end().await, ["outbound stream overflow: the client does not read"]);
    post("{}").connection(&id).send(address).await.is(404, "");
}

#[tokio::test]
async fn a_reader_a_little_slower_than_a_burst_gets_everything() {
    let (server, _) = serve(limited(|limits| limits.stream_credit = 1)).await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut session = Events::session(address, &id, "s").await;
    let flood = json!({"jsonrpc":"2.0","id":1,"method":"flood","params":{"sessionId":"s","count":3000,"bytes":100}});
    say(address, &id, &flood.to_string()).await;
    for n in 0..3000 {
        assert_eq!(session.message().await["params"]["n"], n);
        if n % 10 == 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn an_idle_connection_without_streams_expires() {
    let (server, agents) = serve(limited(|limits| limits.idle = Duration::from_millis(40))).await;
    let address = server.local_addr();
    let id = connect(address).await;
    agents.alive(0).await;
    post("{}").connection(&id).send(address).await.is(404, "");
}

#[tokio::test]
async fn a_connection_with_a_stream_does_not_expire() {
    let (server, agents) = serve(limited(|limits| limits.idle = Duration::from_millis(20))).await;
    let address = server.local_addr();
    let id = connect(address).await;
    let listening = Events::connection(address, &id).await;
    // Another one, opened later, expires first.
    let other = connect(address).await;
    agents.alive(1).await;
    post("{}").connection(&other).send(address).await.is(404, "");
    say(address, &id, "{}").await;
    drop(listening);
    agents.alive(0).await;
}
