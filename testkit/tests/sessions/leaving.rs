//! Sessions that were taken over or dropped, and have not worked off yet what they were told: whatever
//! dies meanwhile, their readers hear the end, and their requests are answered.
//!
//! The clock is paused: as long as anybody has something to do, no back-off is over.

use std::sync::Arc;
use std::time::Duration;

use greenroom::runtime::{Fault, Node, Status};
use greenroom::{ActiveSession, Agent};
use serde_json::json;

use super::support::{
    Side, arrived, asked, coordinator, permission, plain, restarted, result, session, soon, supervisor, told, until,
    update, waiting,
};

/// A stall that only a kill ends.
const FOR_EVER: Duration = Duration::from_secs(1_000_000);

/// Opens the session once more; who read it before is replaced as soon as this returns.
async fn taken_over(side: &mut Side, id: &str) -> ActiveSession<'static, Agent> {
    let (cx, id) = (side.cx.clone(), id.to_owned());
    let newer = tokio::spawn(async move { cx.load_session(id, "/").block_task().start_session().await });
    let load = asked(&mut side.agent, "session/load").await;
    side.agent.send(&result(&load, json!({}))).await;
    newer.await.expect("no panic").expect("a session").into_session()
}

/// Expects that the next thing its reader hears is that somebody else reads the session now.
async fn hears_the_end(reader: &mut ActiveSession<'static, Agent>) {
    let error = soon(reader.read_update()).await.expect_err("the end");
    assert_eq!(error.data, Some(json!("this session was opened again on the same connection")));
}

async fn is_up(node: &Node) {
    until("it is up", || node.snapshot().status == Status::Up).await;
}

/// Kills an actor again and again, until its supervisor waits before it starts it once more.
async fn kill_into_back_off(node: &Arc<Node>) {
    for _ in 0..2 {
        is_up(node).await;
        let before = node.restarts();
        assert!(node.kill());
        restarted(node, before).await;
    }
    is_up(node).await;
    assert!(node.kill());
    until("it is down", || node.snapshot().status != Status::Up).await;
}

/// The supervisor is down: neither of the two sessions was ever started.
#[tokio::test(start_paused = true)]
async fn the_connection_ends_before_the_older_one_was_started() {
    let mut side = plain().await;
    let _first = session(&mut side, "first").await;
    kill_into_back_off(&supervisor(&side.cx)).await;
    let mut older = session(&mut side, "s").await;
    let node = coordinator(&side.cx);
    let mut newer = taken_over(&mut side, "s").await;
    assert_eq!((node.snapshot().status, waiting(&node)), (Status::Down, 1), "its end waits");
    assert!(side.cx.tree().kill());
    hears_the_end(&mut older).await;
    let error = soon(newer.read_update()).await.expect_err("the end of the connection");
    assert!(greenroom::is_connection_terminated(&error), "{error:?}");
}

/// Who would start it again dies, with what it knew.
#[tokio::test(start_paused = true)]
async fn the_supervisor_dies_while_the_older_one_waits_for_its_restart() {
    let mut side = plain().await;
    let mut older = session(&mut side, "s").await;
    let node = coordinator(&side.cx);
    kill_into_back_off(&node).await;
    let newer = taken_over(&mut side, "s").await;
    // The supervisor does one thing after the other: it has seen the death.
    is_up(&coordinator(&side.cx)).await;
    assert_eq!((node.snapshot().status, waiting(&node)), (Status::Down, 1), "its end waits");
    assert!(supervisor(&side.cx).kill());
    hears_the_end(&mut older).await;
    drop(newer);
}

#[tokio::test(start_paused = true)]
async fn the_supervisor_dies_before_the_older_one_has_ended() {
    let mut side = plain().await;
    let mut older = session(&mut side, "s").await;
    let node = coordinator(&side.cx);
    is_up(&node).await;
    assert!(node.inject(Fault::Stall(FOR_EVER)));
    let newer = taken_over(&mut side, "s").await;
    assert_eq!((node.snapshot().status, waiting(&node)), (Status::Up, 1), "its end waits");
    assert!(supervisor(&side.cx).kill());
    hears_the_end(&mut older).await;
    drop(newer);
}

/// The connection ends while an older one is about to end: what it was told comes before that.
#[tokio::test(start_paused = true)]
async fn the_connection_dies_before_the_older_one_has_ended() {
    let mut side = plain().await;
    let mut other = session(&mut side, "other").await;
    let mut older = session(&mut side, "s").await;
    let node = coordinator(&side.cx);
    is_up(&node).await;
    assert!(node.inject(Fault::Stall(FOR_EVER)));
    older.send_prompt("Hi").expect("sent");
    asked(&mut side.agent, "session/prompt").await;
    side.agent.send(&update("s", "last words")).await;
    arrived(&mut side.agent, &mut other, "other").await;
    let newer = taken_over(&mut side, "s").await;
    assert_eq!((node.snapshot().status, waiting(&node)), (Status::Up, 3), "a turn, a message, its end");
    assert!(side.cx.tree().kill());
    assert_eq!(told(soon(older.read_update()).await.expect("what came before")), "last words");
    hears_the_end(&mut older).await;
    drop(newer);
}

/// Nobody reads a session that was dropped, but the agent waits for the answer to what it asked there.
#[tokio::test(start_paused = true)]
async fn the_supervisor_dies_before_a_dropped_one_has_answered_its_requests() {
    let mut side = plain().await;
    let mut other = session(&mut side, "other").await;
    let mut dropped = session(&mut side, "dropped").await;
    let node = coordinator(&side.cx);
    is_up(&node).await;
    assert!(node.inject(Fault::Stall(FOR_EVER)));
    dropped.send_prompt("Hi").expect("sent");
    asked(&mut side.agent, "session/prompt").await;
    side.agent.send(&permission("p", "dropped")).await;
    arrived(&mut side.agent, &mut other, "other").await;
    drop(dropped);
    assert_eq!(waiting(&node), 3, "a turn, a request, its end");
    assert!(supervisor(&side.cx).kill());
    let answer = soon(side.agent.receive()).await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("p"), &json!(-32603)));
}
