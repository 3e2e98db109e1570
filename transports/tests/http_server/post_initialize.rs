//! The POST that opens a connection.

use super::agent::{puppets, serve};
use super::client::{INITIALIZE, Socket, connect, post, request};
use super::sse_client::Events;
use greenroom_transports::ServerOptions;
use serde_json::{Value, json};
use std::time::Duration;

fn initialize(params: &Value) -> String {
    json!({"jsonrpc":"2.0","id":"i","method":"initialize","params":params}).to_string()
}

#[tokio::test]
async fn p7a_a_result_opens_the_connection_and_names_it() {
    let (server, agents) = puppets().await;
    let answer = post(INITIALIZE).send(server.local_addr()).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json(), json!({"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}));
    let id = answer.header("acp-connection-id").expect("an id");
    assert_eq!((id.len(), id.as_bytes()[14]), (36, b'4'), "a random UUID: {id}");
    agents.alive(1).await;
}

#[tokio::test]
async fn p7_initialize_always_opens_a_new_connection() {
    let (server, agents) = puppets().await;
    let first = connect(server.local_addr()).await;
    let second = post(INITIALIZE).connection(&first).send(server.local_addr()).await;
    assert_ne!(second.header("acp-connection-id").expect("an id"), first);
    let third = post(INITIALIZE).connection("nobody").send(server.local_addr()).await;
    assert_eq!(third.status, 200);
    agents.alive(3).await;
}

#[tokio::test]
async fn p7b_an_error_is_passed_on_and_nothing_stays() {
    let (server, agents) = puppets().await;
    let answer = post(initialize(&json!({"refuse":true}))).send(server.local_addr()).await;
    assert_eq!((answer.status, answer.header("acp-connection-id")), (200, None));
    assert_eq!(answer.json()["error"]["code"], -32000);
    agents.alive(0).await;
    assert_eq!(agents.made(), 1);
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn p7c_an_agent_that_ends_before_its_answer_is_an_error() {
    let (server, agents) = puppets().await;
    let answer = post(initialize(&json!({"quit":true}))).send(server.local_addr()).await;
    answer.is(500, "agent closed before initialize response");
    agents.alive(0).await;
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn p7d_what_the_agent_says_before_its_answer_waits_for_the_streams() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let note = json!({"jsonrpc":"2.0","method":"early"});
    let update = json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}});
    let answer = post(initialize(&json!({"first":[note,update]}))).send(address).await;
    let id = answer.header("acp-connection-id").expect("an id");
    assert_eq!(answer.json()["id"], "i");
    assert_eq!(Events::connection(address, id).await.message().await, note);
    assert_eq!(Events::session(address, id, "s").await.message().await, update);
}

#[tokio::test]
async fn p7e_a_client_that_leaves_before_the_answer_takes_the_agent_along() {
    let (server, agents) = puppets().await;
    let mut socket = Socket::open(server.local_addr()).await;
    socket.send(post(initialize(&json!({"silent":true}))).bytes()).await;
    agents.alive(1).await;
    drop(socket);
    agents.alive(0).await;
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn an_agent_that_does_not_answer_in_time_is_given_up() {
    let options = ServerOptions::default().with_limits(|limits| limits.initialize_deadline = Duration::from_millis(30));
    let (server, agents) = serve(options).await;
    let answer = post(initialize(&json!({"silent":true}))).send(server.local_addr()).await;
    answer.is(504, "the agent did not answer initialize in time");
    agents.alive(0).await;
}

#[tokio::test]
async fn the_endpoint_and_the_health_endpoint_are_configured() {
    let (server, _) = serve(ServerOptions::default().with_path("/agents/one")).await;
    let address = server.local_addr();
    assert_eq!(post(INITIALIZE).send(address).await.status, 404);
    assert_eq!(post(INITIALIZE).path("/agents/one").send(address).await.status, 200);
    assert_eq!(post(INITIALIZE).path("/agents/one?x=1").send(address).await.status, 200);
    request("GET").path("/health").send(address).await.is(200, "ok");
    let (server, _) = serve(ServerOptions::default().with_health_endpoint(false)).await;
    assert_eq!(request("GET").path("/health").send(server.local_addr()).await.status, 404);
}

#[test]
#[should_panic(expected = "must start with `/`")]
fn a_path_without_slash_is_a_fault_of_the_program() {
    let options = ServerOptions::default().with_path("acp");
    drop(greenroom_transports::AcpHttpServer::new(super::agent::real).with_options(options).into_service());
}

#[test]
#[should_panic(expected = "must not be `/health`")]
fn a_path_that_is_the_health_endpoint_is_a_fault_of_the_program() {
    let options = ServerOptions::default().with_path("/health");
    drop(greenroom_transports::AcpHttpServer::new(super::agent::real).with_options(options).into_service());
}
