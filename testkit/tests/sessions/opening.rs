//! Opening a session, in the foreground and in the background.

use greenroom::{Agent, Client, ConnectTo, ConnectionTo, Error, Origin, Responder, UntypedMessage, on_receive_request};
use greenroom_testkit::scripted::pair;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::support::{Side, asked, open, plain, result, stop, told, update};

#[tokio::test]
async fn a_session_is_opened_and_read_to_the_end_of_its_turn() {
    let Side { mut agent, cx, foreground } = plain().await;
    let ours = tokio::spawn(async move {
        let session = cx.build_session("/work").block_task();
        session
            .run_until(async |mut session| {
                session.send_prompt("Hi")?;
                session.read_to_string().await
            })
            .await
    });
    let request = agent.receive().await;
    assert_eq!((&request["method"], &request["params"]["cwd"]), (&json!("session/new"), &json!("/work")));
    agent.send(&result(&request["id"], json!({ "sessionId": "s" }))).await;
    let prompt = agent.receive().await;
    let text = json!([{ "type": "text", "text": "Hi" }]);
    assert_eq!(prompt["params"], json!({ "sessionId": "s", "prompt": text }));
    agent.send(&update("s", "Hel")).await;
    agent.send(&update("s", "lo")).await;
    stop(&mut agent, &prompt["id"], "end_turn").await;
    assert_eq!(ours.await.expect("no panic").expect("no error"), "Hello");
    drop(foreground);
}

#[tokio::test]
async fn what_the_agent_offers_is_kept() {
    let Side { mut agent, cx, foreground } = plain().await;
    let ours = tokio::spawn(async move { cx.build_session_cwd()?.block_task().start_session().await });
    let id = asked(&mut agent, "session/new").await;
    let modes = json!({ "currentModeId": "m", "availableModes": [{ "id": "m", "name": "M" }] });
    agent.send(&result(&id, json!({ "sessionId": "s", "modes": modes, "_meta": { "k": 1 } }))).await;
    let session = ours.await.expect("no panic").expect("a session");
    assert_eq!(&*session.session_id().0, "s");
    assert_eq!(session.modes().map(|modes| modes.available_modes.len()), Some(1));
    assert_eq!(session.meta().and_then(|meta| meta.get("k")), Some(&json!(1)));
    assert!(session.config_options().is_none());
    assert_eq!(&*session.response().session_id.0, "s");
    drop(foreground);
}

#[tokio::test]
async fn the_agents_refusal_is_the_callers_error() {
    let Side { mut agent, cx, foreground } = plain().await;
    let ours = tokio::spawn(async move { cx.build_session("/").block_task().start_session().await });
    let id = asked(&mut agent, "session/new").await;
    let error = json!({ "code": -32000, "message": "Authentication required" });
    agent.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error })).await;
    let error = ours.await.expect("no panic").expect_err("refused");
    assert_eq!(error, Error::auth_required());
    drop(foreground);
}

/// Statement 79, and case C18.
#[tokio::test]
async fn statement_79_no_update_around_the_answer_is_lost_and_none_comes_twice() {
    let Side { mut agent, cx, foreground } = plain().await;
    for round in 0..1000 {
        let name = format!("s{round}");
        let ours = {
            let cx = cx.clone();
            tokio::spawn(async move {
                let mut session = cx.build_session("/").block_task().start_session().await?;
                let mut seen = Vec::new();
                while seen.len() < 4 {
                    seen.push(told(session.read_update().await?));
                }
                Ok::<_, Error>(seen)
            })
        };
        let id = asked(&mut agent, "session/new").await;
        // One write: nobody can do anything in between.
        let all = [
            update(&name, "before 1"),
            update(&name, "before 2"),
            result(&id, json!({ "sessionId": name })),
            update(&name, "after 1"),
            update(&name, "after 2"),
        ];
        agent.write(all.map(|message| format!("{message}\n")).concat()).await;
        let seen = ours.await.expect("no panic").expect("a session");
        assert_eq!(seen, ["before 1", "before 2", "after 1", "after 2"], "round {round}");
    }
    drop(foreground);
}

/// Statement 79: the callback runs outside of the barrier and may wait for later traffic.
#[tokio::test]
async fn statement_79_a_handler_opens_a_session_without_waiting() {
    let (told_text, hear) = oneshot::channel();
    let mut told_text = Some(told_text);
    let client = Client.builder().on_receive_request(
        async move |_: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Agent>| {
            let told_text = told_text.take().expect("asked once");
            cx.build_session("/").on_session_start(async move |mut session| {
                session.send_prompt("from a handler")?;
                let text = session.read_to_string().await?;
                told_text.send(text).map_err(|_| Error::internal_error())
            })?;
            responder.respond(json!("started"))
        },
        on_receive_request!(),
    );
    let (mut agent, link) = pair(4096);
    tokio::spawn(client.connect_to(link));
    agent.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "start" })).await;
    let id = asked(&mut agent, "session/new").await;
    agent.expect(result(&json!(1), json!("started"))).await;
    agent.send(&result(&id, json!({ "sessionId": "s" }))).await;
    let prompt = asked(&mut agent, "session/prompt").await;
    agent.send(&update("s", "text")).await;
    stop(&mut agent, &prompt, "end_turn").await;
    assert_eq!(hear.await.expect("told"), "text");
}

#[tokio::test]
async fn waiting_for_a_session_in_a_handler_fails_at_once() {
    let client = Client.builder().on_receive_request(
        async |_: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Agent>| {
            let error = cx.build_session("/").block_task().start_session().await.expect_err("it cannot come");
            assert_eq!(error.origin(), Origin::WouldDeadlock);
            responder.respond(error.data.unwrap_or_default()["method"].clone())
        },
        on_receive_request!(),
    );
    let (mut agent, link) = pair(4096);
    tokio::spawn(client.connect_to(link));
    agent.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "start" })).await;
    let new = asked(&mut agent, "session/new").await;
    let cancel = agent.receive().await;
    assert_eq!(cancel["params"]["requestId"], new);
    agent.expect(result(&json!(1), json!("session/new"))).await;
}

#[tokio::test]
async fn dropping_the_future_asks_the_agent_to_cancel() {
    let Side { mut agent, cx, foreground } = plain().await;
    let ours = tokio::spawn(async move { cx.build_session("/").block_task().start_session().await });
    let id = asked(&mut agent, "session/new").await;
    ours.abort();
    let cancel = agent.receive().await;
    assert_eq!((&cancel["method"], &cancel["params"]["requestId"]), (&json!("$/cancel_request"), &id));
    drop(foreground);
}

#[tokio::test]
async fn a_runner_lives_as_long_as_its_session() {
    // `run_until` polls what is attached beside the setup and drops it with the session; the
    // attached part here is the unit runner, so only the scope is seen.
    let Side { mut agent, cx, foreground } = plain().await;
    let held = cx.clone();
    let ours = tokio::spawn(async move {
        held.build_session("/").block_task().run_until(async |session| Ok(session.session_id().clone())).await
    });
    open(&mut agent, "short").await;
    assert_eq!(&*ours.await.expect("no panic").expect("an id").0, "short");
    // Its place is gone: a late update is neither kept nor an error.
    agent.send(&update("short", "late")).await;
    let again = tokio::spawn(async move { cx.build_session("/").block_task().start_session().await });
    open(&mut agent, "next").await;
    assert_eq!(&*again.await.expect("no panic").expect("a session").session_id().0, "next");
    drop(foreground);
}

/// An in-process agent of this crate, not a script.
fn echo() -> impl ConnectTo<Client> {
    use greenroom::schema::{NewSessionRequest, NewSessionResponse, PromptRequest, PromptResponse, StopReason};
    Agent
        .builder()
        .on_receive_request(
            async |_: NewSessionRequest, responder: Responder<NewSessionResponse>, _cx| {
                responder.respond(NewSessionResponse::new("one"))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: PromptRequest, responder: Responder<PromptResponse>, cx: ConnectionTo<Client>| {
                cx.send_notification(UntypedMessage::new(
                    "session/update",
                    update(&request.session_id.0, "echo")["params"].clone(),
                )?)?;
                responder.respond(PromptResponse::new(StopReason::EndTurn))
            },
            on_receive_request!(),
        )
}

#[tokio::test]
async fn two_endpoints_of_this_crate_hold_a_session() {
    let text = Client
        .connect_with(echo(), async |cx: ConnectionTo<Agent>| {
            let mut session = cx.build_session_cwd()?.block_task().start_session().await?;
            session.send_prompt("Hi")?;
            session.read_to_string().await
        })
        .await
        .expect("no error");
    assert_eq!(text, "echo");
}
