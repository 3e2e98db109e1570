//! Agents that are newer than we are, or do odd things, and applications that leave at odd moments.

use std::time::Duration;

use greenroom::{Agent, ConnectionTo, Error};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::support::*;

/// An update of this kind, in session `s`.
fn odd(update: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } })
}

/// Everything up to the end of the turn, but what this side cannot read.
#[tokio::test]
async fn updates_that_cannot_be_read_take_nothing_else_along() {
    let mut side = plain().await;
    let mut session = session(&mut side, "s").await;
    for strange in [
        json!({ "sessionUpdate": "from_the_future", "content": { "type": "text", "text": "no" } }),
        json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "hologram" } }),
        json!({ "sessionUpdate": "agent_message_chunk", "content": "no" }),
        json!({ "sessionUpdate": 7 }),
        json!(null),
    ] {
        session.send_prompt("go").expect("sent");
        let id = asked(&mut side.agent, "session/prompt").await;
        side.agent.send(&update("s", "before, ")).await;
        side.agent.send(&odd(strange.clone())).await;
        side.agent.send(&update("s", "behind")).await;
        stop(&mut side.agent, &id, "end_turn").await;
        let text = session.read_to_string().await;
        assert_eq!(text.expect("the text of the turn"), "before, behind", "{strange}");
    }
}

#[tokio::test]
async fn a_turn_that_failed_leaves_nothing_in_the_next() {
    let mut side = plain().await;
    let mut session = session(&mut side, "s").await;
    session.send_prompt("one").expect("sent");
    session.send_prompt("two").expect("sent");
    let (one, two) = (asked(&mut side.agent, "session/prompt").await, asked(&mut side.agent, "session/prompt").await);
    side.agent.send(&update("s", "of the first")).await;
    side.agent.send(&json!({ "jsonrpc": "2.0", "id": one, "error": { "code": -32000, "message": "no" } })).await;
    side.agent.send(&update("s", "of the second")).await;
    stop(&mut side.agent, &two, "end_turn").await;
    assert_eq!(i32::from(session.read_to_string().await.expect_err("refused").code), -32000);
    assert_eq!(session.read_to_string().await.expect("a text"), "of the second");
}

/// Whoever drops a session in the middle of a turn hears nothing more, and hurts nobody.
#[tokio::test]
async fn a_session_that_is_dropped_in_a_turn_leaves_the_others_alone() {
    let mut side = plain().await;
    let (mut left, mut stays) = (session(&mut side, "s").await, session(&mut side, "other").await);
    left.send_prompt("go").expect("sent");
    let id = asked(&mut side.agent, "session/prompt").await;
    side.agent.send(&update("s", "said")).await;
    drop(left);
    // What comes late: an update, a question, the end of the turn.
    side.agent.send(&update("s", "late")).await;
    side.agent.send(&permission("p", "s")).await;
    stop(&mut side.agent, &id, "end_turn").await;
    let answer = timeout(Duration::from_secs(10), side.agent.receive()).await.expect("nobody is left to answer it");
    assert_eq!((&answer["id"], answer["error"].is_object()), (&json!("p"), true), "{answer}");
    stays.send_prompt("go").expect("sent");
    let id = asked(&mut side.agent, "session/prompt").await;
    side.agent.send(&update("other", "alive")).await;
    stop(&mut side.agent, &id, "end_turn").await;
    assert_eq!(stays.read_to_string().await.expect("a text"), "alive");
}

/// An agent that gives one id twice: the newer session has it, and each turn keeps its owner.
#[tokio::test]
async fn an_id_that_is_given_twice_belongs_to_the_newer_session() {
    let mut side = plain().await;
    let mut older = session(&mut side, "s").await;
    older.send_prompt("of the older").expect("sent");
    let first = asked(&mut side.agent, "session/prompt").await;
    side.agent.send(&update("s", "to the older")).await;
    let mut newer = session(&mut side, "s").await;
    newer.send_prompt("of the newer").expect("sent");
    let second = asked(&mut side.agent, "session/prompt").await;
    side.agent.send(&update("s", "to the newer")).await;
    stop(&mut side.agent, &first, "max_tokens").await;
    stop(&mut side.agent, &second, "end_turn").await;
    assert_eq!(told(newer.read_update().await.expect("a message")), "to the newer");
    assert_eq!(told(newer.read_update().await.expect("the end of its own turn")), "EndTurn");
    assert_eq!(told(older.read_update().await.expect("what came before")), "to the older");
    let taken = older.read_update().await.expect_err("it was taken over");
    assert_eq!(taken.data, Some(json!("this session was opened again on the same connection")));
    assert!(older.send_prompt("again").is_err());
    drop(older);
    side.agent.send(&update("s", "still")).await;
    assert_eq!(told(newer.read_update().await.expect("a message")), "still");
}

/// Loads, prompts and drops of one id, all at once: the last load has the session.
#[tokio::test]
async fn loads_of_one_session_may_come_all_at_once() {
    let mut side = plain().await;
    let load = |cx: ConnectionTo<Agent>| {
        tokio::spawn(async move {
            let mut session = cx.load_session("s", "/").block_task().start_session().await?.into_session();
            session.send_prompt("go")?;
            session.read_to_string().await
        })
    };
    let loads: Vec<_> = (0..8).map(|_| load(side.cx.clone())).collect();
    let (mut loaded, mut prompts) = (0, 0);
    while loaded < 8 || prompts == 0 {
        let request = side.agent.receive().await;
        let answer = match request["method"].as_str() {
            Some("session/load") => {
                loaded += 1;
                json!({})
            }
            Some("session/prompt") => {
                prompts += 1;
                json!({ "stopReason": "end_turn" })
            }
            other => panic!("{other:?}"),
        };
        side.agent.send(&result(&request["id"], answer)).await;
    }
    let mut read = 0;
    for load in loads {
        match load.await.expect("no panic") {
            Ok(text) => {
                assert_eq!(text, "");
                read += 1;
            }
            Err(error) => {
                let why = error.data.as_ref().and_then(Value::as_str).unwrap_or_default();
                assert!(why.contains("opened again"), "{error:?}");
            }
        }
    }
    assert!(read > 0, "the last one has it");
    // Nothing of them is left: the same id serves once more.
    let mut again = session(&mut side, "s").await;
    again.send_prompt("go").expect("sent");
    loop {
        let request = side.agent.receive().await;
        side.agent.send(&result(&request["id"], json!({ "stopReason": "end_turn" }))).await;
        if request["params"]["prompt"][0]["text"] == "go" {
            break;
        }
    }
    assert_eq!(again.read_to_string().await.expect("a text"), "");
}

/// The error of the work is the caller's, and the session goes with it.
#[tokio::test]
async fn work_that_fails_takes_only_its_session_along() {
    let mut side = plain().await;
    let cx = side.cx.clone();
    let work = tokio::spawn(async move {
        let session = cx.build_session("/").block_task();
        session
            .run_until(async |mut session| {
                session.send_prompt("go")?;
                let text = session.read_to_string().await?;
                Err::<(), _>(Error::invalid_params().data(text))
            })
            .await
    });
    open(&mut side.agent, "s").await;
    let id = asked(&mut side.agent, "session/prompt").await;
    side.agent.send(&update("s", "told")).await;
    stop(&mut side.agent, &id, "end_turn").await;
    assert_eq!(work.await.expect("no panic").expect_err("its own"), Error::invalid_params().data("told"));
    // A refusal of the agent is the caller's too, and the work is not begun.
    let cx = side.cx.clone();
    let refused = tokio::spawn(async move {
        cx.build_session("/").block_task().run_until(async |_| -> Result<(), Error> { panic!("not begun") }).await
    });
    let id = asked(&mut side.agent, "session/new").await;
    side.agent.send(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32000, "message": "no" } })).await;
    assert_eq!(i32::from(refused.await.expect("no panic").expect_err("refused").code), -32000);
    let mut other = session(&mut side, "other").await;
    side.agent.send(&update("s", "late")).await;
    side.agent.send(&update("other", "alive")).await;
    assert_eq!(told(other.read_update().await.expect("a message")), "alive");
}
