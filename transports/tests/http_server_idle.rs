//! What many connections that do nothing cost, and what is left of them: nothing.
//!
//! One test in a program of its own, because it measures the process.

#![cfg(target_os = "linux")]

use greenroom_actors::link::Link;
use greenroom_actors::runtime::Credit;
use greenroom_actors::{Agent, Client, ConnectTo, Inbound, Responder, UntypedMessage, on_receive_request};
use greenroom_protocol::Frame;
use greenroom_transports::{AcpHttpServer, ServerOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const CONNECTIONS: usize = 2_000;

/// Bytes that a connection may cost beside its agent's own tree: the three actors of the server,
/// the socket on both sides, and the buffers.
const MOST: usize = 40 * 1024;

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
    let call = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
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

/// What the same agents cost without any server, in bytes each.
async fn cost_of_agents() -> usize {
    let before = resident();
    let mut running = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        let (link, mut answers, calls) = Link::frames();
        let agent = tokio::spawn(agent().connect_to(link));
        let call =
            Frame::parse(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#.into());
        calls.send(call, Credit::new(1).take(0));
        assert!(matches!(answers.recv().await, Inbound::Frame(..)));
        running.push((agent, answers, calls));
    }
    let each = resident().saturating_sub(before) / CONNECTIONS;
    for (agent, answers, calls) in running {
        drop((answers, calls));
        agent.await.expect("no panic").expect("a clean end");
    }
    each
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
    // Afterwards, while all of it is taken: what the allocator has free must not hide a cost.
    let agents = cost_of_agents().await;
    let own = (server.actors() - actors) / CONNECTIONS;
    eprintln!("{each} bytes a connection, {agents} of them for its agent; {own} actors beside those of the agent");
    assert_eq!(own, 3, "supervisor, agent and websocket");
    assert!(each <= agents + MOST, "{each} bytes a connection, {agents} of them for its agent");

    drop(sockets);
    // The server's actors end behind the agents, whose futures wait for theirs.
    while server.connections() > 0 || server.actors() > actors || descriptors() > files {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.tree().children().len(), 1, "the listener only");
}
