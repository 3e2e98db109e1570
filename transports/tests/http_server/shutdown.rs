//! Shutting down: everything drains, and nothing blocks it.

use super::agent::{puppets, serve};
use super::client::{INITIALIZE, Socket, connect, post, say};
use super::sse_client::Events;
use super::ws_client::Ws;
use greenroom_transports::{AcpHttpServer, ServerOptions};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

#[tokio::test]
async fn open_streams_and_sockets_get_an_end_and_block_nothing() {
    let (server, agents) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut connection = Events::connection(address, &id).await;
    let mut session = Events::session(address, &id, "s").await;
    let mut socket = Ws::open(address).await;
    let mut idle = Socket::open(address).await;
    let begun = Instant::now();
    let shutdown = tokio::spawn(server.shutdown());
    assert_eq!(connection.end().await, ["the server shuts down"]);
    assert_eq!(session.end().await, ["the server shuts down"]);
    assert_eq!(socket.close_code().await, Some(1001));
    socket.next().await;
    shutdown.await.expect("no panic");
    assert!(begun.elapsed() < Duration::from_secs(4), "it waited for its deadline");
    assert!(idle.is_closed().await);
    agents.alive(0).await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn what_the_agent_has_said_is_delivered_first() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut connection = Events::connection(address, &id).await;
    for n in 0..50 {
        say(address, &id, &format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"x"}}"#)).await;
    }
    let shutdown = tokio::spawn(server.shutdown());
    for n in 0..50 {
        assert_eq!(connection.message().await["id"], n);
    }
    connection.end().await;
    shutdown.await.expect("no panic");
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_cut_off_at_the_deadline() {
    let (server, agents) =
        serve(ServerOptions::default().with_limits(|limits| {
            (limits.shutdown, limits.linger) = (Duration::from_millis(80), Duration::from_secs(60))
        }))
        .await;
    let address = server.local_addr();
    let id = connect(address).await;
    let _deaf = Events::session(address, &id, "s").await;
    let flood = r#"{"jsonrpc":"2.0","id":1,"method":"flood","params":{"sessionId":"s","count":12,"bytes":1000000}}"#;
    say(address, &id, flood).await;
    let begun = Instant::now();
    server.shutdown().await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    agents.alive(0).await;
}

#[tokio::test]
async fn nothing_new_begins_while_the_server_drains() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    // A socket that was there before, in the middle of a request.
    let mut socket = Socket::open(address).await;
    let request = post(INITIALIZE).bytes();
    socket.send(&request[..request.len() - 1]).await;
    let mut connection = Events::connection(address, &id).await;
    let shutdown = tokio::spawn(server.shutdown());
    connection.end().await;
    socket.send(&request[request.len() - 1..]).await;
    socket.answer().await.is(503, "the server shuts down");
    drop(socket);
    shutdown.await.expect("no panic");
}

#[tokio::test]
async fn dropping_the_handle_ends_everything() {
    let (server, agents) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let _stream = Events::connection(address, &id).await;
    let _socket = Ws::open(address).await;
    agents.alive(2).await;
    drop(server);
    agents.alive(0).await;
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn serve_until_drains_and_returns() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = AcpHttpServer::new(super::agent::real);
    let serving = tokio::spawn(server.serve_until(listener, async { drop(stopped.await) }));
    let mut socket = Ws::open(address).await;
    stop.send(()).expect("it waits");
    assert_eq!(socket.close_code().await, Some(1001));
    drop(socket);
    serving.await.expect("no panic").expect("no error");
}
