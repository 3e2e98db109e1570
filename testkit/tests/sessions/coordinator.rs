//! The coordinators of sessions, broken on purpose.

use std::sync::Arc;
use std::time::Duration;

use greenroom::runtime::{Fault, Node, Outcome, RestartPolicy};
use greenroom::{ActiveSession, Agent, ConnectionOptions, ConnectionTo};
use serde_json::json;

use super::support::{Side, asked, client, open, plain, stop, told, update};

async fn sessions(side: &mut Side, count: usize) -> Vec<ActiveSession<'static, Agent>> {
    let mut all = Vec::new();
    for number in 0..count {
        let cx = side.cx.clone();
        let ours = tokio::spawn(async move { cx.build_session("/").block_task().start_session().await });
        open(&mut side.agent, &format!("s{number}")).await;
        all.push(ours.await.expect("no panic").expect("a session"));
    }
    all
}

fn supervisor(cx: &ConnectionTo<Agent>) -> Arc<Node> {
    cx.tree().children().into_iter().find(|child| child.kind() == "sessions").expect("there are sessions")
}

/// A name and a way to break an actor.
type Breaking = (&'static str, fn(&Arc<Node>) -> bool);

/// Waits until the actor at this place was started again.
async fn restarted(node: &Arc<Node>, before: u32) {
    while node.restarts() == before {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn every_session_is_an_actor_of_the_tree() {
    let mut side = plain().await;
    let mut all = sessions(&mut side, 3).await;
    let snapshot = side.cx.snapshot();
    let below = snapshot.children.iter().find(|child| child.kind == "sessions").expect("the supervisor");
    assert_eq!(below.children.iter().map(|child| child.kind).collect::<Vec<_>>(), ["session"; 3]);
    all.pop();
    assert_eq!(supervisor(&side.cx).children().len(), 2, "it leaves the tree with its session");
}

#[tokio::test]
async fn a_killed_coordinator_loses_nothing_and_leaves_the_others_alone() {
    let mut side = plain().await;
    let mut all = sessions(&mut side, 2).await;
    let nodes = supervisor(&side.cx).children();
    let faults: [Breaking; 4] = [
        ("kill", |node| node.kill()),
        ("stop", |node| node.stop()),
        ("panic", |node| node.inject(Fault::Panic)),
        ("panic inside", |node| node.inject(Fault::PanicInside)),
    ];
    // Three deaths in a minute are forgiven: each fault gets a session that did not die yet.
    let mut number = 0;
    for (round, (name, fault)) in faults.into_iter().enumerate() {
        let node = &nodes[round % 2];
        let (session, other) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
        all[session].send_prompt(name).expect("sent");
        let prompt = asked(&mut side.agent, "session/prompt").await;
        let before = node.restarts();
        for step in 0..20 {
            side.agent.send(&update(&format!("s{session}"), &format!("{name} {step}"))).await;
            if step == 10 {
                assert!(fault(node), "{name}: it runs");
            }
        }
        stop(&mut side.agent, &prompt, "end_turn").await;
        side.agent.send(&update(&format!("s{other}"), name)).await;
        assert_eq!(told(all[other].read_update().await.expect("the other's own")), name);
        for step in 0..20 {
            assert_eq!(told(all[session].read_update().await.expect("a message")), format!("{name} {step}"));
        }
        assert_eq!(told(all[session].read_update().await.expect("the end")), "EndTurn", "{name}");
        restarted(node, before).await;
        number += 1;
    }
    assert_eq!(number, 4);
}

#[tokio::test]
async fn a_killed_supervisor_loses_nothing() {
    let mut side = plain().await;
    let mut all = sessions(&mut side, 3).await;
    let supervisor = supervisor(&side.cx);
    for round in 0..3 {
        for (number, _) in all.iter().enumerate() {
            side.agent.send(&update(&format!("s{number}"), &format!("{round} before"))).await;
        }
        assert!(supervisor.kill());
        for (number, _) in all.iter().enumerate() {
            side.agent.send(&update(&format!("s{number}"), &format!("{round} after"))).await;
        }
        for session in &mut all {
            assert_eq!(told(session.read_update().await.expect("a message")), format!("{round} before"));
            assert_eq!(told(session.read_update().await.expect("a message")), format!("{round} after"));
        }
    }
    // New sessions find the new supervisor.
    let cx = side.cx.clone();
    let ours = tokio::spawn(async move { cx.build_session("/").block_task().start_session().await });
    open(&mut side.agent, "late").await;
    let mut late = ours.await.expect("no panic").expect("a session");
    side.agent.send(&update("late", "Hi")).await;
    assert_eq!(told(late.read_update().await.expect("a message")), "Hi");
}

#[tokio::test]
async fn a_coordinator_that_dies_too_often_takes_only_its_session_along() {
    let mut side = plain().await;
    let mut all = sessions(&mut side, 2).await;
    let nodes = supervisor(&side.cx).children();
    let mut deaths = 0;
    while deaths < 4 {
        let before = nodes[0].restarts();
        if nodes[0].kill() {
            deaths += 1;
            if deaths < 4 {
                restarted(&nodes[0], before).await;
            }
        }
        tokio::task::yield_now().await;
    }
    let error = all[0].read_update().await.expect_err("the session failed");
    assert_eq!(error.data, Some(json!("the coordinator of this session died too often")));
    assert!(all[0].send_prompt("more").is_err());
    side.agent.send(&update("s1", "fine")).await;
    assert_eq!(told(all[1].read_update().await.expect("the other's own")), "fine");
}

#[tokio::test]
async fn how_often_a_coordinator_may_die_is_an_option() {
    let mut options = ConnectionOptions::default();
    options.session_restart = RestartPolicy { deaths: 0, window: Duration::from_secs(1) };
    let mut side = client(options).await;
    let mut all = sessions(&mut side, 2).await;
    let nodes = supervisor(&side.cx).children();
    while !nodes[0].kill() {
        tokio::task::yield_now().await;
    }
    assert!(all[0].read_update().await.is_err(), "the first death is one too many");
    assert!(matches!(nodes[0].outcome(), Some(Outcome::Failed(_))), "the tree shows it");
    side.agent.send(&update("s1", "fine")).await;
    assert_eq!(told(all[1].read_update().await.expect("the other's own")), "fine");
}

#[tokio::test]
async fn thousands_of_sessions_come_and_go_and_leave_nothing() {
    let mut side = plain().await;
    let all = sessions(&mut side, 2000).await;
    assert_eq!(supervisor(&side.cx).children().len(), 2000);
    drop(all);
    let supervisor = supervisor(&side.cx);
    assert_eq!(supervisor.children().len(), 0);
    drop(side.foreground);
    side.cx.terminated().await;
}
