//! Clients that read slowly, or not at all: everything comes in order, or the end has a name. Never
//! a silent gap.

use super::agent::serve;
use super::client::{connect, post, say};
use super::sse_client::Events;
use super::ws_client::Ws;
use greenroom_transports::ServerOptions;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio_tungstenite::tungstenite::Message;

/// What the server says at the cap, over both shapes.
const OVERFLOW: &str = "outbound stream overflow: the client does not read";

fn flood(count: u64, bytes: u64) -> String {
    json!({"jsonrpc":"2.0","id":1,"method":"flood","params":{"sessionId":"s","count":count,"bytes":bytes}}).to_string()
}

fn capped(credit: usize, cap: usize) -> ServerOptions {
    ServerOptions::default().with_limits(|limits| (limits.stream_credit, limits.stream_cap) = (credit, cap))
}

/// Updates of one burst, together more than sockets buffer.
const BURST: u64 = 3_000;
const UPDATE: u64 = 2_000;

/// How long the reader rests after each update.
const REST: Duration = Duration::from_millis(1);

async fn over_sse(address: SocketAddr) {
    let id = connect(address).await;
    let mut session = Events::session(address, &id, "s").await;
    say(address, &id, &flood(BURST, UPDATE)).await;
    for n in 0..BURST {
        assert_eq!(session.message().await["params"]["n"], n);
        tokio::time::sleep(REST).await;
    }
    assert_eq!(session.message().await["id"], 1);
}

async fn over_websocket(address: SocketAddr) {
    let mut socket = Ws::open(address).await;
    socket.send(flood(BURST, UPDATE)).await;
    for n in 0..BURST {
        assert_eq!(socket.message().await["params"]["n"], n);
        tokio::time::sleep(REST).await;
    }
    assert_eq!(socket.message().await["id"], 1);
}

#[tokio::test]
async fn readers_a_little_slower_than_a_burst_get_everything_in_order() {
    let (usual, _) = serve(ServerOptions::default()).await;
    // A stream that slows its producer from the first byte on. A WebSocket always does.
    let (tight, _) = serve(capped(1, 64 << 20)).await;
    let (usual, tight) = (usual.local_addr(), tight.local_addr());
    tokio::join!(over_sse(usual), over_sse(tight), over_websocket(usual));
}

/// More than the sockets and [`CAP`] hold together.
const FLOOD: (u64, u64) = (24, 1_000_000);

/// Bytes that may wait for a client.
const CAP: usize = 4_000_000;

/// Reads a WebSocket to its end: the numbers of the updates, then code and reason of the close.
async fn rest(socket: &mut Ws) -> (Vec<u64>, Option<(u16, String)>) {
    let mut numbers = Vec::new();
    loop {
        match socket.next().await {
            Some(Message::Text(text)) => {
                let value: Value = serde_json::from_str(&text).expect("json");
                numbers.push(value["params"]["n"].as_u64().expect("an update"));
            }
            Some(Message::Close(frame)) => {
                let frame = frame.expect("a close with a code");
                assert!(socket.next().await.is_none(), "nothing comes after the close");
                return (numbers, Some((frame.code.into(), frame.reason.to_string())));
            }
            Some(other) => panic!("unexpected: {other:?}"),
            None => return (numbers, None),
        }
    }
}

#[tokio::test]
async fn a_websocket_that_is_not_read_is_closed_with_code_1013_behind_what_had_room() {
    let (server, agents) = serve(capped(1, CAP)).await;
    let mut socket = Ws::open(server.local_addr()).await;
    socket.send(flood(FLOOD.0, FLOOD.1)).await;
    // It ends although nobody reads.
    agents.alive(0).await;
    post("{}").connection(&socket.id).send(server.local_addr()).await.is(404, "");
    // A client that wakes up in time gets all that had room, and then the reason.
    let (numbers, close) = rest(&mut socket).await;
    assert_eq!(close, Some((1013, OVERFLOW.to_owned())));
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    assert!(numbers.len() as u64 * FLOOD.1 >= CAP as u64 && (numbers.len() as u64) < FLOOD.0, "{numbers:?}");
    while server.connections() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_websocket_that_is_never_read_is_let_go_after_a_while() {
    let options = capped(1, CAP).with_limits(|limits| limits.linger = Duration::from_millis(50));
    let (server, agents) = serve(options).await;
    let before = server.actors();
    let mut socket = Ws::open(server.local_addr()).await;
    socket.send(flood(FLOOD.0, FLOOD.1)).await;
    agents.alive(0).await;
    while server.actors() > before {
        tokio::task::yield_now().await;
    }
    // Whoever reads it only now finds no gap either: the end without a close is an error to every
    // client.
    let (numbers, close) = rest(&mut socket).await;
    assert_eq!(close, None);
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn with_room_for_one_byte_the_end_still_has_its_name() {
    let (server, _) = serve(capped(1, 1)).await;
    let address = server.local_addr();
    let mut socket = Ws::open(address).await;
    socket.send(flood(10, 100)).await;
    // The message that is above the cap is the last one.
    assert_eq!(rest(&mut socket).await, (vec![0], Some((1013, OVERFLOW.to_owned()))));
    let id = connect(address).await;
    let mut session = Events::session(address, &id, "s").await;
    say(address, &id, &flood(10, 100)).await;
    assert_eq!(session.end().await, [OVERFLOW]);
}
