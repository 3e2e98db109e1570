//! Cancelling what a session does.

use std::time::Duration;

use greenroom::schema::CancelNotification;
use greenroom::{ActiveSession, Agent, Client, ConnectionTo, Error, ErrorCode, on_receive_request};
use greenroom_testkit::scripted::pair;
use serde_json::json;
use tokio::sync::mpsc;

use super::support::{Side, asked, open, permission, plain, result, stop, told, update};

async fn prompted(side: &mut Side) -> (ActiveSession<'static, Agent>, serde_json::Value) {
    let cx = side.cx.clone();
    let ours = tokio::spawn(async move { cx.build_session("/").block_task().start_session().await });
    open(&mut side.agent, "s").await;
    let mut session = ours.await.expect("no panic").expect("a session");
    session.send_prompt("work").expect("sent");
    let prompt = asked(&mut side.agent, "session/prompt").await;
    (session, prompt)
}

fn cancelled(session: &str) -> serde_json::Value {
    json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } })
}

/// Cases C22 and C23.
#[tokio::test]
async fn a_cancelled_turn_ends_as_the_agent_says() {
    let mut side = plain().await;
    let (mut session, prompt) = prompted(&mut side).await;
    session.cancel().expect("sent");
    side.agent.expect(cancelled("s")).await;
    side.agent.send(&update("s", "final words")).await;
    stop(&mut side.agent, &prompt, "cancelled").await;
    assert_eq!(told(session.read_update().await.expect("a message")), "final words");
    assert_eq!(told(session.read_update().await.expect("the end")), "Cancelled");
}

/// Case C24: the open permission request of the session is answered, that of another is not.
#[tokio::test]
async fn open_permission_requests_of_the_session_are_answered_as_cancelled() {
    for by_hand in [false, true] {
        let mut side = plain().await;
        let (session, _prompt) = prompted(&mut side).await;
        side.agent.send(&permission("mine", "s")).await;
        let cx = side.cx.clone();
        let other = tokio::spawn(async move { cx.build_session("/").block_task().start_session().await });
        open(&mut side.agent, "other").await;
        let mut other = other.await.expect("no panic").expect("a session");
        side.agent.send(&permission("other", "other")).await;
        let held = other.read_update().await.expect("a request");
        if by_hand {
            side.cx.send_notification(CancelNotification::new("s")).expect("sent");
        } else {
            session.cancel().expect("sent");
        }
        side.agent.expect(cancelled("s")).await;
        side.agent.expect(result(&json!("mine"), json!({ "outcome": { "outcome": "cancelled" } }))).await;
        // The other one is still open: dropping it answers it with an error.
        drop(held);
        assert_eq!(side.agent.receive().await["error"]["code"], -32603);
    }
}

/// A registered handler holds the request, not the session's reader.
#[tokio::test]
async fn a_handler_that_holds_a_permission_request_is_told() {
    let (held, mut holding) = mpsc::unbounded_channel();
    let client = Client.builder().on_receive_request(
        async move |_: greenroom::schema::RequestPermissionRequest, responder, _cx: ConnectionTo<Agent>| {
            held.send(responder).map_err(|_| Error::internal_error())
        },
        on_receive_request!(),
    );
    let (mut agent, link) = pair(4096);
    let ours = tokio::spawn(client.connect_with(link, async move |cx: ConnectionTo<Agent>| {
        let responder: greenroom::Responder<greenroom::schema::RequestPermissionResponse> =
            holding.recv().await.expect("a request");
        cx.send_notification(CancelNotification::new("s"))?;
        responder.cancellation().cancelled().await;
        // The user's decision comes too late.
        let outcome = greenroom::schema::RequestPermissionOutcome::Cancelled;
        responder.respond(greenroom::schema::RequestPermissionResponse::new(outcome))
    }));
    agent.send(&permission("p", "s")).await;
    agent.expect(cancelled("s")).await;
    agent.expect(result(&json!("p"), json!({ "outcome": { "outcome": "cancelled" } }))).await;
    ours.await.expect("no panic").expect("no error");
    agent.expect_end().await;
}

/// Case C25: the turn is bounded, and the next prompt is served.
#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_that_does_not_end_is_given_up() {
    let mut side = plain().await;
    let (mut session, first) = prompted(&mut side).await;
    session.cancel().expect("sent");
    session.cancel().expect("sent again");
    side.agent.expect(cancelled("s")).await;
    side.agent.expect(cancelled("s")).await;
    let began = tokio::time::Instant::now();
    let error = session.read_update().await.expect_err("given up");
    assert_eq!(error.code, ErrorCode::RequestCancelled);
    assert_eq!(error.data.expect("data")["milliseconds"], 30_000);
    assert_eq!(began.elapsed().as_secs(), 30);
    let cancel = side.agent.receive().await;
    assert_eq!((&cancel["method"], &cancel["params"]["requestId"]), (&json!("$/cancel_request"), &first));
    session.send_prompt("next").expect("sent");
    let second = asked(&mut side.agent, "session/prompt").await;
    // The answer to the first comes too late for anybody; the second has its own end.
    stop(&mut side.agent, &first, "cancelled").await;
    side.agent.send(&update("s", "second")).await;
    stop(&mut side.agent, &second, "end_turn").await;
    assert_eq!(session.read_to_string().await.expect("text"), "second");
}

/// Case C25: a permission request is open, and the agent goes on as if nothing had happened.
#[tokio::test(start_paused = true)]
async fn an_agent_that_keeps_trying_after_the_cancellation_does_not_prolong_its_turn() {
    let mut side = plain().await;
    let (mut session, first) = prompted(&mut side).await;
    side.agent.send(&permission("before", "s")).await;
    let held = session.read_update().await.expect("a request");
    let began = tokio::time::Instant::now();
    session.cancel().expect("sent");
    side.agent.expect(cancelled("s")).await;
    let refused = json!({ "outcome": { "outcome": "cancelled" } });
    side.agent.expect(result(&json!("before"), refused)).await;
    drop(held);
    // Every five seconds one more tool call and one more question. Nobody is there any more who
    // would decide, so a question gets an answer as soon as the reader sees it.
    for attempt in 0..5 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let id = format!("again {attempt}");
        side.agent.send(&update("s", "another tool")).await;
        side.agent.send(&permission(&id, "s")).await;
        assert_eq!(told(session.read_update().await.expect("a message")), "another tool");
        drop(session.read_update().await.expect("a request"));
        let answer = side.agent.receive().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32603)));
    }
    let error = session.read_update().await.expect_err("given up");
    assert_eq!(error.code, ErrorCode::RequestCancelled);
    assert_eq!(began.elapsed().as_secs(), 30, "nothing that the agent did moved the deadline");
    let cancel = side.agent.receive().await;
    assert_eq!((&cancel["method"], &cancel["params"]["requestId"]), (&json!("$/cancel_request"), &first));
    session.send_prompt("next").expect("sent");
    let second = asked(&mut side.agent, "session/prompt").await;
    side.agent.send(&update("s", "served")).await;
    stop(&mut side.agent, &second, "end_turn").await;
    assert_eq!(session.read_to_string().await.expect("text"), "served");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_one_turn_does_not_hit_the_next() {
    let mut side = plain().await;
    let (mut session, first) = prompted(&mut side).await;
    session.cancel().expect("sent");
    side.agent.expect(cancelled("s")).await;
    stop(&mut side.agent, &first, "cancelled").await;
    assert_eq!(told(session.read_update().await.expect("the end")), "Cancelled");
    session.send_prompt("next").expect("sent");
    let second = asked(&mut side.agent, "session/prompt").await;
    let early = tokio::time::timeout(Duration::from_secs(60), session.read_update()).await;
    assert!(early.is_err(), "the first deadline is long over: {early:?}");
    stop(&mut side.agent, &second, "end_turn").await;
    assert_eq!(told(session.read_update().await.expect("the end")), "EndTurn");
}
