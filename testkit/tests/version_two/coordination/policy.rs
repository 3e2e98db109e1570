//! The load policy, and what is shown of a session.

use std::future::Future as _;
use std::task::{Context, Waker};

use greenroom::coordination::SessionLoad;
use greenroom::schema::v2;
use greenroom::{Agent, Client, Handled, Origin, V2ConnectionTo, on_receive_notification};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::super::support::{connected, result};
use super::{closing, coordinated, done, loaded, next, refuse, resuming, says, settle, text, texts};

/// Whether the load waits.
fn waits(load: &mut SessionLoad) -> bool {
    std::pin::Pin::new(load).poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[tokio::test]
async fn concurrent_loads_share_one_resume_and_one_log() {
    let (mut side, sessions) = coordinated().await;
    let (mut first, mut second) = (sessions.load("s"), sessions.clone().load("s"));
    // One directory, and always from the start: `resuming` compares.
    let id = resuming(&mut side.agent, "s").await;
    side.agent.send(&says("s", "one")).await;
    side.agent.send(&says("s", "two")).await;
    settle(&mut side.agent).await;
    assert!(waits(&mut first) && waits(&mut second), "no partial replay is shown");
    side.agent.send(&says("s", "three")).await;
    side.agent.send(&result(&id, json!({ "_meta": { "complete": true } }))).await;
    let (mut first, mut second) = (first.await.expect("a session"), second.await.expect("a session"));
    for session in [&first, &second] {
        assert_eq!(texts(session), ["one", "two", "three"]);
        assert_eq!(session.response().meta.as_ref().expect("the complete answer")["complete"], true);
    }
    // Live updates go on in the same log, also for who comes later.
    side.agent.send(&says("s", "live")).await;
    for session in [&mut first, &mut second] {
        for expected in ["one", "two", "three", "live"] {
            assert_eq!(next(session).await, expected);
        }
    }
    let mut third = sessions.load("s").await.expect("a session that is open already");
    assert_eq!(next(&mut third).await, "one");
    settle(&mut side.agent).await;
}

#[tokio::test]
async fn dropping_some_loads_leaves_the_others_alone_and_the_last_closes() {
    let (mut side, sessions) = coordinated().await;
    let (first, second) = (sessions.load("s"), sessions.load("s"));
    let id = resuming(&mut side.agent, "s").await;
    drop(first);
    done(&mut side.agent, &id).await;
    let mut second = second.await.expect("a session");
    let third = sessions.load("s").await.expect("a session");
    drop(third);
    settle(&mut side.agent).await;
    side.agent.send(&says("s", "still here")).await;
    assert_eq!(next(&mut second).await, "still here");
    drop(second);
    let close = closing(&mut side.agent, "s").await;
    done(&mut side.agent, &close).await;
    settle(&mut side.agent).await;
}

#[tokio::test]
async fn a_result_that_was_never_consumed_is_released_too() {
    let (mut side, sessions) = coordinated().await;
    let (taken, untaken) = (sessions.load("s"), sessions.load("s"));
    let id = resuming(&mut side.agent, "s").await;
    done(&mut side.agent, &id).await;
    drop(taken.await.expect("a session"));
    settle(&mut side.agent).await;
    // Delivered, and never looked at.
    drop(untaken);
    let close = closing(&mut side.agent, "s").await;
    done(&mut side.agent, &close).await;
}

#[tokio::test]
async fn an_abandoned_load_drains_its_resume_and_closes() {
    let (mut side, sessions) = coordinated().await;
    let (first, second) = (sessions.load("s"), sessions.load("s"));
    let id = resuming(&mut side.agent, "s").await;
    side.agent.send(&says("s", "for nobody")).await;
    drop((first, second));
    // Nothing is cancelled and nothing is closed before the answer.
    settle(&mut side.agent).await;
    side.agent.send(&says("s", "for nobody")).await;
    done(&mut side.agent, &id).await;
    let close = closing(&mut side.agent, "s").await;
    done(&mut side.agent, &close).await;
    let mut fresh = loaded(&mut side, &sessions, "s").await;
    assert_eq!((next(&mut fresh).await.as_str(), fresh.log().len()), ("replayed", 1));
}

#[tokio::test]
async fn a_replacement_waits_for_the_old_resume_and_a_successful_close() {
    let (mut side, sessions) = coordinated().await;
    let first = sessions.load("s");
    let id = resuming(&mut side.agent, "s").await;
    side.agent.send(&says("s", "old")).await;
    drop(first);
    let mut replacement = sessions.load("s");
    settle(&mut side.agent).await;
    done(&mut side.agent, &id).await;
    let close = closing(&mut side.agent, "s").await;
    let mut another = sessions.load("s");
    assert!(waits(&mut replacement) && waits(&mut another));
    settle(&mut side.agent).await;
    // What the agent says on its way out belongs to nobody.
    side.agent.send(&says("s", "closing")).await;
    done(&mut side.agent, &close).await;
    let id = resuming(&mut side.agent, "s").await;
    side.agent.send(&says("s", "fresh")).await;
    done(&mut side.agent, &id).await;
    let (replacement, another) = (replacement.await.expect("a session"), another.await.expect("a session"));
    assert_eq!((texts(&replacement), texts(&another)), (vec!["fresh".to_owned()], vec!["fresh".to_owned()]));
}

#[tokio::test]
async fn a_refused_resume_fails_its_loads_and_a_later_one_retries() {
    let (mut side, sessions) = coordinated().await;
    let (first, second) = (sessions.load("s"), sessions.load("s"));
    let id = resuming(&mut side.agent, "s").await;
    refuse(&mut side.agent, &id, "not now").await;
    for load in [first, second] {
        assert_eq!(load.await.expect_err("refused").message, "not now");
    }
    // Not resumed, so not closed.
    settle(&mut side.agent).await;
    let retried = loaded(&mut side, &sessions, "s").await;
    assert_eq!(texts(&retried), ["replayed"]);
}

#[tokio::test]
async fn a_refused_resume_that_was_abandoned_lets_the_waiting_load_retry() {
    let (mut side, sessions) = coordinated().await;
    let first = sessions.load("s");
    let id = resuming(&mut side.agent, "s").await;
    drop(first);
    let waiting = sessions.load("s");
    refuse(&mut side.agent, &id, "not now").await;
    let id = resuming(&mut side.agent, "s").await;
    done(&mut side.agent, &id).await;
    waiting.await.expect("a session");
}

#[tokio::test]
async fn a_refused_close_blocks_that_session_until_the_next_connection() {
    let (mut side, sessions) = coordinated().await;
    let session = loaded(&mut side, &sessions, "s").await;
    drop(session);
    let close = closing(&mut side.agent, "s").await;
    let queued = sessions.load("s");
    refuse(&mut side.agent, &close, "busy").await;
    assert_eq!(queued.await.expect_err("queued").message, "busy");
    assert_eq!(sessions.load("s").await.expect_err("blocked").message, "busy");
    // No automatic retry; and every other session goes on.
    settle(&mut side.agent).await;
    loaded(&mut side, &sessions, "other").await;
    let (mut next_side, next_sessions) = coordinated().await;
    loaded(&mut next_side, &next_sessions, "s").await;
}

#[tokio::test]
async fn other_sessions_and_requests_belong_to_the_handlers_of_the_connection() {
    let (seen, mut updates) = mpsc::unbounded_channel();
    let (asked, asking) = oneshot::channel();
    let mut asked = Some(asked);
    let builder = Client.v2().on_receive_notification(
        async move |update: v2::UpdateSessionNotification, cx: V2ConnectionTo<Agent>| {
            let _ = seen.send((update.session_id.0.to_string(), text(update.update.clone())));
            if let Some(asked) = asked.take() {
                // A handler that waits for a load of its own connection would wait for ever.
                let sessions = cx.coordinate_sessions("/work").expect("the connection runs");
                let _ = asked.send(sessions.load("s").await.map(drop));
            }
            Ok(Handled::No { message: (update, cx), retry: false })
        },
        on_receive_notification!(),
    );
    let mut side = connected(builder).await;
    side.agent.send(&says("mine", "hello")).await;
    assert_eq!(updates.recv().await, Some(("mine".to_owned(), "hello".to_owned())));
    let error = asking.await.expect("an outcome").expect_err("inside a handler");
    assert_eq!(error.origin(), Origin::WouldDeadlock);
    let sessions = side.cx.coordinate_sessions("/work").expect("the connection runs");
    let load = sessions.load("shared");
    let id = loop {
        // The load of the handler resumed its session as well, and is abandoned.
        let request = side.agent.receive().await;
        if request["params"]["sessionId"] == "shared" {
            break request["id"].clone();
        }
    };
    done(&mut side.agent, &id).await;
    let mut session = load.await.expect("a session");
    side.agent.send(&says("shared", "passed on")).await;
    assert_eq!(next(&mut session).await, "passed on");
    assert_eq!(updates.recv().await, Some(("shared".to_owned(), "passed on".to_owned())));
    let prompt = session.commands(&side.cx).send_prompt("Hi");
    let request = side.agent.receive().await;
    assert_eq!((&request["method"], &request["params"]["sessionId"]), (&json!("session/prompt"), &json!("shared")));
    side.agent.send(&result(&request["id"], json!({ "messageId": "m1" }))).await;
    prompt.block_task().await.expect("accepted");
}
