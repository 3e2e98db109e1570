//! The server as a router inside of a host that uses axum.

use super::agent::{Agents, Puppet};
use super::client::{connect, post, request, say};
use super::sse_client::Events;
use super::ws_client::Ws;
use greenroom_transports::AcpHttpServer;
use tokio::net::TcpListener;

#[tokio::test]
async fn a_router_serves_streams_and_websockets_beside_other_routes() {
    let agents = Agents::new();
    let factory = agents.clone();
    let router = AcpHttpServer::new(move || Puppet(factory.clone())).into_router();
    let router = router.route("/other", axum::routing::get(async || "another route"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let host = tokio::spawn(async move { axum::serve(listener, router).await });
    request("GET").path("/other").send(address).await.is(200, "another route");
    request("GET").path("/health").send(address).await.is(200, "ok");
    post("{}").path("/elsewhere").send(address).await.is(404, "");
    let id = connect(address).await;
    let mut events = Events::connection(address, &id).await;
    say(address, &id, r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#).await;
    assert_eq!(events.message().await["id"], 1);
    let mut socket = Ws::open(address).await;
    socket.send(r#"{"jsonrpc":"2.0","id":2,"method":"x"}"#).await;
    assert_eq!(socket.message().await["id"], 2);
    // A host that goes takes everything along, also what it did not shut down.
    agents.alive(2).await;
    host.abort();
    drop((events, socket));
    agents.alive(0).await;
}
