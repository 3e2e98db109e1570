//! Statements 14 to 19 and 27: a peer that cancels.

use greenroom::{
    Agent, Client, Conductor, ConnectTo, ConnectionTo, Proxy, RequestCancellation, Responder, Result, UntypedMessage,
    on_receive_notification, on_receive_request,
};
use greenroom_testkit::scripted::pair;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::*;

/// Hands every request to the test; notes what its notification handler is told.
fn holding(log: Log) -> (impl ConnectTo<Client>, mpsc::UnboundedReceiver<Responder<Value>>) {
    let (hand, held) = mpsc::unbounded_channel();
    let agent = Agent
        .builder()
        .on_receive_request(
            async move |_: UntypedMessage, responder: Responder<Value>, _cx| {
                let _ = hand.send(responder);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, _cx| {
                log.say(note.method);
                Ok(())
            },
            on_receive_notification!(),
        );
    (agent, held)
}

#[tokio::test(start_paused = true)]
async fn statement_14_a_cancel_of_an_unknown_or_completed_request_is_ignored() {
    let (log, mut said) = log();
    let (agent, mut held) = holding(log);
    let (mut peer, serving) = serve(agent);
    peer.send(&cancel(404)).await;
    peer.send(&cancel("nobody")).await;
    peer.send(&cancel(Value::Null)).await;
    peer.send(&request(1, "_ask")).await;
    held.recv().await.expect("a request").respond(json!("done")).expect("an open connection");
    peer.expect(result(1, "done")).await;
    peer.send(&cancel(1)).await;
    peer.send(&request(2, "_ask")).await;
    let second = held.recv().await.expect("a request");
    assert!(!second.cancellation().is_cancelled());
    assert_eq!(said.so_far(), [CANCEL; 4], "handlers may still look at it");
    second.respond(Value::Null).expect("an open connection");
    peer.expect(result(2, Value::Null)).await;
    finish(peer, serving).await;
}

#[tokio::test(start_paused = true)]
async fn statement_15_a_cancel_with_a_bad_or_no_id_is_ignored() {
    let (log, _said) = log();
    let (agent, mut held) = holding(log);
    let (mut peer, serving) = serve(agent);
    peer.send(&request(1, "_ask")).await;
    let responder = held.recv().await.expect("a request");
    for params in [
        json!({}),
        json!([1]),
        json!({ "requestId": true }),
        json!({ "requestId": [1] }),
        json!({ "requestId": { "id": 1 } }),
        json!({ "request_id": 1 }),
    ] {
        peer.send(&note_with(CANCEL, params)).await;
    }
    peer.send(&note(CANCEL)).await;
    peer.send(&request(2, "_ask")).await;
    let _second = held.recv().await.expect("all before it was read");
    assert!(!responder.cancellation().is_cancelled());
    responder.respond(json!("done")).expect("an open connection");
    peer.expect(result(1, "done")).await;
    drop(_second);
    assert_eq!(peer.receive().await["id"], 2);
    finish(peer, serving).await;
}

#[tokio::test(start_paused = true)]
async fn statement_16_an_unhandled_protocol_notification_is_not_answered() {
    let (mut peer, serving) = serve(Agent.builder());
    peer.send(&note("$/progress")).await;
    peer.send(&note_with(CANCEL, json!({ "requestId": 1 }))).await;
    peer.send(&note_with("$/anything", json!([1]))).await;
    // A request of that kind is one like any other.
    peer.send(&request(1, "$/ask")).await;
    let answer = peer.receive().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32601)));
    finish(peer, serving).await;

    // Inside an envelope, at a proxy and at an agent, which knows no envelopes.
    let (mut conductor, link) = pair(ROOM);
    let serving = tokio::spawn(ConnectTo::<Conductor>::connect_to(Proxy.builder(), link));
    conductor.send(&wrapped(note(""), "$/progress", json!({}))).await;
    conductor.expect(note_with("$/progress", json!({}))).await;
    conductor.send(&wrapped(note(""), CANCEL, json!({ "requestId": 7 }))).await;
    finish(conductor, serving).await;
    let (mut peer, serving) = serve(Agent.builder());
    peer.send(&wrapped(note(""), "$/progress", json!({}))).await;
    finish(peer, serving).await;
}

#[tokio::test(start_paused = true)]
async fn statement_17_the_marker_of_a_request_is_set_by_its_cancel() {
    let (log, _said) = log();
    let (agent, mut held) = holding(log);
    let (mut peer, serving) = serve(agent);
    peer.send(&request("a", "_ask")).await;
    peer.send(&request("b", "_ask")).await;
    let (first, second) = (held.recv().await.expect("a request"), held.recv().await.expect("a request"));
    let early = first.cancellation();
    assert!(!early.is_cancelled());
    peer.send(&cancel("a")).await;
    soon(early.cancelled()).await;
    // Asked for the first time after the cancel arrived.
    assert!(first.cancellation().is_cancelled());
    soon(first.cancellation().cancelled()).await;
    assert!(!second.cancellation().is_cancelled());
    for responder in [first, second] {
        responder.respond(Value::Null).expect("an open connection");
        peer.receive().await;
    }
    finish(peer, serving).await;
}

#[tokio::test(start_paused = true)]
async fn statement_18_the_marker_is_set_before_a_handler_sees_the_notification() {
    let (log, mut said) = log();
    let (hand, mut held) = mpsc::unbounded_channel::<RequestCancellation>();
    let agent = Agent
        .builder()
        .on_receive_request(
            async move |_: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
                let _ = hand.send(responder.cancellation());
                cx.spawn(async move {
                    responder.cancellation().cancelled().await;
                    responder.respond(json!("heard"))
                })
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, _cx| {
                // Claims the notification: the marker is set all the same.
                log.say(format!("{} {}", note.method, held.recv().await.expect("a request").is_cancelled()));
                Ok(())
            },
            on_receive_notification!(),
        );
    let (mut peer, serving) = serve(agent);
    peer.send(&request(1, "_ask")).await;
    peer.send(&cancel(1)).await;
    said.expect("$/cancel_request true").await;
    peer.expect(result(1, "heard")).await;
    finish(peer, serving).await;
}

/// Says when it is dropped.
struct Dropped(Log);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.say("dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn statement_19_run_until_cancelled_drops_the_work_and_returns_the_error() {
    let (log, mut said) = log();
    let agent = Agent.builder().on_receive_request(
        async move |_: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
            let guard = Dropped(log.clone());
            let log = log.clone();
            cx.spawn(async move {
                let marker = responder.cancellation();
                let work = async {
                    let _guard = guard;
                    std::future::pending::<Result<Value>>().await
                };
                let outcome = marker.run_until_cancelled(work).await;
                log.say("returned");
                responder.respond_with_result(outcome)
            })
        },
        on_receive_request!(),
    );
    let (mut peer, serving) = serve(agent);
    peer.send(&request(1, "_ask")).await;
    settled().await;
    assert_eq!(said.so_far(), Vec::<String>::new());
    peer.send(&cancel(1)).await;
    let answer = peer.receive().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32800)));
    assert_eq!(said.so_far(), ["dropped", "returned"]);
    finish(peer, serving).await;
}

#[tokio::test(start_paused = true)]
async fn statement_27_a_late_cancel_of_an_old_request_does_not_reach_one_with_the_same_id() {
    let (log, _said) = log();
    let (agent, mut held) = holding(log);
    let (mut peer, serving) = serve(agent);
    // The old one is complete, its cancel comes late, then the id is used again.
    peer.send(&request(1, "_old")).await;
    let old = held.recv().await.expect("a request");
    let marker = old.cancellation();
    old.respond(Value::Null).expect("an open connection");
    peer.receive().await;
    peer.send(&cancel(1)).await;
    peer.send(&request(1, "_new")).await;
    let new = held.recv().await.expect("a request");
    assert!(!new.cancellation().is_cancelled());
    // And the other way round: a cancel of the new one does not touch what watches the old one.
    peer.send(&cancel(1)).await;
    soon(new.cancellation().cancelled()).await;
    assert!(!marker.is_cancelled());
    new.respond(Value::Null).expect("an open connection");
    peer.receive().await;
    // A peer that uses an id twice at the same time: the end of the first does not make the second
    // one deaf.
    peer.send(&request(2, "_old")).await;
    peer.send(&request(2, "_new")).await;
    let (old, new) = (held.recv().await.expect("a request"), held.recv().await.expect("a request"));
    old.respond(Value::Null).expect("an open connection");
    peer.receive().await;
    peer.send(&cancel(2)).await;
    soon(new.cancellation().cancelled()).await;
    new.respond(Value::Null).expect("an open connection");
    peer.receive().await;
    finish(peer, serving).await;
}
