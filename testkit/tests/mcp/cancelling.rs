//! Ending operations: by their caller, by the removal of their server, by the end of the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use greenroom::mcp_server::McpOutcome;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::support::*;

/// A service that says when it began and when it was told to stop, and cleans up until it may end.
fn careful(
    say: mpsc::UnboundedSender<&'static str>,
    may_end: watch::Receiver<bool>,
) -> impl Fn(greenroom::mcp_server::McpRequest, greenroom::mcp_server::McpRequestContext<greenroom::Agent>) -> Answer
+ Send
+ Sync {
    move |_, context| {
        let (say, mut may_end) = (say.clone(), may_end.clone());
        Box::pin(async move {
            let _ = say.send("began");
            context.operation_cancellation().cancelled().await;
            let late = context.send_notification("notifications/progress", None).await;
            let _ = say.send(if late.is_err() { "stopped, silent" } else { "stopped, and still talking" });
            let _ = may_end.wait_for(|may_end| *may_end).await;
            let _ = say.send("clean");
            Ok(McpOutcome::Result(Value::Null))
        })
    }
}

#[tokio::test]
async fn a_cancelled_operation_is_silenced_told_and_joined() {
    let (say, mut heard) = log();
    let (end, may_end) = watch::channel(false);
    let mut it = attached(server(careful(say, may_end))).await;
    it.agent.send(&call(1, &it.id, "a", "waits", json!({}))).await;
    heard.expect("began").await;
    it.agent.send(&note("$/cancel_request", json!({ "requestId": 1 }))).await;
    heard.expect("stopped, silent").await;
    // It is not answered before it has cleaned up, and its id is taken until then.
    it.agent.send(&call(2, &it.id, "a", "waits", json!({}))).await;
    assert_eq!(refused(&mut it.agent, 2).await, -32602);
    heard.expect_silence();
    end.send_replace(true);
    heard.expect("clean").await;
    assert_eq!(refused(&mut it.agent, 1).await, -32800);
    it.agent.send(&call(3, &it.id, "a", "waits", json!({}))).await;
    heard.expect("began").await;
}

#[tokio::test]
async fn a_call_that_was_cancelled_before_it_began_never_begins() {
    let (say, mut heard) = log();
    let (_end, may_end) = watch::channel(true);
    let mut it = attached(server(careful(say, may_end))).await;
    let both = [call(1, &it.id, "a", "waits", json!({})), note("$/cancel_request", json!({ "requestId": 1 }))];
    it.agent.write(both.map(|message| format!("{message}\n")).concat()).await;
    assert_eq!(refused(&mut it.agent, 1).await, -32800);
    it.agent.send(&call(2, &it.id, "a", "waits", json!({}))).await;
    heard.expect("began").await;
    // That was the second one: the first would have said that it stopped.
    heard.expect_silence();
}

#[tokio::test]
async fn a_failed_setup_removes_the_server_and_joins_what_it_does() {
    let (say, mut heard) = log();
    let (end, may_end) = watch::channel(false);
    let (mut agent, link) = greenroom_testkit::scripted::pair(1 << 16);
    let answer = careful(say, may_end);
    tokio::spawn(greenroom::Client.connect_with(link, async move |cx| {
        let session = cx.build_session("/").with_mcp_server(server(answer))?.block_task();
        let failed = session.start_session().await.expect_err("the agent refuses");
        assert_eq!(i32::from(failed.code), -32001);
        std::future::pending::<greenroom::Result<()>>().await
    }));
    let setup = next(&mut agent).await;
    let (id, _) = declared(&setup);
    // The agent may call while it works on the setup.
    agent.send(&call(1, &id, "a", "waits", json!({}))).await;
    heard.expect("began").await;
    agent.send(&json!({ "jsonrpc": "2.0", "id": setup["id"], "error": { "code": -32001, "message": "no" } })).await;
    heard.expect("stopped, silent").await;
    agent.send(&call(2, &id, "b", "waits", json!({}))).await;
    assert_eq!(refused(&mut agent, 2).await, -33001, "admission is sealed");
    end.send_replace(true);
    heard.expect("clean").await;
    assert_eq!(refused(&mut agent, 1).await, -33001);
    agent.send(&call(3, &id, "c", "waits", json!({}))).await;
    assert_eq!(refused(&mut agent, 3).await, -33001);
}

#[tokio::test]
async fn the_end_of_the_input_stops_operations() {
    let (say, mut heard) = log();
    let (_end, may_end) = watch::channel(true);
    let mut it = attached(server(careful(say, may_end))).await;
    it.agent.send(&call(1, &it.id, "a", "waits", json!({}))).await;
    heard.expect("began").await;
    it.agent.close().await;
    heard.expect("stopped, silent").await;
    heard.expect("clean").await;
    assert_eq!(refused(&mut it.agent, 1).await, -32800);
    it.foreground.send(()).expect("the foreground waits");
    soon(it.done).await.expect("no panic").expect("a clean end");
}

#[tokio::test]
async fn the_end_of_the_foreground_waits_for_their_cleanup() {
    let (say, mut heard) = log();
    let (end, may_end) = watch::channel(false);
    let mut it = attached(server(careful(say, may_end))).await;
    it.agent.send(&call(1, &it.id, "a", "waits", json!({}))).await;
    heard.expect("began").await;
    it.foreground.send(()).expect("the foreground waits");
    heard.expect("stopped, silent").await;
    assert!(!it.done.is_finished());
    end.send_replace(true);
    heard.expect("clean").await;
    assert_eq!(refused(&mut it.agent, 1).await, -32800);
    soon(it.done).await.expect("no panic").expect("a clean end");
    soon(it.agent.expect_end()).await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_never_ends_does_not_hold_up_the_end() {
    let (say, mut heard) = log();
    let (_end, may_end) = watch::channel(false);
    let mut it = attached(server(careful(say, may_end))).await;
    it.agent.send(&call(1, &it.id, "a", "waits", json!({}))).await;
    heard.expect("began").await;
    it.foreground.send(()).expect("the foreground waits");
    soon(it.done).await.expect("no panic").expect("a clean end");
    heard.expect("stopped, silent").await;
    heard.expect_silence();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_begins_after_the_removal_was_joined() {
    for round in 0..30_u64 {
        let removed = Arc::new(AtomicBool::new(false));
        let late = Arc::new(AtomicBool::new(false));
        let service = {
            let (removed, late) = (removed.clone(), late.clone());
            server(move |_, context| {
                late.fetch_or(removed.load(Ordering::SeqCst), Ordering::SeqCst);
                Box::pin(async move {
                    context.operation_cancellation().cancelled().await;
                    Ok(McpOutcome::Result(Value::Null))
                })
            })
        };
        let (mut agent, link) = greenroom_testkit::scripted::pair(1 << 16);
        tokio::spawn(greenroom::Client.connect_with(link, async move |cx| {
            let session = cx.build_session("/").with_mcp_server(service)?.block_task();
            session.start_session().await.expect_err("the agent refuses");
            removed.store(true, Ordering::SeqCst);
            std::future::pending::<greenroom::Result<()>>().await
        }));
        let setup = next(&mut agent).await;
        let (id, _) = declared(&setup);
        let calls = |range: std::ops::Range<u64>| -> String {
            range.map(|number| format!("{}\n", call(number, &id, &number.to_string(), "waits", json!({})))).collect()
        };
        let failed = json!({ "jsonrpc": "2.0", "id": setup["id"], "error": { "code": -32001, "message": "no" } });
        // Where the failure stands among the calls differs from round to round.
        agent.write(format!("{}{failed}\n{}", calls(0..round), calls(round..40))).await;
        let mut answered = Vec::new();
        for _ in 0..40 {
            let answer = next(&mut agent).await;
            assert_eq!(answer["error"]["code"], -33001, "{answer}");
            answered.push(answer["id"].as_u64().expect("a number"));
        }
        answered.sort_unstable();
        assert_eq!(answered, (0..40).collect::<Vec<_>>(), "each once");
        assert!(!late.load(Ordering::SeqCst), "round {round}: the service ran after it was removed");
    }
}
