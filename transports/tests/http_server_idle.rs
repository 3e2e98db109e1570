//! What many connections that do nothing cost, and what is left of them: nothing.
//!
//! One test in a program of its own, because it measures the process.

#![cfg(target_os = "linux")]

use greenroom_actors::{Agent, Client, ConnectTo, Responder, UntypedMessage, on_receive_request};
use greenroom_transports::{AcpHttpServer, ServerOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const CONNECTIONS: usize = 2_000;

/// The goal of issue 6, in bytes a connection. It includes the agent's own tree and the client's
/// end of the socket.
const MOST: usize = 60 * 1024;

fn agent() -> impl ConnectTo<Client> {
    Agent.builder().on_receive_request(
        async |_request: UntypedMessage, responder: Responder<Value>, _cx| {
            responder.respond(json!({ "protocolVersion": 1 }))
        },
        on_receive_request!(),
    )
}

/// A WebSocket whose agent has answered `initialize`.
async fn connect(address: std::net::SocketAddr) -> TcpStream {
    let mut socket = TcpStream::connect(address).await.expect("the server listens");
    let call = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;
    let mut request = b"GET /acp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        .to_vec();
    request.extend([0x81, 0x80 | call.len() as u8, 0, 0, 0, 0]);
    request.extend(call);
    socket.write_all(&request).await.expect("the server reads");
    let mut answer = Vec::new();
    while !answer.ends_with(br#""result":{"protocolVersion":1}}"#) {
        assert_ne!(socket.read_buf(&mut answer).await.expect("the server answers"), 0);
    }
    socket
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().expect("a number") * 1024
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("descriptors").count()
}

#[tokio::test]
async fn two_thousand_idle_websockets_are_cheap_and_leave_nothing() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("more descriptors");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let server = AcpHttpServer::new(agent).with_options(ServerOptions::default());
    let server = server.start(listener).await.expect("a server");
    let address = server.local_addr();
    // What is paid once is paid before.
    drop(connect(address).await);
    while server.connections() > 0 {
        tokio::task::yield_now().await;
    }
    let (actors, files, before) = (server.actors(), descriptors(), resident());

    let mut sockets = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        sockets.push(connect(address).await);
    }
    assert_eq!(server.connections(), CONNECTIONS);
    let each = resident().saturating_sub(before) / CONNECTIONS;
    eprintln!("{each} bytes and {} actors beside the agent's a connection", (server.actors() - actors) / CONNECTIONS);
    assert!(each <= MOST, "{each} bytes a connection");

    drop(sockets);
    // The server's actors end behind the agents, whose futures wait for theirs.
    while server.connections() > 0 || server.actors() > actors || descriptors() > files {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.tree().children().len(), 1, "the listener only");
}
