//! Who keeps a coordination alive, and what its end does to whom.

use std::sync::Arc;

use greenroom::coordination::with_sessions;
use greenroom::runtime::Node;
use greenroom::{Error, is_connection_terminated, is_incoming_transport_closed};
use greenroom_testkit::scripted::{Local, pair};
use tokio::sync::oneshot;

use super::super::support::{asked, hello, initialized, result};
use super::{closing, coordinated, done, loaded, next, resuming, says, settle};

async fn handshake(agent: &mut Local) {
    let id = asked(agent, "initialize").await;
    agent.send(&result(&id, initialized())).await;
}

fn is_over(error: &Error) -> bool {
    is_incoming_transport_closed(error) || is_connection_terminated(error)
}

/// The handshake is done before there is an owner; the last owner's end is the transport's, whatever is
/// open.
#[tokio::test]
async fn the_last_owner_ends_the_foreground_without_waiting_for_answers() {
    let (mut agent, link) = pair(1 << 16);
    let ours = tokio::spawn(with_sessions(link, hello(), "/work", async |sessions| {
        let (kept, abandoned) = (sessions.load("kept"), sessions.load("abandoned"));
        drop(sessions);
        drop(abandoned);
        kept.await
    }));
    handshake(&mut agent).await;
    let kept = resuming(&mut agent, "kept").await;
    // Its load was dropped, its answer never comes.
    resuming(&mut agent, "abandoned").await;
    done(&mut agent, &kept).await;
    // The session that `work` returned is the last owner, so the foreground goes on: the agent is still
    // listened to.
    settle(&mut agent).await;
    ours.abort();
    assert!(ours.await.expect_err("aborted").is_cancelled());
    agent.expect_end().await;
}

#[tokio::test]
async fn what_was_released_before_the_end_is_still_sent() {
    let (mut agent, link) = pair(1 << 16);
    let ours = tokio::spawn(with_sessions(link, hello(), "/work", async |sessions| {
        let session = sessions.load("s").await?;
        let elsewhere = sessions.load("never answered");
        drop(sessions);
        drop(elsewhere);
        drop(session);
        Ok("done")
    }));
    handshake(&mut agent).await;
    let id = resuming(&mut agent, "s").await;
    done(&mut agent, &id).await;
    resuming(&mut agent, "never answered").await;
    closing(&mut agent, "s").await;
    // Neither the close nor the resume is answered: the end comes all the same.
    agent.expect_end().await;
    assert_eq!(ours.await.expect("no panic").expect("no error"), "done");
}

#[tokio::test]
async fn an_owner_that_outlives_the_work_goes_on_with_the_cleanup() {
    let (mut agent, link) = pair(1 << 16);
    let (give, keep) = oneshot::channel();
    let ours = tokio::spawn(with_sessions(link, hello(), "/work", async |sessions| {
        let session = sessions.load("s").await?;
        assert!(give.send(sessions).is_ok());
        drop(session);
        Ok(())
    }));
    handshake(&mut agent).await;
    let id = resuming(&mut agent, "s").await;
    done(&mut agent, &id).await;
    let close = closing(&mut agent, "s").await;
    settle(&mut agent).await;
    let kept = keep.await.expect("an owner");
    let again = kept.load("s");
    done(&mut agent, &close).await;
    let id = resuming(&mut agent, "s").await;
    done(&mut agent, &id).await;
    again.await.expect("a session");
    drop(kept);
    closing(&mut agent, "s").await;
    agent.expect_end().await;
    ours.await.expect("no panic").expect("no error");
}

#[tokio::test]
async fn the_caller_may_cancel_during_the_handshake() {
    let (mut agent, link) = pair(1 << 16);
    let ours = tokio::spawn(with_sessions(link, hello(), "/work", async |_sessions| -> greenroom::Result<()> {
        unreachable!("the handshake is never done")
    }));
    asked(&mut agent, "initialize").await;
    ours.abort();
    agent.expect_end().await;
}

#[tokio::test]
async fn the_end_of_the_input_is_told_behind_what_came_before() {
    let (mut side, sessions) = coordinated().await;
    let mut session = loaded(&mut side, &sessions, "s").await;
    let waiting = sessions.load("never answered");
    resuming(&mut side.agent, "never answered").await;
    side.agent.send(&says("s", "last words")).await;
    side.agent.close().await;
    assert_eq!(next(&mut session).await, "replayed");
    assert_eq!(next(&mut session).await, "last words");
    let end = session.next_update().await.expect_err("the end");
    assert!(is_over(&end), "{end:?}");
    let error = waiting.await.expect_err("the end");
    assert!(is_over(&error), "{error:?}");
    let error = sessions.load("late").await.expect_err("the end");
    assert!(is_over(&error), "{error:?}");
    sessions.ended().await;
    // The foreground goes on until it wants to end.
    drop(side.foreground);
}

#[tokio::test]
async fn the_end_of_the_foreground_fails_what_waits() {
    let (mut side, sessions) = coordinated().await;
    let mut session = loaded(&mut side, &sessions, "s").await;
    let waiting = sessions.load("never answered");
    resuming(&mut side.agent, "never answered").await;
    drop(side.foreground);
    assert_eq!(next(&mut session).await, "replayed");
    assert!(is_over(&session.next_update().await.expect_err("the end")));
    assert!(is_over(&waiting.await.expect_err("the end")));
    assert!(side.cx.coordinate_sessions("/work").is_err());
}

fn actors(root: &Arc<Node>) -> Vec<Arc<Node>> {
    root.flatten().into_iter().filter(|node| node.kind() == "coordination").collect()
}

#[tokio::test]
async fn a_coordination_that_dies_too_often_fails_alone() {
    let (mut side, sessions) = coordinated().await;
    let other = side.cx.coordinate_sessions("/work").expect("the connection runs");
    let mut session = loaded(&mut side, &sessions, "s").await;
    let waiting = sessions.load("waiting");
    resuming(&mut side.agent, "waiting").await;
    let root = side.cx.tree();
    let actor = actors(&root).first().expect("it is an actor of the tree").clone();
    // Three deaths in a minute are forgiven.
    while actor.outcome().is_none() {
        actor.kill();
        tokio::task::yield_now().await;
    }
    let error = waiting.await.expect_err("it failed");
    assert!(format!("{error:?}").contains("died too often"), "{error:?}");
    assert_eq!(next(&mut session).await, "replayed");
    assert!(session.next_update().await.is_err());
    sessions.ended().await;
    let mut session = loaded(&mut side, &other, "other").await;
    assert_eq!(next(&mut session).await, "replayed");
    assert_eq!(actors(&root).len(), 1, "it has left the tree");
    drop((session, other));
    closing(&mut side.agent, "other").await;
}
