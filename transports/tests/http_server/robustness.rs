//! Sockets that die take nothing with them but themselves.

use super::agent::{Agents, Puppet, puppets};
use super::client::{INITIALIZE, connect, listen, post, say};
use super::sse_client::Events;
use super::ws_client::Ws;
use greenroom_transports::AcpHttpServer;
use tokio::net::TcpListener;

#[tokio::test]
async fn a_dropped_stream_leaves_connection_and_session_alone() {
    let (server, agents) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut connection = Events::connection(address, &id).await;
    say(address, &id, r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}"#).await;
    connection.message().await;
    drop(Events::session(address, &id, "s1").await);
    say(address, &id, r#"{"jsonrpc":"2.0","id":2,"method":"x","params":{"sessionId":"s1"}}"#).await;
    let mut session = loop {
        if let Ok(events) = Events::try_open(address, &listen(&id).session("s1")).await {
            break events;
        }
    };
    say(address, &id, r#"{"jsonrpc":"2.0","id":3,"method":"x","params":{"sessionId":"s1"}}"#).await;
    // The answer to 2 may have gone to the dying socket; 3 comes in any case.
    while session.message().await["id"] != 3 {}
    agents.alive(1).await;
}

#[tokio::test]
async fn a_factory_that_panics_costs_only_its_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let agents = Agents::new();
    let (factory, count) = (agents.clone(), std::sync::atomic::AtomicUsize::new(0));
    let make = move || {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        assert!(number > 0, "expected by the test");
        Puppet(factory.clone())
    };
    let server = AcpHttpServer::new(make).start(listener).await.expect("a server");
    post(INITIALIZE).send(server.local_addr()).await.is(500, "the agent could not be made");
    assert_eq!(server.connections(), 0);
    connect(server.local_addr()).await;
}

#[tokio::test]
async fn killing_any_actor_of_a_connection_loses_nothing() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut connection = Events::connection(address, &id).await;
    let mut session = Events::session(address, &id, "s").await;
    let kinds = ["agent", "router", "sse-stream", "listener"];
    let mut killed = std::collections::BTreeSet::new();
    for round in 0..40 {
        for node in server.tree().flatten() {
            if node.kind() == kinds[round % kinds.len()] && node.kill() {
                killed.insert(node.kind());
            }
        }
        let call = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":{round},"method":"x","params":{params}}}"#);
        say(address, &id, &call("{}")).await;
        say(address, &id, &call(r#"{"sessionId":"s"}"#)).await;
        assert_eq!(connection.message().await["id"], round);
        assert_eq!(session.message().await["id"], round);
        // The budget is five deaths a second and actor.
        tokio::time::sleep(std::time::Duration::from_millis(60)).await;
    }
    assert_eq!(killed.into_iter().collect::<Vec<_>>(), ["agent", "listener", "router", "sse-stream"]);
}

#[tokio::test]
async fn killing_the_actor_of_a_websocket_loses_nothing() {
    let (server, _) = puppets().await;
    let mut socket = Ws::open(server.local_addr()).await;
    for round in 0..20 {
        for node in server.tree().flatten() {
            if node.kind() == "websocket" {
                node.kill();
            }
        }
        socket.send(format!(r#"{{"jsonrpc":"2.0","id":{round},"method":"x"}}"#)).await;
        assert_eq!(socket.message().await["id"], round);
        tokio::time::sleep(std::time::Duration::from_millis(210)).await;
    }
}

#[tokio::test]
async fn killing_the_supervisor_of_a_connection_leaves_nothing_of_it() {
    let (server, agents) = puppets().await;
    let address = server.local_addr();
    let (id, other) = (connect(address).await, connect(address).await);
    let mut events = Events::connection(address, &id).await;
    let mut socket = Ws::open(address).await;
    let before = server.actors();
    let nodes = server.tree().children();
    let connections: Vec<_> = nodes.iter().filter(|node| node.kind() == "http-connection").collect();
    assert_eq!(connections.len(), 3);
    connections[0].kill();
    events.end().await;
    agents.alive(2).await;
    post("{}").connection(&id).send(address).await.is(404, "");
    say(address, &other, "{}").await;
    connections[2].kill();
    assert!(socket.next().await.is_none());
    agents.alive(1).await;
    while server.actors() >= before {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.tree().children().iter().filter(|node| node.kind() == "http-connection").count(), 1);
}

#[tokio::test]
async fn nothing_is_left_of_clients_that_never_say_goodbye() {
    let (server, agents) = puppets().await;
    let address = server.local_addr();
    let before = server.actors();
    for _ in 0..50 {
        drop(Ws::open(address).await);
    }
    agents.alive(0).await;
    while server.actors() > before || server.connections() > 0 {
        tokio::task::yield_now().await;
    }
    assert!(server.tree().flatten().len() <= 3, "{}", server.snapshot());
}
