//! What the reader of a session gets, and what it does not.

use std::time::Duration;

use greenroom::schema::SessionNotification;
use greenroom::util::MatchDispatch;
use greenroom::{
    Agent, ConnectionOptions, Dispatch, Error, ErrorCode, HandleDispatchFrom, Handled, Origin, Result, SessionMessage,
};
use greenroom::{Client, ConnectionTo, is_incoming_transport_closed};
use greenroom_testkit::scripted::pair;
use serde_json::json;

use super::support::{asked, client, permission, plain, result, session, stop, told, update};

#[tokio::test]
async fn the_error_of_a_prompt_reaches_the_reader_and_the_session_goes_on() {
    let mut side = plain().await;
    let mut session = session(&mut side, "s").await;
    session.send_prompt("one").expect("sent");
    let id = asked(&mut side.agent, "session/prompt").await;
    side.agent.send(&update("s", "so far")).await;
    let error = json!({ "code": -32099, "message": "out of tokens", "data": { "limit": 3 } });
    side.agent.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error })).await;
    assert_eq!(told(session.read_update().await.expect("the text")), "so far");
    let error = session.read_update().await.expect_err("the agent's error");
    assert_eq!((i32::from(error.code), error.data), (-32099, Some(json!({ "limit": 3 }))));
    session.send_prompt("two").expect("sent");
    let id = asked(&mut side.agent, "session/prompt").await;
    stop(&mut side.agent, &id, "max_tokens").await;
    assert_eq!(told(session.read_update().await.expect("the end")), "MaxTokens");
}

#[tokio::test]
async fn ends_of_turns_keep_their_place_between_the_messages() {
    let mut side = plain().await;
    let mut session = session(&mut side, "s").await;
    for turn in 0..3 {
        session.send_prompt(turn).expect("sent");
    }
    for turn in 0..3 {
        let id = asked(&mut side.agent, "session/prompt").await;
        side.agent.send(&update("s", &format!("turn {turn}"))).await;
        stop(&mut side.agent, &id, "end_turn").await;
    }
    let mut seen = Vec::new();
    for _ in 0..6 {
        seen.push(told(session.read_update().await.expect("a message")));
    }
    assert_eq!(seen, ["turn 0", "EndTurn", "turn 1", "EndTurn", "turn 2", "EndTurn"]);
}

#[tokio::test]
async fn the_reader_answers_what_no_handler_takes() {
    let mut side = plain().await;
    let mut session = session(&mut side, "s").await;
    side.agent.send(&permission("p", "s")).await;
    let SessionMessage::SessionMessage(message) = session.read_update().await.expect("a request") else {
        panic!("a request of the session");
    };
    MatchDispatch::new(message)
        .if_request(async |request: greenroom::schema::RequestPermissionRequest, responder| {
            let option = request.options[0].option_id.clone();
            responder.respond(greenroom::schema::RequestPermissionResponse::new(
                greenroom::schema::RequestPermissionOutcome::Selected(
                    greenroom::schema::SelectedPermissionOutcome::new(option),
                ),
            ))
        })
        .await
        .otherwise(async |other| panic!("something else: {other:?}"))
        .await
        .expect("answered");
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "yes" } });
    side.agent.expect(result(&json!("p"), outcome)).await;
}

/// Case C48, and the first half of C50: sessions do not wait for each other.
#[tokio::test]
async fn a_session_that_nobody_reads_leaves_the_others_alone() {
    let mut side = plain().await;
    let unread = session(&mut side, "unread").await;
    let mut read = session(&mut side, "read").await;
    side.agent.send(&permission("open", "unread")).await;
    // Far more than the connection's credit.
    let line = "x".repeat(64 * 1024);
    for _ in 0..64 {
        side.agent.send(&update("unread", &line)).await;
    }
    read.send_prompt("Hi").expect("sent");
    let id = asked(&mut side.agent, "session/prompt").await;
    side.agent.send(&update("read", "still here")).await;
    stop(&mut side.agent, &id, "end_turn").await;
    assert_eq!(read.read_to_string().await.expect("text"), "still here");
    drop(unread);
    // Dropping it answers the request that it held.
    let answer = side.agent.receive().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("open"), &json!(-32603)));
}

#[tokio::test]
async fn a_flooded_session_fails_alone_and_says_so() {
    let mut options = ConnectionOptions::default();
    options.session_cap = 64 * 1024;
    let mut side = client(options).await;
    let mut flooded = session(&mut side, "flooded").await;
    let mut other = session(&mut side, "other").await;
    let line = "x".repeat(1000);
    for _ in 0..100 {
        side.agent.send(&update("flooded", &line)).await;
    }
    side.agent.send(&update("other", "fine")).await;
    assert_eq!(told(other.read_update().await.expect("its own")), "fine");
    let mut read = 0;
    let error = loop {
        match flooded.read_update().await {
            Ok(_) => read += 1,
            Err(error) => break error,
        }
    };
    assert!((30..100).contains(&read), "what fitted is there: {read}");
    assert_eq!(error.origin(), Origin::Overflow, "{error:?}");
    assert!(flooded.send_prompt("more").is_err(), "it has failed");
}

#[tokio::test]
async fn the_end_of_the_connection_reaches_every_reader() {
    let mut side = plain().await;
    let mut waiting = session(&mut side, "waiting").await;
    let mut prompted = session(&mut side, "prompted").await;
    prompted.send_prompt("Hi").expect("sent");
    asked(&mut side.agent, "session/prompt").await;
    side.agent.send(&update("waiting", "last words")).await;
    side.agent.close().await;
    assert_eq!(told(waiting.read_update().await.expect("what came before")), "last words");
    let error = waiting.read_update().await.expect_err("the end");
    assert!(is_incoming_transport_closed(&error), "{error:?}");
    assert_eq!(waiting.read_update().await.expect_err("for ever").code, ErrorCode::InternalError);
    let error = prompted.read_update().await.expect_err("the end");
    assert!(is_incoming_transport_closed(&error), "{error:?}");
    let error = prompted.send_prompt("late").expect_err("nobody reads it");
    assert!(is_incoming_transport_closed(&error), "{error:?}");
}

#[tokio::test]
async fn the_end_of_the_foreground_reaches_every_reader() {
    let mut side = plain().await;
    let mut session = session(&mut side, "s").await;
    drop(side.foreground);
    let error = session.read_update().await.expect_err("the end");
    assert!(greenroom::is_connection_terminated(&error), "{error:?}");
}

/// Cases C44 and C47.
#[tokio::test]
async fn messages_of_unknown_and_ended_sessions_are_no_error() {
    let mut side = plain().await;
    let first = session(&mut side, "reused").await;
    drop(first);
    side.agent.send(&update("reused", "late")).await;
    side.agent.send(&permission("late", "reused")).await;
    assert_eq!(side.agent.receive().await["error"]["code"], -32601);
    side.agent.send(&update("never opened", "odd")).await;
    // An agent that gives an id twice: the new session does not see what was meant for the old.
    let mut second = session(&mut side, "reused").await;
    side.agent.send(&update("reused", "fresh")).await;
    assert_eq!(told(second.read_update().await.expect("its own")), "fresh");
}

/// Case C47: an update of a session that nobody opened goes to the handlers of the connection.
#[tokio::test]
async fn an_update_of_a_session_that_was_never_opened_is_for_the_handlers() {
    let (mut agent, link) = pair(1 << 16);
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(
        Client
            .builder()
            .on_receive_notification(
                async move |note: SessionNotification, _cx: ConnectionTo<Agent>| {
                    tell.send(note.session_id.to_string()).map_err(|_| greenroom::Error::internal_error())
                },
                greenroom::on_receive_notification!(),
            )
            .connect_to(link),
    );
    agent.send(&update("never opened", "odd")).await;
    assert_eq!(told.recv().await.as_deref(), Some("never opened"));
}

/// Takes updates of every session before the sessions do.
struct Earlier;

impl HandleDispatchFrom<Agent> for Earlier {
    async fn handle_dispatch_from(&mut self, message: Dispatch, _: ConnectionTo<Agent>) -> Result<Handled<Dispatch>> {
        match message {
            Dispatch::Notification(note) if note.params["update"]["content"]["text"] == "taken" => Ok(Handled::Yes),
            message => Ok(Handled::No { message, retry: false }),
        }
    }
}

#[tokio::test]
async fn handlers_that_were_added_before_the_session_come_first() {
    let mut side = plain().await;
    let _before = side.cx.add_dynamic_handler(Earlier).expect("runs");
    let mut one = session(&mut side, "s").await;
    side.agent.send(&update("s", "taken")).await;
    side.agent.send(&update("s", "left")).await;
    assert_eq!(told(one.read_update().await.expect("a message")), "left");
    drop(one);
    drop(_before);
    let mut two = session(&mut side, "t").await;
    let _after = side.cx.add_dynamic_handler(Earlier).expect("runs");
    side.agent.send(&update("t", "taken")).await;
    assert_eq!(told(two.read_update().await.expect("a message")), "taken", "the session was there before");
}

#[tokio::test(start_paused = true)]
async fn reading_is_cancel_safe() {
    let mut side = plain().await;
    let mut session = session(&mut side, "s").await;
    let early = tokio::time::timeout(Duration::from_millis(10), session.read_update()).await;
    assert!(early.is_err(), "nothing came yet");
    side.agent.send(&update("s", "later")).await;
    assert_eq!(told(session.read_update().await.expect("a message")), "later");
    let _: Result<(), Error> = Ok(());
}
