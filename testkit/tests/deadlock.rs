//! A handler that waits for a response of its own connection is told at once, however it waits.

use std::time::{Duration, Instant};

use greenroom::{
    Agent, Client, ConnectionTo, Error, Origin, Responder, Result, UntypedMessage, on_receive_notification,
    on_receive_request,
};
use greenroom_testkit::chaos::Flavour;
use greenroom_testkit::scripted::pair;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// How a handler waits.
#[derive(Clone, Copy, Debug)]
enum Way {
    Directly,
    InJoin,
    InSelect,
    InACallback,
    InATaskItSpawned,
}

fn message(method: &str) -> UntypedMessage {
    UntypedMessage::new(method, json!({})).expect("JSON")
}

async fn wait(way: Way, cx: &ConnectionTo<Agent>, told: &mpsc::UnboundedSender<(Result<Value>, Duration)>) {
    let began = Instant::now();
    let awaited = cx.prepare_request(message("awaited")).block_task();
    let outcome = match way {
        Way::Directly | Way::InACallback => awaited.await,
        Way::InJoin => tokio::join!(async { tokio::task::yield_now().await }, awaited).1,
        Way::InSelect => tokio::select! {
            outcome = awaited => outcome,
            () = std::future::pending() => unreachable!("never ready"),
        },
        // The way that is right: the task is no part of the handler.
        Way::InATaskItSpawned => {
            let told = told.clone();
            let task = async move {
                let outcome = awaited.await;
                told.send((outcome, began.elapsed())).map_err(|_| Error::internal_error())
            };
            return cx.spawn(task).expect("the connection runs");
        }
    };
    let _ = told.send((outcome, began.elapsed()));
}

/// What a handler of `poke` gets, and how long it took.
async fn outcome(way: Way) -> (Result<Value>, Duration) {
    let (told, mut hear) = mpsc::unbounded_channel();
    let (mut peer, link) = pair(64 * 1024);
    let client = Client.builder().on_receive_notification(
        async move |_: UntypedMessage, cx: ConnectionTo<Agent>| {
            if let Way::InACallback = way {
                let (inner, told) = (cx.clone(), told.clone());
                return cx.prepare_request(message("first")).on_receiving_result(async move |_| {
                    wait(way, &inner, &told).await;
                    Ok(())
                });
            }
            wait(way, &cx, &told).await;
            Ok(())
        },
        on_receive_notification!(),
    );
    tokio::spawn(client.connect_to(link));
    peer.send(&json!({ "jsonrpc": "2.0", "method": "poke" })).await;
    loop {
        tokio::select! {
            told = hear.recv() => return told.expect("the handler tells"),
            asked = peer.receive() => {
                if asked["method"] == "$/cancel_request" {
                    continue;
                }
                peer.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": asked["method"] })).await;
            }
        }
    }
}

#[tokio::test]
async fn every_way_of_waiting_inside_a_handler_is_told_at_once() {
    for (way, handling) in
        [(Way::Directly, "poke"), (Way::InJoin, "poke"), (Way::InSelect, "poke"), (Way::InACallback, "first")]
    {
        let (outcome, time) = outcome(way).await;
        let error = outcome.expect_err("nothing can let the response through");
        assert_eq!(error.origin(), Origin::WouldDeadlock, "{way:?}: {error:?}");
        let data = error.data.expect("data");
        assert_eq!((&data["method"], &data["handling"]), (&json!("awaited"), &json!(handling)), "{way:?}");
        // A millisecond is what is promised; a shared machine may take a time slice more.
        assert!(time < Duration::from_millis(50), "{way:?}: {time:?}");
    }
}

#[tokio::test]
async fn a_task_that_the_handler_spawned_is_served() {
    let (outcome, _) = outcome(Way::InATaskItSpawned).await;
    assert_eq!(outcome.expect("served"), json!("awaited"));
}

const UPDATES: usize = 200;

/// Case C20: many notifications in one write, and the handler of each asks the peer and waits.
async fn many(way: Way) {
    let (told, mut hear) = mpsc::unbounded_channel();
    let (seen, mut look) = mpsc::unbounded_channel();
    let (mut peer, link) = pair(1 << 20);
    let client = Client
        .builder()
        .on_receive_notification(
            {
                let seen = seen.clone();
                async move |note: UntypedMessage, cx: ConnectionTo<Agent>| {
                    let _ = seen.send(note.params["n"].clone());
                    if let Way::InACallback = way {
                        let told = told.clone();
                        return cx.prepare_request(message("awaited")).on_receiving_result(async move |outcome| {
                            told.send((outcome, Duration::ZERO)).map_err(|_| Error::internal_error())
                        });
                    }
                    wait(way, &cx, &told).await;
                    Ok(())
                }
            },
            on_receive_notification!(),
        )
        .with_spawned(async move |cx: ConnectionTo<Agent>| {
            cx.send_request(message("prompt"))
                .on_receiving_result(async move |outcome| seen.send(outcome?).map_err(|_| Error::internal_error()))
        });
    tokio::spawn(client.connect_to(link));
    let prompt = peer.receive().await;
    assert_eq!(prompt["method"], "prompt");
    let mut all: String = (0..UPDATES)
        .map(|n| format!("{}\n", json!({ "jsonrpc": "2.0", "method": "update", "params": { "n": n } })))
        .collect();
    all += &format!("{}\n", json!({ "jsonrpc": "2.0", "id": prompt["id"], "result": "the end" }));
    peer.write(all).await;
    let answering = tokio::spawn(async move {
        while let Some(line) = peer.line().await {
            let asked: Value = serde_json::from_str(&line).expect("JSON");
            if asked["method"] == "awaited" {
                peer.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": "served" })).await;
            }
        }
    });
    let (mut order, mut outcomes) = (Vec::new(), Vec::new());
    while order.len() <= UPDATES || outcomes.len() < UPDATES {
        tokio::select! {
            next = look.recv() => order.extend(next),
            outcome = hear.recv() => outcomes.extend(outcome.map(|(outcome, _)| outcome)),
        }
    }
    answering.abort();
    let mut expected: Vec<Value> = (0..UPDATES).map(Value::from).collect();
    expected.push(json!("the end"));
    assert_eq!(order, expected, "{way:?}");
    for outcome in outcomes {
        match way {
            Way::InACallback | Way::InATaskItSpawned => assert_eq!(outcome.expect("served"), "served"),
            _ => assert_eq!(outcome.expect_err("told at once").origin(), Origin::WouldDeadlock),
        }
    }
}

#[test]
fn handlers_of_many_updates_that_ask_the_peer_keep_the_order() {
    for flavour in [Flavour::CurrentThread, Flavour::TwoThreads] {
        for way in [Way::Directly, Way::InACallback, Way::InATaskItSpawned] {
            let limited = async { tokio::time::timeout(Duration::from_secs(60), many(way)).await };
            flavour.runtime().block_on(limited).expect("no deadlock");
        }
    }
}

#[tokio::test]
async fn the_peer_is_asked_to_stop_and_the_connection_goes_on() {
    let (mut peer, link) = pair(64 * 1024);
    let client = Client.builder().on_receive_request(
        async |_: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Agent>| {
            let failed = cx.send_request(message("awaited")).block_task().await;
            responder.respond(json!(failed.is_err()))
        },
        on_receive_request!(),
    );
    tokio::spawn(client.connect_to(link));
    for id in 1..=2 {
        peer.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "poke" })).await;
        let asked = peer.receive().await;
        assert_eq!(asked["method"], "awaited");
        let cancel = peer.receive().await;
        assert_eq!((&cancel["method"], &cancel["params"]["requestId"]), (&json!("$/cancel_request"), &asked["id"]));
        peer.expect(json!({ "jsonrpc": "2.0", "id": id, "result": true })).await;
        // It comes too late for anybody.
        peer.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": null })).await;
    }
}
