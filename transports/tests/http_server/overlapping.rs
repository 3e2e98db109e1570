//! Ids that are used twice at the same time: every answer reaches the one who asked, once, and an
//! answer for which nobody is left reaches nobody.

use super::agent::{puppets, real_agents};
use super::client::{Socket, connect, post, say};
use super::sse_client::Events;
use super::ws_client::Ws;
use greenroom_actors::{Agent, Client, ConnectTo, Responder, UntypedMessage, on_receive_request};
use greenroom_transports::{AcpHttpServer, RunningServer, ServerOptions};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// Posts these at once: each server task has its whole head before the first body is complete.
async fn post_together(address: std::net::SocketAddr, connection: &str, bodies: [String; 2]) {
    let mut open = Vec::new();
    for body in &bodies {
        let bytes = post(body).connection(connection).bytes();
        let (most, last) = bytes.split_at(bytes.len() - 1);
        let mut socket = Socket::open(address).await;
        socket.send(most).await;
        open.push((socket, last.to_vec()));
    }
    for (socket, last) in &mut open {
        socket.send(&last[..]).await;
    }
    for (mut socket, _) in open {
        socket.answer().await.is(202, "");
    }
}

#[tokio::test]
async fn concurrent_posts_with_one_id_on_one_stream_are_both_answered() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut connection = Events::connection(address, &id).await;
    let mut session = Events::session(address, &id, "s").await;
    for round in 0..20 {
        let call = |caller: &str| {
            let params = json!({ "sessionId": "s", "round": round, "caller": caller });
            json!({"jsonrpc":"2.0","id":1,"method":"x","params":params}).to_string()
        };
        post_together(address, &id, [call("first"), call("second")]).await;
        let mut callers = BTreeSet::new();
        for _ in 0..2 {
            let answer = session.message().await;
            assert_eq!((&answer["id"], &answer["result"]["params"]["round"]), (&json!(1), &json!(round)));
            callers.insert(answer["result"]["params"]["caller"].as_str().expect("a caller").to_owned());
        }
        assert_eq!(callers.into_iter().collect::<Vec<_>>(), ["first", "second"]);
        // What has no usable id has no session to go back to, and takes the place of no other answer.
        let odd = json!({"jsonrpc":"2.0","id":null,"method":"x","params":{"sessionId":"s","round":round}});
        post_together(address, &id, [odd.to_string(), call("third")]).await;
        let answer = connection.message().await;
        assert_eq!((&answer["id"], &answer["result"]["params"]["round"]), (&Value::Null, &json!(round)));
        let answer = session.message().await;
        assert_eq!((&answer["id"], &answer["result"]["params"]["caller"]), (&json!(1), &json!("third")));
    }
}

#[tokio::test]
async fn an_agent_of_ours_answers_a_null_id_once_and_the_other_call_too() {
    let server = real_agents(ServerOptions::default()).await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut connection = Events::connection(address, &id).await;
    let odd = r#"{"jsonrpc":"2.0","id":null,"method":"x","params":{"from":"odd"}}"#.to_owned();
    let plain = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"from":"plain"}}"#.to_owned();
    post_together(address, &id, [odd, plain]).await;
    say(address, &id, r#"{"jsonrpc":"2.0","id":2,"method":"x","params":{}}"#).await;
    let mut ids = Vec::new();
    while ids.last() != Some(&json!(2)) {
        ids.push(connection.message().await["id"].clone());
    }
    assert_eq!(ids.iter().filter(|id| **id == json!(1)).count(), 1);
    assert_eq!(ids.iter().filter(|id| id.is_null()).count(), 1, "{ids:?}");
    assert_eq!(ids.len(), 3);
}

/// A call that was handed over to the test, and is answered when the test says so.
struct Held {
    whose: String,
    responder: Responder<Value>,
}

/// Hands every call named `hold` to the test, so that it outlives connection and agent.
fn holding(hold: mpsc::UnboundedSender<Held>) -> impl ConnectTo<Client> {
    Agent.builder().on_receive_request(
        async move |request: UntypedMessage, responder: Responder<Value>, _cx| match request.method.as_str() {
            "initialize" => responder.respond(json!({"protocolVersion":1})),
            "hold" => {
                let whose = request.params["whose"].as_str().unwrap_or_default().to_owned();
                let _ = hold.send(Held { whose, responder });
                Ok(())
            }
            _ => responder.respond(json!({"echo":request.params})),
        },
        on_receive_request!(),
    )
}

async fn holding_server() -> (RunningServer, mpsc::UnboundedReceiver<Held>) {
    let (hold, held) = mpsc::unbounded_channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let server = AcpHttpServer::new(move || holding(hold.clone())).start(listener).await.expect("a server");
    (server, held)
}

fn hold(whose: &str) -> String {
    json!({"jsonrpc":"2.0","id":1,"method":"hold","params":{"whose":whose}}).to_string()
}

/// Answers elsewhere, as work does that outlives its connection. Returns when that is done.
async fn answer(held: Held) {
    let (done, finished) = oneshot::channel();
    tokio::spawn(async move {
        // The error says that nobody is there; it must not matter.
        let _ = held.responder.respond(json!({"whose":held.whose}));
        let _ = done.send(());
    });
    finished.await.expect("answering does not panic");
}

#[tokio::test]
async fn an_answer_behind_a_lost_websocket_goes_nowhere() {
    let (server, mut held) = holding_server().await;
    let mut lost = Ws::open(server.local_addr()).await;
    let mut other = Ws::open(server.local_addr()).await;
    lost.send(hold("lost")).await;
    let late = held.recv().await.expect("a call");
    other.send(hold("other")).await;
    let open = held.recv().await.expect("a call");
    drop(lost);
    while server.connections() > 1 {
        tokio::task::yield_now().await;
    }
    answer(late).await;
    other.send(r#"{"jsonrpc":"2.0","id":2,"method":"x"}"#).await;
    assert_eq!(other.message().await["id"], 2, "nothing of the other connection came before");
    answer(open).await;
    assert_eq!(other.message().await, json!({"jsonrpc":"2.0","id":1,"result":{"whose":"other"}}));
    other.send(r#"{"jsonrpc":"2.0","id":3,"method":"x"}"#).await;
    assert_eq!(other.message().await["id"], 3, "and nothing after it");
}

#[tokio::test]
async fn an_answer_behind_a_deleted_connection_goes_nowhere() {
    let (server, mut held) = holding_server().await;
    let address = server.local_addr();
    let (lost, other) = (connect(address).await, connect(address).await);
    say(address, &lost, &hold("lost")).await;
    let late = held.recv().await.expect("a call");
    say(address, &other, &hold("other")).await;
    let open = held.recv().await.expect("a call");
    super::client::request("DELETE").connection(&lost).send(address).await.is(202, "");
    while server.connections() > 1 {
        tokio::task::yield_now().await;
    }
    answer(late).await;
    answer(open).await;
    let mut events = Events::connection(address, &other).await;
    assert_eq!(events.message().await, json!({"jsonrpc":"2.0","id":1,"result":{"whose":"other"}}));
    say(address, &other, r#"{"jsonrpc":"2.0","id":2,"method":"x"}"#).await;
    assert_eq!(events.message().await["id"], 2);
    // Nobody can ask for it either.
    super::client::listen(&lost).send(address).await.is(404, "");
}

#[tokio::test]
async fn an_answer_behind_a_lost_stream_waits_for_the_next_one_of_its_connection() {
    let (server, mut held) = holding_server().await;
    let address = server.local_addr();
    let (one, other) = (connect(address).await, connect(address).await);
    let stream = Events::connection(address, &one).await;
    let mut stranger = Events::connection(address, &other).await;
    say(address, &one, &hold("one")).await;
    let late = held.recv().await.expect("a call");
    drop(stream);
    // The server has seen that when it lets somebody else listen.
    let mut again = loop {
        if let Ok(events) = Events::try_open(address, &super::client::listen(&one)).await {
            break events;
        }
    };
    answer(late).await;
    assert_eq!(again.message().await, json!({"jsonrpc":"2.0","id":1,"result":{"whose":"one"}}));
    say(address, &other, r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#).await;
    assert_eq!(stranger.message().await["result"]["echo"], Value::Null);
}
