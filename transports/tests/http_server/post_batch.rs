//! JSON-RPC batches over HTTP.

use super::agent::{puppets, real_agents, serve};
use super::client::{connect, post, say};
use super::sse_client::Events;
use greenroom_actors::Batches;
use greenroom_transports::ServerOptions;
use serde_json::{Value, json};

fn call(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc":"2.0","id":id,"method":method,"params":params})
}

#[tokio::test]
async fn p5_batches_can_be_refused_with_and_without_a_connection() {
    let (server, agents) = serve(ServerOptions::default().with_batches(Batches::Reject)).await;
    let address = server.local_addr();
    let id = connect(address).await;
    let batch = json!([call(1, "x", json!({}))]).to_string();
    for request in
        [post(&batch), post(&batch).connection(&id), post(&batch).connection("nobody"), post("[]"), post("[")]
    {
        let answer = request.send(address).await;
        assert_eq!((answer.status, answer.header("content-type")), (400, Some("application/json")));
        let error = answer.json();
        assert_eq!(error["id"], Value::Null);
        assert!(error.as_object().expect("an object").contains_key("id"));
        assert_eq!(error["jsonrpc"], "2.0");
    }
    assert_eq!(post(&batch).send(address).await.json()["error"]["code"], -32600);
    assert_eq!(agents.made(), 1);
}

#[tokio::test]
async fn p6_a_batch_whose_first_call_is_initialize_opens_a_connection() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let stray = json!({"jsonrpc":"2.0","id":99,"result":1});
    let odd = json!({"jsonrpc":"2.0","result":1});
    let batch = json!([stray, odd, call(0, "initialize", json!({})), call(1, "session/new", json!({}))]);
    let answer = post(batch.to_string()).send(address).await;
    assert_eq!(answer.status, 200);
    let id = answer.header("acp-connection-id").expect("an id").to_owned();
    let answers = answer.json();
    let ids: Vec<_> = answers.as_array().expect("one array").iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [json!(0), json!(1)]);
    // The session of the sibling's answer is known: more streams than strangers get may be opened.
    say(address, &id, &call(2, "x", json!({"sessionId":"s1"})).to_string()).await;
    let mut strangers = Vec::new();
    for n in 0..16 {
        strangers.push(Events::session(address, &id, &format!("stranger-{n}")).await);
    }
    Events::session(address, &id, "s1").await;
}

#[tokio::test]
async fn p6_a_call_or_malformed_call_before_initialize_disqualifies() {
    let (server, agents) = puppets().await;
    let initialize = call(0, "initialize", json!({}));
    for first in [call(1, "x", json!({})), json!({"jsonrpc":"2.0","method":"n"}), json!({}), json!(1)] {
        let batch = json!([first, initialize]).to_string();
        post(batch).send(server.local_addr()).await.is(400, "Acp-Connection-Id header required");
    }
    assert_eq!(agents.made(), 0);
}

#[tokio::test]
async fn p6_siblings_are_checked_before_an_agent_is_made() {
    let (server, agents) = puppets().await;
    let batch = json!([call(0, "initialize", json!({})), call(1, "session/prompt", json!({}))]).to_string();
    post(&batch).send(server.local_addr()).await.is(400, "Acp-Session-Id header required");
    assert_eq!(agents.made(), 0);
}

#[tokio::test]
async fn p6_a_refused_initialize_in_a_batch_opens_nothing() {
    let (server, agents) = puppets().await;
    let batch = json!([call(0, "initialize", json!({"refuse":true})), call(1, "x", json!({}))]).to_string();
    let answer = post(&batch).send(server.local_addr()).await;
    assert_eq!((answer.status, answer.header("acp-connection-id")), (200, None));
    assert_eq!(answer.json()[0]["error"]["code"], -32000);
    agents.alive(0).await;
}

#[tokio::test]
async fn a_batch_is_one_post_and_its_replies_are_one_array() {
    let server = real_agents(ServerOptions::default()).await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut events = Events::connection(address, &id).await;
    let batch = json!([call(1, "a", json!({})), {"jsonrpc":"2.0","method":"n"}, {}, call(2, "b", json!({}))]);
    say(address, &id, &batch.to_string()).await;
    let answers = events.message().await;
    let ids: Vec<_> = answers.as_array().expect("one array").iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [json!(1), Value::Null, json!(2)]);
    // An empty one is malformed, as everywhere.
    say(address, &id, "[]").await;
    assert_eq!(events.message().await["error"]["code"], -32600);
}

#[tokio::test]
async fn grouped_replies_go_to_a_session_only_if_all_belong_to_it() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut connection = Events::connection(address, &id).await;
    let mut session = Events::session(address, &id, "a").await;
    let same = json!([call(1, "x", json!({"sessionId":"a"})), call(2, "y", json!({"sessionId":"a"}))]);
    let mixed = json!([call(3, "x", json!({"sessionId":"a"})), call(4, "y", json!({"sessionId":"b"}))]);
    let half = json!([call(5, "x", json!({"sessionId":"a"})), call(6, "y", json!({}))]);
    for batch in [same, mixed, half] {
        say(address, &id, &batch.to_string()).await;
    }
    assert_eq!(session.message().await[0]["id"], 1);
    assert_eq!(connection.message().await[0]["id"], 3);
    assert_eq!(connection.message().await[0]["id"], 5);
}
