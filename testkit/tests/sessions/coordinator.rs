//! The coordinators of sessions, broken on purpose.

use std::time::Duration;

use greenroom::runtime::{Fault, Outcome, RestartPolicy};
use greenroom::{ActiveSession, Agent, ConnectionOptions};
use serde_json::json;

use super::support::{
    FAULTS, Side, arrived, asked, client, coordinator, open, plain, restarted, session, soon, stop, supervisor, told,
    until, update, waiting,
};

async fn sessions(side: &mut Side, count: usize) -> Vec<ActiveSession<'static, Agent>> {
    let mut all = Vec::new();
    for number in 0..count {
        all.push(session(side, &format!("s{number}")).await);
    }
    all
}

/// How long a coordinator is held up.
const MOMENT: Duration = Duration::from_millis(1);

/// Coordinators may die as often as they like.
fn forgiving() -> ConnectionOptions {
    let mut options = ConnectionOptions::default();
    options.session_restart = RestartPolicy { deaths: usize::MAX, window: Duration::from_secs(1) };
    options
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

/// A coordinator that has nothing to do is passed by, so each of these is held up first: what it dies
/// with waits in its mailbox.
#[tokio::test(start_paused = true)]
async fn a_killed_coordinator_loses_nothing_and_leaves_the_others_alone() {
    let mut side = plain().await;
    let mut all = sessions(&mut side, 2).await;
    let nodes = supervisor(&side.cx).children();
    // Three deaths in a minute are forgiven: each fault gets a session that did not die too often yet.
    for (round, (name, fault)) in FAULTS.into_iter().enumerate() {
        let node = &nodes[round % 2];
        let (session, other) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
        assert!(node.inject(Fault::Stall(MOMENT)), "{name}: it runs");
        all[session].send_prompt(name).expect("sent");
        let prompt = asked(&mut side.agent, "session/prompt").await;
        let before = node.restarts();
        for step in 0..20 {
            side.agent.send(&update(&format!("s{session}"), &format!("{name} {step}"))).await;
            if step == 10 {
                // The other session is not held up, and what came before this has arrived.
                side.agent.send(&update(&format!("s{other}"), name)).await;
                assert_eq!(told(soon(all[other].read_update()).await.expect("the other's own")), name);
                assert_eq!(waiting(node), 12, "{name}: the turn, and what was said");
                assert!(fault(node), "{name}: it runs");
            }
        }
        stop(&mut side.agent, &prompt, "end_turn").await;
        for step in 0..20 {
            let said = told(soon(all[session].read_update()).await.expect("a message"));
            assert_eq!(said, format!("{name} {step}"));
        }
        assert_eq!(told(soon(all[session].read_update()).await.expect("the end")), "EndTurn", "{name}");
        restarted(node, before).await;
    }
}

/// What it knew before it died, it still knows: whose end this is.
#[tokio::test(start_paused = true)]
async fn a_killed_coordinator_still_knows_its_turns() {
    let mut side = client(forgiving()).await;
    let mut other = session(&mut side, "other").await;
    let mut session = session(&mut side, "s").await;
    let node = coordinator(&side.cx);
    for (name, fault) in FAULTS {
        session.send_prompt(name).expect("sent");
        let prompt = asked(&mut side.agent, "session/prompt").await;
        // Items are worked off as soon as they are taken out of the mailbox.
        until("the turn has begun", || waiting(&node) == 0).await;
        assert!(node.inject(Fault::Stall(MOMENT)), "{name}: it runs");
        side.agent.send(&update("s", "in the turn")).await;
        stop(&mut side.agent, &prompt, "end_turn").await;
        side.agent.send(&update("s", "behind it")).await;
        side.agent.send(&update("other", name)).await;
        assert_eq!(told(soon(other.read_update()).await.expect("the other's own")), name);
        assert_eq!(waiting(&node), 2, "{name}: the end of the turn, and what is behind it");
        let before = node.restarts();
        assert!(fault(&node), "{name}: it runs");
        for expected in ["in the turn", "EndTurn", "behind it"] {
            assert_eq!(told(soon(session.read_update()).await.expect("a message")), expected, "{name}");
        }
        restarted(&node, before).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_killed_supervisor_loses_nothing() {
    let mut side = plain().await;
    let mut all = sessions(&mut side, 3).await;
    let supervisor = supervisor(&side.cx);
    let nodes = supervisor.children();
    let mut other = session(&mut side, "other").await;
    for round in 0..3 {
        let name = |number: usize| format!("s{number}");
        for (number, session) in all.iter_mut().enumerate() {
            // Only a kill ends this.
            assert!(nodes[number].inject(Fault::Stall(Duration::from_secs(1_000_000))), "it runs");
            session.send_prompt(round).expect("sent");
            let prompt = asked(&mut side.agent, "session/prompt").await;
            side.agent.send(&update(&name(number), &format!("{round} before"))).await;
            stop(&mut side.agent, &prompt, "end_turn").await;
        }
        arrived(&mut side.agent, &mut other, "other").await;
        for node in &nodes {
            assert_eq!(waiting(node), 3, "a turn, what was said, the end of the turn");
        }
        assert!(supervisor.kill());
        for number in 0..all.len() {
            side.agent.send(&update(&name(number), &format!("{round} after"))).await;
        }
        for session in &mut all {
            for expected in [format!("{round} before"), "EndTurn".to_owned(), format!("{round} after")] {
                assert_eq!(told(soon(session.read_update()).await.expect("a message")), expected);
            }
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
