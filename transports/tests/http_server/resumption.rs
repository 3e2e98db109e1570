//! Going on after a lost stream, where the server keeps events.

use super::agent::serve;
use super::client::{connect, listen, say};
use super::sse_client::Events;
use greenroom_transports::ServerOptions;
use serde_json::json;
use std::net::SocketAddr;

async fn flood(address: SocketAddr, id: &str, session: &str, count: u64) {
    let params = json!({"sessionId":session,"count":count,"bytes":10});
    say(address, id, &json!({"jsonrpc":"2.0","id":1,"method":"flood","params":params}).to_string()).await;
}

fn keeping(bytes: usize) -> ServerOptions {
    ServerOptions::default().with_limits(|limits| limits.replay = bytes)
}

/// Where a new stream begins: an id without a message.
async fn beginning(events: &mut Events) -> String {
    let event = events.next().await.expect("a beginning");
    assert_eq!((event.data, event.comment), (None, None));
    event.id.expect("an id")
}

/// Opens the stream again, as soon as the server has seen that the old socket is gone.
async fn again(address: SocketAddr, id: &str, session: &str, last: &str) -> Result<Events, super::client::Answer> {
    loop {
        match Events::try_open(address, &listen(id).session(session).header("Last-Event-ID", last)).await {
            Err(answer) if answer.status == 409 => {}
            other => return other,
        }
    }
}

#[tokio::test]
async fn a_lost_stream_goes_on_behind_the_last_event_that_arrived() {
    let (server, _) = serve(keeping(1_000_000)).await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut session = Events::session(address, &id, "s").await;
    beginning(&mut session).await;
    flood(address, &id, "s", 500).await;
    let mut last = String::new();
    for _ in 0..100 {
        last = session.next().await.and_then(|event| event.id).expect("an id");
    }
    // The socket dies with 400 events on the way.
    drop(session);
    let mut session = again(address, &id, "s", &last).await.expect("a stream");
    for n in 100..500 {
        assert_eq!(session.message().await["params"]["n"], n);
    }
}

#[tokio::test]
async fn a_stream_that_is_lost_before_its_first_event_goes_on_as_well() {
    let (server, _) = serve(keeping(1_000_000)).await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut session = Events::session(address, &id, "s").await;
    let first = beginning(&mut session).await;
    // Every event goes into the dying socket, or waits for the next one.
    flood(address, &id, "s", 50).await;
    drop(session);
    let mut session = again(address, &id, "s", &first).await.expect("a stream");
    for n in 0..50 {
        assert_eq!(session.message().await["params"]["n"], n);
    }
    assert_eq!(session.message().await["id"], 1);
    drop(session);
    // In the middle of its life a stream begins behind what it has said.
    let mut session = loop {
        match Events::try_open(address, &listen(&id).session("s")).await {
            Ok(events) => break events,
            Err(answer) => assert_eq!(answer.status, 409),
        }
    };
    let second = beginning(&mut session).await;
    assert_ne!(first, second);
    drop(session);
    let mut session = again(address, &id, "s", &second).await.expect("a stream");
    flood(address, &id, "s", 1).await;
    assert_eq!(session.message().await["params"]["n"], 0);
    assert_eq!(session.message().await["id"], 1);
}

#[tokio::test]
async fn events_that_are_not_kept_any_more_are_refused_by_name() {
    let (server, _) = serve(keeping(2_000)).await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut session = Events::session(address, &id, "s").await;
    beginning(&mut session).await;
    flood(address, &id, "s", 500).await;
    let first = session.next().await.and_then(|event| event.id).expect("an id");
    let mut last = first.clone();
    for _ in 1..500 {
        last = session.next().await.and_then(|event| event.id).expect("an id");
    }
    drop(session);
    let refused = again(address, &id, "s", &first).await.err().expect("no stream");
    refused.is(410, "the events after Last-Event-ID are not kept");
    assert!(again(address, &id, "s", &last).await.is_ok());
}

#[tokio::test]
async fn an_id_of_another_session_or_connection_is_refused() {
    let (server, _) = serve(keeping(1_000_000)).await;
    let address = server.local_addr();
    let (one, other) = (connect(address).await, connect(address).await);
    let mut a = Events::session(address, &one, "a").await;
    beginning(&mut a).await;
    flood(address, &one, "a", 3).await;
    let foreign = a.next().await.and_then(|event| event.id).expect("an id");
    flood(address, &one, "b", 3).await;
    flood(address, &other, "a", 3).await;
    for (id, session) in [(&one, "b"), (&other, "a")] {
        // The agent has named the session by now, or the stream would be new; both refuse.
        let refused = again(address, id, session, &foreign).await.err().expect("no stream");
        refused.is(410, "the events after Last-Event-ID are not kept");
    }
}
