//! Loading and resuming sessions.

use greenroom::{Agent, Client, ConnectionTo, Error, Responder, UntypedMessage, on_receive_request};
use greenroom_testkit::scripted::pair;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::support::{Side, asked, plain, result, told, update};

/// Statement 80 and case C19: the route is there before the request is sent.
#[tokio::test]
async fn statement_80_everything_that_is_replayed_before_the_answer_is_read() {
    let Side { mut agent, cx, foreground } = plain().await;
    let ours = tokio::spawn(async move {
        let restored = cx.load_session("old", "/work").block_task().start_session().await?;
        let (mut session, response) = restored.into_parts();
        let mut seen = Vec::new();
        for _ in 0..501 {
            seen.push(told(session.read_update().await?));
        }
        Ok::<_, Error>((seen, response, session.modes().cloned()))
    });
    let request = agent.receive().await;
    assert_eq!(request["method"], "session/load");
    assert_eq!(request["params"]["sessionId"], "old");
    let mut all = String::new();
    for number in 0..500 {
        all += &format!("{}\n", update("old", &number.to_string()));
    }
    let modes = json!({ "currentModeId": "m", "availableModes": [] });
    all += &format!("{}\n", result(&request["id"], json!({ "modes": modes, "_meta": { "k": 1 } })));
    all += &format!("{}\n", update("old", "live"));
    agent.write(all).await;
    let (seen, response, modes) = ours.await.expect("no panic").expect("a session");
    let expected: Vec<_> = (0..500).map(|number| number.to_string()).chain(["live".to_owned()]).collect();
    assert_eq!(seen, expected);
    assert_eq!(response.meta.as_ref().and_then(|meta| meta.get("k")), Some(&json!(1)));
    assert_eq!(modes.map(|modes| modes.current_mode_id.0.to_string()).as_deref(), Some("m"));
    drop(foreground);
}

#[tokio::test]
async fn a_session_is_resumed() {
    let Side { mut agent, cx, foreground } = plain().await;
    let ours = tokio::spawn(async move { cx.resume_session("old", "/work").block_task().start_session().await });
    let request = agent.receive().await;
    assert_eq!((&request["method"], &request["params"]["cwd"]), (&json!("session/resume"), &json!("/work")));
    agent.send(&result(&request["id"], json!({}))).await;
    let restored = ours.await.expect("no panic").expect("a session");
    assert_eq!(&*restored.session().session_id().0, "old");
    assert!(restored.response().modes.is_none());
    drop(foreground);
}

#[tokio::test]
async fn a_session_that_cannot_be_restored_leaves_nothing_behind() {
    let Side { mut agent, cx, foreground } = plain().await;
    let held = cx.clone();
    let ours = tokio::spawn(async move { held.load_session("gone", "/").block_task().start_session().await });
    let id = asked(&mut agent, "session/load").await;
    agent.send(&update("gone", "of no use")).await;
    let error = json!({ "code": -32002, "message": "Resource not found", "data": { "sessionId": "gone" } });
    agent.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error })).await;
    let error = ours.await.expect("no panic").expect_err("it is gone");
    assert_eq!(error, Error::session_not_found("gone"));
    let sessions = cx.snapshot().children.into_iter().find(|child| child.kind == "sessions").expect("the supervisor");
    assert_eq!(sessions.children.len(), 0, "{sessions}");
    drop(foreground);
}

#[tokio::test]
async fn a_handler_restores_a_session_without_waiting() {
    let (tell, hear) = oneshot::channel();
    let mut tell = Some(tell);
    let client = Client.builder().on_receive_request(
        async move |_: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Agent>| {
            let tell = tell.take().expect("asked once");
            cx.load_session("old", "/").on_session_start(async move |mut restored| {
                let first = told(restored.session_mut().read_update().await?);
                tell.send(first).map_err(|_| Error::internal_error())
            })?;
            responder.respond(Value::Null)
        },
        on_receive_request!(),
    );
    let (mut agent, link) = pair(4096);
    tokio::spawn(client.connect_to(link));
    agent.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "start" })).await;
    let id = asked(&mut agent, "session/load").await;
    agent.expect(result(&json!(1), Value::Null)).await;
    agent.send(&update("old", "replayed")).await;
    agent.send(&result(&id, json!({}))).await;
    assert_eq!(hear.await.expect("told"), "replayed");
}

#[tokio::test]
async fn opening_a_session_again_takes_it_over() {
    let Side { mut agent, cx, foreground } = plain().await;
    let resume = |cx: ConnectionTo<Agent>| {
        tokio::spawn(async move { cx.resume_session("s", "/").block_task().start_session().await })
    };
    let first = resume(cx.clone());
    let id = asked(&mut agent, "session/resume").await;
    agent.send(&result(&id, json!({}))).await;
    let mut first = first.await.expect("no panic").expect("a session").into_session();
    agent.send(&update("s", "to the first")).await;
    assert_eq!(told(first.read_update().await.expect("a message")), "to the first");
    let second = resume(cx);
    let id = asked(&mut agent, "session/resume").await;
    agent.send(&update("s", "to the second")).await;
    agent.send(&result(&id, json!({}))).await;
    let mut second = second.await.expect("no panic").expect("a session").into_session();
    assert_eq!(told(second.read_update().await.expect("a message")), "to the second");
    let error = first.read_update().await.expect_err("it was taken over");
    assert_eq!(error.data, Some(json!("this session was opened again on the same connection")));
    // The end of the first is not the end of the second.
    drop(first);
    agent.send(&update("s", "still")).await;
    assert_eq!(told(second.read_update().await.expect("a message")), "still");
    drop(foreground);
}

/// What is replayed before the answer needs a reader, so the older handle has ended by then.
#[tokio::test]
async fn a_refused_load_has_taken_the_session_over_all_the_same() {
    let Side { mut agent, cx, foreground } = plain().await;
    let opening = cx.clone();
    let older = tokio::spawn(async move { opening.build_session("/").block_task().start_session().await });
    super::support::open(&mut agent, "s").await;
    let mut older = older.await.expect("no panic").expect("a session");
    agent.send(&update("s", "before")).await;
    assert_eq!(told(older.read_update().await.expect("a message")), "before");
    let load = tokio::spawn(async move { cx.load_session("s", "/").block_task().start_session().await });
    let id = asked(&mut agent, "session/load").await;
    agent.send(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32002, "message": "gone" } })).await;
    assert_eq!(i32::from(load.await.expect("no panic").expect_err("refused").code), -32002);
    let taken = older.read_update().await.expect_err("it was taken over");
    assert_eq!(taken.data, Some(json!("this session was opened again on the same connection")));
    drop(foreground);
}
