//! A handler that fails harms its own request and nothing else.

use greenroom::{Agent, Error, Responder, UntypedMessage, on_receive_request};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

fn serve() -> (Local, JoinHandle<greenroom::Result<()>>) {
    let (peer, link) = pair(1024);
    let agent = Agent.builder().on_receive_request(
        async |request: UntypedMessage, responder: Responder<Value>, _cx| match request.method.as_str() {
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

#[tokio::test]
async fn an_error_answers_its_request_and_the_connection_lives() {
    let (mut peer, _serving) = serve();
    let answer = ask(&mut peer, 1, "error").await;
    assert_eq!((&answer["error"]["code"], &answer["error"]["data"]), (&json!(-32602), &json!("no")));
    assert_eq!(ask(&mut peer, 2, "error after the answer").await["result"], "answered");
    assert_eq!(ask(&mut peer, 3, "drop").await["error"]["code"], -32603);
    assert_eq!(ask(&mut peer, 4, "other").await["result"], "fine");
}
