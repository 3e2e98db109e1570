//! DELETE ends a connection.

use super::agent::puppets;
use super::client::{connect, post, request};
use super::sse_client::Events;
use super::ws_client::Ws;

#[tokio::test]
async fn delete_ends_the_connection_its_streams_and_its_agent() {
    let (server, agents) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut connection = Events::connection(address, &id).await;
    let mut session = Events::session(address, &id, "s").await;
    request("DELETE").connection(&id).send(address).await.is(202, "");
    request("DELETE").connection(&id).send(address).await.is(404, "");
    post("{}").connection(&id).send(address).await.is(404, "");
    connection.end().await;
    session.end().await;
    agents.alive(0).await;
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn delete_needs_a_known_connection() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    request("DELETE").send(address).await.is(400, "Acp-Connection-Id header required");
    request("DELETE").connection("nobody").send(address).await.is(404, "");
}

#[tokio::test]
async fn delete_ends_a_websocket() {
    let (server, agents) = puppets().await;
    let mut socket = Ws::open(server.local_addr()).await;
    request("DELETE").connection(&socket.id).send(server.local_addr()).await.is(202, "");
    assert!(socket.next().await.is_none());
    agents.alive(0).await;
}
