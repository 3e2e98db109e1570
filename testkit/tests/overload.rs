//! Floods: memory stays bounded, whoever floods.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom::{
    Agent, Client, ConnectionOptions, ConnectionTo, Responder, UntypedMessage, on_receive_notification,
    on_receive_request,
};
use greenroom_testkit::scripted::pair;
use serde_json::{Value, json};
use tokio::sync::Notify;

fn note() -> UntypedMessage {
    UntypedMessage::new("note", json!({ "text": "x".repeat(1000) })).expect("json")
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_asks_and_never_reads_is_cut_off() {
    let (mut peer, link) = pair(4096);
    let mut options = ConnectionOptions::default();
    options.outgoing_cap = 1 << 20;
    let handled = Arc::new(AtomicUsize::new(0));
    let count = handled.clone();
    let agent = Agent.builder().options(options).on_receive_request(
        async move |_: UntypedMessage, responder: Responder<Value>, _cx| {
            count.fetch_add(1, Ordering::Relaxed);
            responder.respond(json!("x".repeat(10_000)))
        },
        on_receive_request!(),
    );
    let serving = tokio::spawn(agent.connect_to(link));
    let mut requests = String::new();
    for id in 0..10_000 {
        requests += &format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ask\"}}\n");
    }
    peer.flood(requests.as_bytes(), requests.len()).await;
    let error = serving.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("outgoing overflow"), "{error}");
    // What is answered by the end of the connection needs no handler any more.
    let handled = handled.load(Ordering::Relaxed);
    assert!((100..1000).contains(&handled), "{handled}");
}

#[tokio::test(start_paused = true)]
async fn the_sender_learns_that_the_peer_does_not_read() {
    let (_peer, link) = pair(4096);
    let mut options = ConnectionOptions::default();
    options.outgoing_cap = 1 << 20;
    let result = Client
        .builder()
        .options(options)
        .connect_with(link, async |cx: ConnectionTo<Agent>| {
            let waiting = cx.send_request(UntypedMessage::new("ask", Value::Null)?);
            let mut sent = 0;
            let refused = loop {
                match cx.send_notification(note()) {
                    Ok(()) => sent += 1,
                    Err(error) => break error,
                }
            };
            assert!((900..1100).contains(&sent), "{sent}");
            assert!(refused.to_string().contains("outgoing overflow"), "{refused}");
            let failed = waiting.block_task().await.unwrap_err();
            assert!(failed.to_string().contains("outgoing overflow"), "{failed}");
            Ok(())
        })
        .await;
    drop(result);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_until_ready_never_overflows() {
    let (mut peer, link) = pair(4096);
    let mut options = ConnectionOptions::default();
    (options.outgoing_high_mark, options.outgoing_cap) = (64 * 1024, 128 * 1024);
    let calling =
        tokio::spawn(Client.builder().options(options).connect_with(link, async |cx: ConnectionTo<Agent>| {
            for _ in 0..1000 {
                cx.ready().await;
                cx.send_notification(note())?;
            }
            Ok(())
        }));
    for _ in 0..1000 {
        assert_eq!(peer.receive().await["method"], "note");
    }
    peer.expect_end().await;
    calling.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_slow_handler_keeps_the_peer_waiting_and_loses_nothing() {
    let (mut peer, link) = pair(4096);
    let mut options = ConnectionOptions::default();
    options.incoming_credit = 16 * 1024;
    let (go, wait) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (told, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let (open, signal) = (go.clone(), wait.clone());
    let mut first = true;
    let agent = Agent.builder().options(options).on_receive_notification(
        async move |note: UntypedMessage, _cx| {
            if std::mem::take(&mut first) {
                signal.notify_one();
                open.notified().await;
            }
            told.send(note.params["n"].as_u64()).unwrap();
            Ok(())
        },
        on_receive_notification!(),
    );
    let serving = tokio::spawn(agent.connect_to(link));
    let lines: String = (0..2000)
        .map(|n| format!("{}\n", json!({ "jsonrpc": "2.0", "method": "note", "params": { "n": n } })))
        .collect();
    let through = peer.flood(lines.as_bytes(), lines.len()).await;
    wait.notified().await;
    // The credit (which counts more than the text of each small frame), one read, and what the
    // pipe holds.
    assert!((2 * 1024..40 * 1024).contains(&through), "{through}");
    go.notify_one();
    peer.write(&lines[through..]).await;
    for n in 0..2000 {
        let next = tokio::time::timeout(Duration::from_secs(10), seen.recv()).await;
        assert_eq!(next.expect("in time").expect("served"), Some(n));
    }
    peer.close().await;
    serving.await.unwrap().unwrap();
}
