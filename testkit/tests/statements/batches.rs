//! Statements 85 and 86: JSON arrays of messages.

use greenroom::{
    Agent, Client, ConnectTo, Error, Responder, UntypedMessage, on_receive_notification, on_receive_request,
};
use greenroom_testkit::scripted::Local;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::*;

/// Answers `_now` at once and fails, drops or hands over what is named so; says what is dispatched.
fn agent(log: Log) -> (impl ConnectTo<Client>, mpsc::UnboundedReceiver<Responder<Value>>) {
    let (hand, held) = mpsc::unbounded_channel();
    let notes = log.clone();
    let agent = Agent
        .builder()
        .on_receive_request(
            async move |request: UntypedMessage, responder: Responder<Value>, _cx| {
                log.say(format!("{} {}", request.method, responder.id()));
                match request.method.as_str() {
                    "_hold" => {
                        let _ = hand.send(responder);
                        Ok(())
                    }
                    "_drop" => {
                        drop(responder);
                        Ok(())
                    }
                    "_drop_and_fail" => {
                        drop(responder);
                        Err(Error::invalid_params().data("replaced"))
                    }
                    "_fail" => Err(Error::invalid_params()),
                    _ => responder.respond(json!("now")),
                }
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, _cx| {
                notes.say(note.method);
                Ok(())
            },
            on_receive_notification!(),
        );
    (agent, held)
}

async fn codes(peer: &mut Local) -> Vec<(Value, Value)> {
    let answers = soon(peer.receive()).await;
    let answers = answers.as_array().expect("an array").clone();
    answers.into_iter().map(|answer| (answer["id"].clone(), answer["error"]["code"].clone())).collect()
}

#[tokio::test(start_paused = true)]
async fn statement_85_batches_are_dispatched_in_order_and_answered_as_one() {
    let (log, mut said) = log();
    let (agent, mut held) = agent(log);
    let (mut peer, serving) = serve(agent);

    // In array order; the answer comes when the last entry is answered. Calls outside of it do not
    // wait, and another batch does not mix with it.
    let held_batch = json!([request("a", "_hold"), note("_note"), request("b", "_now"), request("c", "_hold")]);
    peer.send(&held_batch).await;
    peer.send(&request(1, "_now")).await;
    peer.send(&json!([request("d", "_now"), request("e", "_now")])).await;
    soon(peer.expect(result(1, "now"))).await;
    soon(peer.expect(json!([result("d", "now"), result("e", "now")]))).await;
    assert_eq!(said.so_far(), ["_hold a", "_note", "_now b", "_hold c", "_now 1", "_now d", "_now e"]);
    let (a, c) = (held.recv().await.expect("a request"), held.recv().await.expect("a request"));
    c.respond(json!("c")).expect("an open connection");
    expect_silence(&mut peer).await;
    a.respond(json!("a")).expect("an open connection");
    soon(peer.expect(json!([result("a", "a"), result("b", "now"), result("c", "c")]))).await;

    said.so_far();

    // Nothing to answer: nothing is said. Nothing at all: that is an error.
    peer.send(&json!([note("_one"), note("_two")])).await;
    peer.send(&json!([])).await;
    let refused = soon(peer.receive()).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32600)));
    assert_eq!(said.so_far(), ["_one", "_two"]);

    // Entries that are no messages: those that look like calls are refused in their places, those
    // that look like answers are ignored.
    let bad = json!([
        { "jsonrpc": "2.0", "id": 7, "method": 5 },
        request(8, "_now"),
        { "jsonrpc": "2.0", "id": 9, "result": 1, "error": { "code": 1, "message": "both" } },
        "text",
    ]);
    peer.send(&bad).await;
    let nothing = Value::Null;
    let refused = (nothing.clone(), json!(-32600));
    assert_eq!(codes(&mut peer).await, [refused.clone(), (json!(8), nothing), refused]);

    // The same id twice: two places. A second answer to one of them is ignored.
    peer.send(&json!([request(5, "_hold"), request(5, "_drop_and_fail"), request(5, "_now")])).await;
    let first = held.recv().await.expect("a request");
    expect_silence(&mut peer).await;
    first.respond(json!("first")).expect("an open connection");
    let answers = soon(peer.receive()).await;
    assert_eq!(answers[0], result(5, "first"));
    assert_eq!((&answers[1]["id"], &answers[1]["error"]["code"]), (&json!(5), &json!(-32602)));
    assert_eq!((&answers[2], answers.as_array().map(Vec::len)), (&result(5, "now"), Some(3)));
    finish(peer, serving).await;
}

/// Shows that nothing was said since the peer read last.
async fn expect_silence(peer: &mut Local) {
    peer.send(&request("marker", "_now")).await;
    soon(peer.expect(result("marker", "now"))).await;
}

#[tokio::test(start_paused = true)]
async fn statement_86_a_dropped_responder_in_a_batch_fails_its_place_and_a_handler_error_replaces_that() {
    let (log, _said) = log();
    let (agent, _held) = agent(log);
    let (mut peer, serving) = serve(agent);
    peer.send(&json!([request(1, "_now"), request(2, "_drop"), request(3, "_drop_and_fail"), request(4, "_fail")]))
        .await;
    let code = |code: i32| json!(code);
    let expected =
        [(json!(1), Value::Null), (json!(2), code(-32603)), (json!(3), code(-32602)), (json!(4), code(-32602))];
    assert_eq!(codes(&mut peer).await, expected);
    finish(peer, serving).await;
}
