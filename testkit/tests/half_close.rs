//! A peer that closes its output gets every answer and then the end, although actors die all the
//! time.

use std::collections::BTreeMap;
use std::time::Duration;

use greenroom::runtime::RestartPolicy;
use greenroom::{Agent, Client, ConnectionOptions, ConnectionTo, Responder, UntypedMessage, on_receive_request};
use greenroom_testkit::chaos::{Flavour, Monkey, Parent};
use greenroom_testkit::scripted::{Local, pair};
use ractor::Actor;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;

const REQUESTS: u64 = 500;

fn options() -> ConnectionOptions {
    let mut options = ConnectionOptions::default();
    options.restart = RestartPolicy { deaths: usize::MAX, window: Duration::from_micros(1) };
    options
}

async fn answer(
    request: UntypedMessage,
    responder: Responder<Value>,
    cx: ConnectionTo<Client>,
) -> greenroom::Result<()> {
    match request.method.as_str() {
        "in a task" => cx.spawn(async move {
            tokio::task::yield_now().await;
            responder.respond(request.params)
        }),
        _ => {
            tokio::task::yield_now().await;
            responder.respond(request.params)
        }
    }
}

/// Writes all requests, closes, and counts the answers to each.
async fn converse(peer: &mut Local) {
    for id in 0..REQUESTS {
        let method = if id % 2 == 0 { "in a task" } else { "in the handler" };
        peer.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": { "n": id } })).await;
    }
    peer.close().await;
    let mut answers: BTreeMap<u64, usize> = BTreeMap::new();
    while let Some(line) = peer.line().await {
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        let id = answer["id"].as_u64().expect("one of our ids");
        let fine = answer["result"]["n"] == id || answer["error"]["data"]["reason"] == "interrupted";
        assert!(fine, "{answer}");
        *answers.entry(id).or_default() += 1;
    }
    let expected: BTreeMap<u64, usize> = (0..REQUESTS).map(|id| (id, 1)).collect();
    assert_eq!(answers, expected);
}

/// Handlers in the future of `connect_to`.
async fn driven(seed: u64) {
    let (mut peer, link) = pair(512);
    let (tell, told) = oneshot::channel();
    let agent = Agent
        .builder()
        .options(options())
        .on_receive_request(
            async |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
                answer(request, responder, cx).await
            },
            on_receive_request!(),
        )
        .with_spawned(async move |cx: ConnectionTo<Client>| {
            let _ = tell.send(cx.tree());
            Ok(())
        });
    let serving = tokio::spawn(agent.connect_to(link));
    let attack = Monkey::new(seed).pace(10).attack(vec![told.await.expect("a tree")]);
    converse(&mut peer).await;
    serving.await.expect("no panic").expect("a clean end");
    assert!(attack.stop().await.total_attacks() > 0);
}

/// Handlers in the dispatch actor, where they are interrupted.
async fn linked(seed: u64) {
    let (mut peer, link) = pair(512);
    let (parent, parent_done) = Actor::spawn(None, Parent, ()).await.expect("an actor");
    let connection = Agent
        .builder()
        .options(options())
        .on_receive_request(
            async |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
                answer(request, responder, cx).await
            },
            on_receive_request!(),
        )
        .spawn_linked(link, parent.get_cell())
        .await
        .expect("a connection");
    let attack = Monkey::new(seed).pace(10).attack(vec![connection.tree()]);
    converse(&mut peer).await;
    connection.closed().await.expect("a clean end");
    assert!(attack.stop().await.total_attacks() > 0);
    parent.stop(None);
    parent_done.await.expect("no panic");
}

#[test]
fn every_accepted_request_is_answered_once_and_then_the_stream_ends() {
    for flavour in [Flavour::CurrentThread, Flavour::TwoThreads] {
        for seed in 1..=4 {
            eprintln!("{flavour}, seed {seed}");
            let both = async {
                timeout(Duration::from_secs(30), driven(seed)).await.expect("driven ends");
                timeout(Duration::from_secs(30), linked(seed)).await.expect("linked ends");
            };
            flavour.runtime().block_on(both);
        }
    }
}

/// Answers in a thread of its own, at once, and fails the connection when it is asked to.
async fn answer_elsewhere(
    request: UntypedMessage,
    responder: Responder<Value>,
    cx: ConnectionTo<Client>,
) -> greenroom::Result<()> {
    if request.method == "fail" {
        cx.spawn(async { Err(greenroom::Error::internal_error().data("on purpose")) })?;
    }
    drop(std::thread::spawn(move || responder.respond(request.params)));
    Ok(())
}

/// Rounds against a race that was lost in about one of a hundred.
const ROUNDS: u64 = 500;

/// These requests, then the end, which is this side's or the failure; each gets exactly one answer.
async fn race_to_the_end(methods: &[&str]) {
    let fails = methods.contains(&"fail");
    let (mut peer, link) = pair(512);
    let agent = Agent.builder().end_on_failure().on_receive_request(
        async |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
            answer_elsewhere(request, responder, cx).await
        },
        on_receive_request!(),
    );
    let serving = tokio::spawn(agent.connect_to(link));
    let lines: String = (methods.iter().enumerate())
        .map(|(id, method)| format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} })))
        .collect();
    peer.write(lines).await;
    if !fails {
        peer.close().await;
    }
    let mut answered = Vec::new();
    while let Some(line) = peer.line().await {
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        answered.push(answer["id"].as_u64().expect("one of our ids"));
    }
    answered.sort_unstable();
    assert_eq!(answered, (0..methods.len() as u64).collect::<Vec<_>>());
    let ended = serving.await.expect("no panic");
    assert_eq!(ended.is_err(), fails, "{ended:?}");
}

#[test]
fn the_end_does_not_overtake_an_answer_of_another_thread() {
    Flavour::TwoThreads.runtime().block_on(async {
        for _ in 0..ROUNDS {
            timeout(Duration::from_secs(30), race_to_the_end(&["answer"])).await.expect("ends");
            timeout(Duration::from_secs(30), race_to_the_end(&["answer", "answer", "fail"])).await.expect("ends");
        }
    });
}
