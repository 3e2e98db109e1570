//! The end of a connection: accepted requests are answered, waiting ones fail, late ones fail at
//! once.

use std::time::Duration;

use greenroom::{
    Agent, Client, ConnectTo, ConnectionTo, Responder, UntypedMessage, is_incoming_transport_closed, on_receive_request,
};
use greenroom_testkit::scripted::pair;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

#[tokio::test]
async fn a_request_on_a_closed_connection_fails_at_once() {
    let (mut peer, link) = pair(1024);
    peer.close().await;
    Client
        .builder()
        .connect_with(link, async |cx: ConnectionTo<Agent>| {
            cx.incoming_closed().await;
            let late = cx.send_request(UntypedMessage::new("late", Value::Null)?).block_task();
            let error = timeout(Duration::ZERO, late).await.expect("at once").unwrap_err();
            assert!(is_incoming_transport_closed(&error), "{error:?}");
            assert_eq!(pending(&cx), 0);
            Ok(())
        })
        .await
        .unwrap();
}

/// Entries of the table of requests that wait.
fn pending(cx: &ConnectionTo<Agent>) -> usize {
    let table = cx.snapshot().children.into_iter().find(|child| child.kind == "pending");
    table.expect("an owner of the table").in_flight
}

#[tokio::test]
async fn the_table_is_empty_after_the_answers() {
    let (mut peer, link) = pair(1024);
    let calling = tokio::spawn(Client.builder().connect_with(link, async |cx: ConnectionTo<Agent>| {
        let request = cx.send_request(UntypedMessage::new("ask", Value::Null)?);
        assert_eq!(pending(&cx), 1);
        let answer = request.block_task().await?;
        assert_eq!(pending(&cx), 0);
        Ok(answer)
    }));
    let id = peer.receive().await["id"].clone();
    peer.send(&json!({ "jsonrpc": "2.0", "id": id, "result": 1 })).await;
    assert_eq!(calling.await.unwrap().unwrap(), json!(1));
}

fn slow() -> impl ConnectTo<Client> {
    Agent.builder().on_receive_request(
        async |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
            if request.method == "in a task" {
                return cx.spawn(async move {
                    sleep(Duration::from_millis(200)).await;
                    responder.respond(json!("late"))
                });
            }
            sleep(Duration::from_millis(200)).await;
            responder.respond(json!("late"))
        },
        on_receive_request!(),
    )
}

#[tokio::test(start_paused = true)]
async fn what_was_accepted_before_the_end_of_the_input_is_answered() {
    for method in ["in the handler", "in a task"] {
        let (mut peer, link) = pair(1024);
        let serving = tokio::spawn(slow().connect_to(link));
        for id in [1, 2] {
            peer.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method })).await;
        }
        peer.close().await;
        for id in [1, 2] {
            peer.expect(json!({ "jsonrpc": "2.0", "id": id, "result": "late" })).await;
        }
        peer.expect_end().await;
        serving.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_ends_although_a_request_is_never_answered() {
    let (mut peer, link) = pair(1024);
    let agent = Agent.builder().on_receive_request(
        async |_: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
            cx.spawn(async move {
                std::future::pending::<()>().await;
                responder.respond(Value::Null)
            })
        },
        on_receive_request!(),
    );
    let begin = Instant::now();
    let serving = tokio::spawn(agent.connect_to(link));
    peer.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ask" })).await;
    peer.close().await;
    serving.await.unwrap().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
}

/// Row C35: an outcome that is there before, while or after somebody begins to wait for it is seen.
/// Two threads, so that both race.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outcome_that_comes_before_anybody_waits_is_not_waited_for() {
    let (mut peer, link) = pair(1 << 16);
    let answering = tokio::spawn(async move {
        while let Some(line) = peer.line().await {
            let asked: Value = serde_json::from_str(&line).expect("JSON");
            peer.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": asked["params"] })).await;
        }
    });
    let calling = Client.builder().connect_with(link, async |cx: ConnectionTo<Agent>| {
        for round in 0..10_000 {
            let request = cx.send_request(UntypedMessage::new("ask", json!([round]))?);
            for _ in 0..round % 5 {
                tokio::task::yield_now().await;
            }
            let answer = timeout(Duration::from_secs(20), request.block_task()).await.expect("a wake-up")?;
            assert_eq!(answer, json!([round]));
        }
        Ok(())
    });
    calling.await.unwrap();
    answering.await.unwrap();
}
