//! A handler that fails harms its own request and nothing else.

use greenroom::{Agent, Client, ConnectionTo, Error, Responder, UntypedMessage, on_receive_request};
use greenroom_testkit::capture::Capture;
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tracing::Level;

fn serve() -> (Local, JoinHandle<greenroom::Result<()>>) {
    let (peer, link) = pair(1024);
    let agent = Agent.builder().on_receive_request(
        async |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| match &*request.method {
            "panic" => panic!("the secret text of a panic"),
            "panic later" => {
                tokio::task::yield_now().await;
                panic!("the secret text of a panic")
            }
            "error" => Err(Error::invalid_params().data("no")),
            "error after the answer" => {
                responder.respond(json!("answered"))?;
                Err(Error::internal_error())
            }
            "error before the answer" => {
                cx.spawn(async move { responder.respond(json!("too late")) })?;
                Err(Error::invalid_params())
            }
            "drop" => {
                drop(responder);
                Ok(())
            }
            _ => responder.respond(json!("fine")),
        },
        on_receive_request!(),
    );
    (peer, tokio::spawn(agent.connect_to(link)))
}

async fn ask(peer: &mut Local, id: i64, method: &str) -> Value {
    peer.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method })).await;
    let answer = peer.receive().await;
    assert_eq!(answer["id"], id);
    answer
}

#[tokio::test]
async fn a_panic_is_an_internal_error_without_its_text() {
    let (mut peer, _serving) = serve();
    for (id, method) in [(1, "panic"), (2, "panic later")] {
        let answer = ask(&mut peer, id, method).await;
        assert_eq!(answer["error"]["code"], -32603);
        assert!(!answer.to_string().contains("secret"), "{answer}");
    }
    assert_eq!(ask(&mut peer, 3, "other").await["result"], "fine");
}

/// Case C21: one answer on the wire, the other in the log.
#[tokio::test]
async fn a_second_answer_is_logged_and_not_sent() {
    let log = Capture::here();
    let (mut peer, _serving) = serve();
    for (id, method, level, text) in [
        (1, "error after the answer", Level::WARN, "a handler failed"),
        (2, "error before the answer", Level::DEBUG, "a second answer to one request was dropped"),
    ] {
        let answer = ask(&mut peer, id, method).await;
        assert_eq!(answer.get("result").is_some(), id == 1, "the first one: {answer}");
        // Nothing comes in between.
        assert_eq!(ask(&mut peer, id + 10, "other").await["result"], "fine");
        let logged = log.with(method);
        assert!(logged.iter().any(|line| line.level == level && line.text.contains(text)), "{logged:#?}");
    }
}

#[tokio::test]
async fn an_error_answers_its_request_and_the_connection_lives() {
    let (mut peer, _serving) = serve();
    let answer = ask(&mut peer, 1, "error").await;
    assert_eq!((&answer["error"]["code"], &answer["error"]["data"]), (&json!(-32602), &json!("no")));
    assert_eq!(ask(&mut peer, 2, "error after the answer").await["result"], "answered");
    assert_eq!(ask(&mut peer, 3, "drop").await["error"]["code"], -32603);
    assert_eq!(ask(&mut peer, 4, "other").await["result"], "fine");
}
