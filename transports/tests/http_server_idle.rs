//! What many connections that do nothing cost, and what is left of them: nothing.
//!
//! One test in a program of its own, because it measures the process.

#![cfg(target_os = "linux")]

use std::sync::Arc;

use greenroom_actors::link::Link;
use greenroom_actors::runtime::{Credit, Node, Status};
use greenroom_actors::{
    Agent, Client, ConnectTo, ConnectionTo, Inbound, Responder, UntypedMessage, on_receive_request,
};
use greenroom_protocol::Frame;
use greenroom_transports::{AcpHttpServer, ServerOptions};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Duration;

const CONNECTIONS: usize = 2_000;

/// Bytes that a connection may cost with its agent's tree, both ends of the socket and everything.
/// Futures are larger without optimization.
const ALL: usize = if cfg!(debug_assertions) { 66 * 1024 } else { 58 * 1024 };

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;

/// Bytes that a connection may cost beside its agent's own tree: the three actors of the server,
/// the socket on both sides, and the buffers.
const MOST: usize = 40 * 1024;

/// The trees of the agents that were initialized.
static AGENTS: Mutex<Vec<Arc<Node>>> = Mutex::new(Vec::new());

fn agent() -> impl ConnectTo<Client> {
    Agent.builder().on_receive_request(
        async |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
            if request.method() == "initialize" {
                AGENTS.lock().push(cx.tree());
            }
            responder.respond(json!({ "protocolVersion": 1 }))
        },
        on_receive_request!(),
    )
}

/// Waits until no agent has anything to do, and forgets them.
async fn until_idle() {
    let agents = std::mem::take(&mut *AGENTS.lock());
    let idle = async {
        for agent in agents {
            while agent.children().iter().any(|actor| actor.snapshot().status != Status::Passive) {
                tokio::task::yield_now().await;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), idle).await.expect("actors without work end");
}

/// Calls the agent, and waits for its answer.
async fn call(socket: &mut TcpStream, text: &str) {
    let mut message = vec![0x81, 0x80 | u8::try_from(text.len()).expect("short"), 0, 0, 0, 0];
    message.extend(text.as_bytes());
    socket.write_all(&message).await.expect("the server reads");
    let mut answer = Vec::new();
    while !answer.ends_with(br#""result":{"protocolVersion":1}}"#) {
        assert_ne!(socket.read_buf(&mut answer).await.expect("the server answers"), 0);
    }
}

/// A WebSocket whose agent has answered `initialize`.
async fn connect(address: std::net::SocketAddr) -> TcpStream {
    let mut socket = TcpStream::connect(address).await.expect("the server listens");
    let request = b"GET /acp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    socket.write_all(request).await.expect("the server reads");
    call(&mut socket, INITIALIZE).await;
    socket
}

/// What the same agents cost without any server, in bytes each.
async fn cost_of_agents() -> usize {
    let before = resident();
    let mut running = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        let (link, mut answers, calls) = Link::frames();
        let agent = tokio::spawn(agent().connect_to(link));
        calls.send(Frame::parse(INITIALIZE.into()), Credit::new(1).take(0));
        assert!(matches!(answers.recv().await, Inbound::Frame(..)));
        running.push((agent, answers, calls));
    }
    until_idle().await;
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
    AGENTS.lock().clear();
    let (actors, files, before) = (server.actors(), descriptors(), resident());

    let mut sockets = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        sockets.push(connect(address).await);
    }
    assert_eq!(server.connections(), CONNECTIONS);
    until_idle().await;
    let each = resident().saturating_sub(before) / CONNECTIONS;
    // Afterwards, while all of it is taken: what the allocator has free must not hide a cost.
    let agents = cost_of_agents().await;
    let own = (server.actors() - actors) / CONNECTIONS;
    eprintln!("{each} bytes a connection, {agents} of them for its agent; {own} actors beside those of the agent");
    assert_eq!(own, 3, "supervisor, agent and websocket");
    assert!(each <= agents + MOST, "{each} bytes a connection, {agents} of them for its agent");
    assert!(each <= ALL, "{each} bytes a connection");

    // Each is there when it is needed.
    for socket in &mut sockets {
        call(socket, r#"{"jsonrpc":"2.0","id":1,"method":"later","params":{}}"#).await;
    }

    drop(sockets);
    // The server's actors end behind the agents, whose futures wait for theirs.
    while server.connections() > 0 || server.actors() > actors || descriptors() > files {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.tree().children().len(), 1, "the listener only");
}
