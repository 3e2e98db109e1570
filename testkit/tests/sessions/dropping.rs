//! Sessions that are dropped while the agent waits for an answer: nobody will read its request, so it
//! is answered.

use std::time::Duration;

use greenroom::runtime::{Fault, RestartPolicy};
use greenroom::schema::{
    NewSessionRequest, NewSessionResponse, PromptRequest, PromptResponse, RequestPermissionRequest, StopReason,
};
use greenroom::{
    Agent, Client, ConnectionOptions, ConnectionTo, Origin, Responder, UntypedMessage, on_receive_request,
};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::support::{
    arrived, asked, client, coordinator, permission, plain, result, session, soon, stop, told, until, update, waiting,
};

/// Expects that the permission request `id` is answered, with an error.
async fn answered(agent: &mut Local, id: &str) {
    let answer = soon(agent.receive()).await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32603)), "{answer}");
}

/// Waits until no request of the client is open any more.
async fn nothing_pending(cx: &ConnectionTo<Agent>) {
    let pending = cx.tree().children().into_iter().find(|child| child.kind() == "pending").expect("an actor");
    until("every request has its answer", || pending.snapshot().in_flight == 0).await;
}

/// The prompt is open, and with it somebody who knows the session.
#[tokio::test(start_paused = true)]
async fn in_the_middle_of_a_turn_an_unread_request_is_answered() {
    let mut side = plain().await;
    let mut dropped = session(&mut side, "dropped").await;
    let mut other = session(&mut side, "other").await;
    dropped.send_prompt("Hi").expect("sent");
    let prompt = asked(&mut side.agent, "session/prompt").await;
    side.agent.send(&permission("p", "dropped")).await;
    arrived(&mut side.agent, &mut other, "other").await;
    drop(dropped);
    answered(&mut side.agent, "p").await;
    stop(&mut side.agent, &prompt, "refusal").await;
    nothing_pending(&side.cx).await;
    // The other one goes on.
    side.agent.send(&update("other", "still")).await;
    assert_eq!(told(soon(other.read_update()).await.expect("a message")), "still");
}

/// An agent that asks for permission in each turn, and tells how each turn ended.
fn asking(tell: mpsc::UnboundedSender<StopReason>) -> impl greenroom::ConnectTo<Client> {
    let mut opened = 0;
    Agent
        .builder()
        .on_receive_request(
            async move |_: NewSessionRequest, responder: Responder<NewSessionResponse>, _cx| {
                opened += 1;
                responder.respond(NewSessionResponse::new(format!("s{opened}")))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder: Responder<PromptResponse>, cx: ConnectionTo<Client>| {
                let ask = &permission("", &request.session_id.0)["params"];
                let ask: RequestPermissionRequest = serde_json::from_value(ask.clone())?;
                let decision = cx.send_request(ask);
                // Another session hears that the question is asked.
                cx.send_notification(UntypedMessage::new("session/update", update("s2", "asked")["params"].clone())?)?;
                let tell = tell.clone();
                cx.spawn(async move {
                    let reason = match decision.block_task().await {
                        Ok(_) => StopReason::EndTurn,
                        Err(_) => StopReason::Refusal,
                    };
                    let _ = tell.send(reason);
                    responder.respond(PromptResponse::new(reason))
                })
            },
            on_receive_request!(),
        )
}

#[tokio::test(start_paused = true)]
async fn an_agent_of_a_dropped_session_comes_to_the_end_of_its_turn() {
    let (tell, mut ended) = mpsc::unbounded_channel();
    Client
        .connect_with(asking(tell), async move |cx: ConnectionTo<Agent>| {
            let mut dropped = cx.build_session("/").block_task().start_session().await?;
            let mut other = cx.build_session("/").block_task().start_session().await?;
            dropped.send_prompt("Hi")?;
            assert_eq!(told(soon(other.read_update()).await?), "asked");
            drop(dropped);
            assert_eq!(soon(ended.recv()).await, Some(StopReason::Refusal));
            nothing_pending(&cx).await;
            Ok(())
        })
        .await
        .expect("no error");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_its_coordinator_has_not_seen_is_answered() {
    let mut side = plain().await;
    let mut other = session(&mut side, "other").await;
    let mut dropped = session(&mut side, "dropped").await;
    let node = coordinator(&side.cx);
    assert!(node.inject(Fault::Stall(Duration::from_secs(1))));
    dropped.send_prompt("Hi").expect("sent");
    asked(&mut side.agent, "session/prompt").await;
    side.agent.send(&permission("p", "dropped")).await;
    arrived(&mut side.agent, &mut other, "other").await;
    assert_eq!(waiting(&node), 2, "the turn and the request");
    drop(dropped);
    answered(&mut side.agent, "p").await;
}

/// A session that was opened again: who reads the older one may read what it has, and dropping it
/// answers the rest.
#[tokio::test(start_paused = true)]
async fn of_a_session_that_was_taken_over_too() {
    let mut side = plain().await;
    let mut other = session(&mut side, "other").await;
    let mut older = session(&mut side, "s").await;
    older.send_prompt("Hi").expect("sent");
    asked(&mut side.agent, "session/prompt").await;
    side.agent.send(&permission("read", "s")).await;
    side.agent.send(&permission("unread", "s")).await;
    arrived(&mut side.agent, &mut other, "other").await;
    let cx = side.cx.clone();
    let newer = tokio::spawn(async move { cx.load_session("s", "/").block_task().start_session().await });
    let load = asked(&mut side.agent, "session/load").await;
    side.agent.send(&result(&load, json!({}))).await;
    let _newer = newer.await.expect("no panic").expect("a session");
    // It is not answered before its reader is gone.
    let read = soon(older.read_update()).await.expect("a request");
    drop(read);
    answered(&mut side.agent, "read").await;
    drop(older);
    answered(&mut side.agent, "unread").await;
}

/// Who waits for a session that is being loaded is its only reader to be.
#[tokio::test(start_paused = true)]
async fn of_a_session_whose_load_nobody_waits_for_any_more() {
    let mut side = plain().await;
    let mut other = session(&mut side, "other").await;
    let cx = side.cx.clone();
    let load = tokio::spawn(async move { cx.load_session("s", "/").block_task().start_session().await });
    let id = asked(&mut side.agent, "session/load").await;
    side.agent.send(&permission("p", "s")).await;
    arrived(&mut side.agent, &mut other, "other").await;
    load.abort();
    let cancel = soon(side.agent.receive()).await;
    assert_eq!((&cancel["method"], &cancel["params"]["requestId"]), (&json!("$/cancel_request"), &id));
    answered(&mut side.agent, "p").await;
    // What it says later is for nobody, and its answer is no error.
    side.agent.send(&update("s", "late")).await;
    side.agent.send(&result(&id, json!({}))).await;
    nothing_pending(&side.cx).await;
}

/// A handler must not wait for a session, and does not get it.
#[tokio::test(start_paused = true)]
async fn of_a_session_that_a_handler_would_have_waited_for() {
    let (tell, mut failed) = mpsc::unbounded_channel();
    let client = Client.builder().on_receive_request(
        async move |_: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Agent>| {
            let error = cx.load_session("s", "/").block_task().start_session().await.expect_err("it cannot come");
            tell.send(error.origin()).expect("the test waits");
            responder.respond(Value::Null)
        },
        on_receive_request!(),
    );
    let (mut agent, link) = pair(4096);
    tokio::spawn(client.connect_to(link));
    agent.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "start" })).await;
    let load = asked(&mut agent, "session/load").await;
    assert_eq!(soon(failed.recv()).await, Some(Origin::WouldDeadlock));
    let cancel = soon(agent.receive()).await;
    assert_eq!((&cancel["method"], &cancel["params"]["requestId"]), (&json!("$/cancel_request"), &load));
    agent.expect(json!({ "jsonrpc": "2.0", "id": 1, "result": null })).await;
}

/// The coordinator that died too often may have had a request in its hands.
#[tokio::test(start_paused = true)]
async fn what_a_coordinator_had_when_it_died_too_often_is_read_before_the_error() {
    let mut options = ConnectionOptions::default();
    options.session_restart = RestartPolicy { deaths: 0, window: Duration::from_secs(1) };
    let mut side = client(options).await;
    let mut other = session(&mut side, "other").await;
    let mut failed = session(&mut side, "failed").await;
    let node = coordinator(&side.cx);
    assert!(node.inject(Fault::Stall(Duration::from_secs(1))));
    assert!(node.inject(Fault::PanicInside));
    failed.send_prompt("Hi").expect("sent");
    asked(&mut side.agent, "session/prompt").await;
    side.agent.send(&permission("p", "failed")).await;
    arrived(&mut side.agent, &mut other, "other").await;
    assert_eq!(waiting(&node), 2, "the turn and the request");
    let request = soon(failed.read_update()).await.expect("what it had");
    let error = soon(failed.read_update()).await.expect_err("the session failed");
    assert_eq!(error.data, Some(json!("the coordinator of this session died too often")));
    drop(request);
    answered(&mut side.agent, "p").await;
}
