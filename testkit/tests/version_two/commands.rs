//! Sessions of version 2: opening them, and the commands of a handle.

use greenroom::schema::v2;
use greenroom::{
    Agent, Client, Error, Responder, UntypedMessage, V2ConnectionTo, V2Session, on_receive_notification,
    on_receive_request,
};
use greenroom_testkit::scripted::Local;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::support::*;

async fn opened(side: &mut Side, id: &str) -> V2Session<Agent> {
    let opening = side.cx.build_session("/work").start_session();
    let asked = asked(&mut side.agent, "session/new").await;
    side.agent.send(&result(&asked, json!({ "sessionId": id }))).await;
    opening.block_task().await.expect("a session").into_session()
}

/// Nothing but this notification was sent.
async fn next_is(agent: &mut Local, cx: &V2ConnectionTo<Agent>, marker: &str) {
    cx.send_notification(UntypedMessage::new(marker, json!({})).expect("JSON")).expect("sent");
    assert_eq!(agent.receive().await["method"], marker);
}

#[tokio::test]
async fn sessions_are_opened_with_their_complete_answers() {
    let mut side = client().await;
    let new = side.cx.build_session_cwd().expect("a directory").start_session();
    let id = asked(&mut side.agent, "session/new").await;
    side.agent.send(&result(&id, json!({ "sessionId": "s", "_meta": { "k": 1 } }))).await;
    let (session, response) = new.block_task().await.expect("a session").into_parts();
    assert_eq!((&*session.session_id().0, &response.meta.expect("meta")["k"]), ("s", &json!(1)));

    let resumed = side.cx.resume_session("old", "/work").start_session();
    let request = side.agent.receive().await;
    assert_eq!((&request["method"], &request["params"]["sessionId"]), (&json!("session/resume"), &json!("old")));
    side.agent.send(&result(&request["id"], json!({}))).await;
    assert_eq!(&*resumed.block_task().await.expect("a session").session().session_id().0, "old");

    let refused = side.cx.build_session("/").start_session();
    let id = asked(&mut side.agent, "session/new").await;
    side.agent.send(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32000, "message": "no" } })).await;
    assert_eq!(i32::from(refused.block_task().await.expect_err("refused").code), -32000);
}

#[cfg(feature = "unstable_session_fork")]
#[tokio::test]
async fn a_copy_has_the_id_of_the_answer() {
    let mut side = client().await;
    let copy = side.cx.fork_session("source", "/work").start_session();
    let request = side.agent.receive().await;
    assert_eq!((&request["method"], &request["params"]["sessionId"]), (&json!("session/fork"), &json!("source")));
    side.agent.send(&result(&request["id"], json!({ "sessionId": "copy" }))).await;
    assert_eq!(&*copy.block_task().await.expect("a session").session().session_id().0, "copy");
}

#[tokio::test]
async fn the_commands_of_a_session_carry_its_id() {
    let mut side = client().await;
    let session = opened(&mut side, "s").await;
    let prompt = session.send_prompt("Hi");
    let request = side.agent.receive().await;
    assert_eq!(request["params"], json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "Hi" }] }));
    side.agent.send(&result(&request["id"], json!({ "messageId": "m1" }))).await;
    assert_eq!(&*prompt.block_task().await.expect("accepted").message_id.0, "m1");
    let close = session.clone().close();
    let request = side.agent.receive().await;
    assert_eq!((&request["method"], &request["params"]), (&json!("session/close"), &json!({ "sessionId": "s" })));
    side.agent.send(&result(&request["id"], json!({}))).await;
    close.block_task().await.expect("closed");
}

/// An agent that has inserted a message answers so, whatever is cancelled meanwhile.
#[tokio::test]
async fn statement_28_a_success_stays_a_success_although_the_request_was_cancelled() {
    let agent = Agent
        .v2()
        .on_receive_request(
            async |initialize: v2::InitializeRequest, responder: Responder<v2::InitializeResponse>, _cx| {
                let info = v2::Implementation::new("agent", "1");
                responder.respond(v2::InitializeResponse::new(initialize.protocol_version, info))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |_: v2::PromptRequest, responder: Responder<v2::PromptResponse>, cx: V2ConnectionTo<Client>| {
                cx.spawn(async move {
                    responder.cancellation().cancelled().await;
                    responder.respond(v2::PromptResponse::new("inserted"))
                })
            },
            on_receive_request!(),
        );
    let mut peer = serve(agent);
    peer.send(&initialize(1, json!(2))).await;
    assert_eq!(peer.receive().await["id"], 1);
    peer.send(&request(2, "session/prompt", json!({ "sessionId": "s", "prompt": [] }))).await;
    peer.send(&note("$/cancel_request", json!({ "requestId": 2 }))).await;
    peer.expect(result(&json!(2), json!({ "messageId": "inserted" }))).await;
}

#[tokio::test]
async fn statement_29_cancelling_active_work_names_the_session_and_no_request() {
    let mut side = client().await;
    let session = opened(&mut side, "s").await;
    let prompt = session.send_prompt("work");
    let id = asked(&mut side.agent, "session/prompt").await;
    session.cancel_active_work().expect("sent");
    side.agent.expect(note("session/cancel", json!({ "sessionId": "s" }))).await;
    next_is(&mut side.agent, &side.cx, "_marker").await;
    side.agent.send(&result(&id, json!({ "messageId": "m" }))).await;
    prompt.block_task().await.expect("accepted all the same");
}

#[tokio::test]
async fn statement_30_the_end_of_cancelled_work_is_an_update_of_the_session() {
    let (told, mut updates) = mpsc::unbounded_channel();
    let builder = Client.v2().on_receive_notification(
        async move |update: v2::UpdateSessionNotification, _cx: V2ConnectionTo<Agent>| {
            told.send(update).map_err(|_| Error::internal_error())
        },
        on_receive_notification!(),
    );
    let mut side = connected(builder).await;
    let session = opened(&mut side, "s").await;
    session.cancel_active_work().expect("sent");
    side.agent.expect(note("session/cancel", json!({ "sessionId": "s" }))).await;
    side.agent.send(&idle("s", "cancelled")).await;
    let update = updates.recv().await.expect("told").update;
    let v2::SessionUpdate::StateUpdate(v2::StateUpdate::Idle(idle)) = update else { panic!("idle: {update:?}") };
    assert_eq!(idle.stop_reason, Some(v2::StopReason::Cancelled));
}

#[tokio::test]
async fn statement_31_permissions_are_resolved_and_elicitations_are_not() {
    let (held, mut holding) = mpsc::unbounded_channel();
    let builder = Client.v2().on_receive_request(
        async move |request: UntypedMessage, responder: Responder<Value>, _cx: V2ConnectionTo<Agent>| {
            held.send((request.method, responder)).map_err(|_| Error::internal_error())
        },
        on_receive_request!(),
    );
    let mut side = connected(builder).await;
    let session = opened(&mut side, "s").await;
    let params = json!({ "sessionId": "s", "toolCall": { "toolCallId": "t" }, "options": [] });
    side.agent.send(&request("permission", "session/request_permission", params.clone())).await;
    let mut other = params;
    other["sessionId"] = json!("other");
    side.agent.send(&request("other", "session/request_permission", other)).await;
    side.agent.send(&request("elicitation", "elicitation/create", json!({ "sessionId": "s" }))).await;
    let mut responders = Vec::new();
    for _ in 0..3 {
        responders.push(holding.recv().await.expect("a request").1);
    }
    session.cancel_active_work().expect("sent");
    side.agent.expect(note("session/cancel", json!({ "sessionId": "s" }))).await;
    side.agent.expect(result(&json!("permission"), json!({ "outcome": { "outcome": "cancelled" } }))).await;
    let open: Vec<_> = responders.iter().map(|responder| responder.cancellation().is_cancelled()).collect();
    assert_eq!(open, [true, false, false]);
    // The agent cancels the elicitation itself, and whoever holds it answers.
    side.agent.send(&note("$/cancel_request", json!({ "requestId": "elicitation" }))).await;
    responders[2].cancellation().cancelled().await;
    for responder in responders.drain(1..) {
        responder.respond(json!("by hand")).expect("sent");
    }
    side.agent.expect(result(&json!("other"), json!("by hand"))).await;
    side.agent.expect(result(&json!("elicitation"), json!("by hand"))).await;
}

/// The other trigger: the agent cancels its own permission request.
#[tokio::test]
async fn a_permission_request_that_the_agent_cancels_is_answered_as_cancelled() {
    let (held, mut holding) = mpsc::unbounded_channel();
    let builder = Client.v2().on_receive_request(
        async move |_: UntypedMessage, responder: Responder<Value>, _cx: V2ConnectionTo<Agent>| {
            held.send(responder).map_err(|_| Error::internal_error())
        },
        on_receive_request!(),
    );
    let mut side = connected(builder).await;
    let params = json!({ "sessionId": "s", "toolCall": { "toolCallId": "t" }, "options": [] });
    side.agent.send(&request("p", "session/request_permission", params)).await;
    let responder = holding.recv().await.expect("a request");
    side.agent.send(&note("$/cancel_request", json!({ "requestId": "p" }))).await;
    side.agent.expect(result(&json!("p"), json!({ "outcome": { "outcome": "cancelled" } }))).await;
    assert!(responder.cancellation().is_cancelled());
    drop(responder);
    next_is(&mut side.agent, &side.cx, "_marker").await;
}

/// What an agent sends before it answers a close comes before the answer.
#[tokio::test]
async fn statement_32_final_updates_come_before_the_answer_to_a_close() {
    let (told, mut order) = mpsc::unbounded_channel();
    let updates = told.clone();
    let builder = Client.v2().on_receive_notification(
        async move |_: v2::UpdateSessionNotification, _cx: V2ConnectionTo<Agent>| {
            updates.send("idle").map_err(|_| Error::internal_error())
        },
        on_receive_notification!(),
    );
    let mut side = connected(builder).await;
    let session = opened(&mut side, "s").await;
    let uninserted = session.send_prompt("never inserted");
    let inserted = session.send_prompt("inserted");
    let ids = [asked(&mut side.agent, "session/prompt").await, asked(&mut side.agent, "session/prompt").await];
    let request = v2::CloseSessionRequest::new("s");
    side.cx
        .prepare_request(request)
        .on_receiving_result(async move |_| told.send("closed").map_err(|_| Error::internal_error()))
        .expect("sent");
    let close = asked(&mut side.agent, "session/close").await;
    let error = json!({ "code": -32800, "message": "Request cancelled" });
    let all = [
        idle("s", "cancelled"),
        json!({ "jsonrpc": "2.0", "id": ids[0], "error": error }),
        result(&ids[1], json!({ "messageId": "m" })),
        result(&close, json!({})),
    ];
    side.agent.write(all.map(|message| format!("{message}\n")).concat()).await;
    assert_eq!((order.recv().await, order.recv().await), (Some("idle"), Some("closed")));
    assert_eq!(i32::from(uninserted.block_task().await.expect_err("cancelled").code), -32800);
    assert_eq!(&*inserted.block_task().await.expect("inserted").message_id.0, "m");
}

#[tokio::test]
async fn statement_34_dropping_handles_sends_nothing_and_unregisters_nothing() {
    let (told, mut updates) = mpsc::unbounded_channel();
    let builder = Client.v2().on_receive_notification(
        async move |update: v2::UpdateSessionNotification, _cx: V2ConnectionTo<Agent>| {
            told.send(update.session_id.0.to_string()).map_err(|_| Error::internal_error())
        },
        on_receive_notification!(),
    );
    let mut side = connected(builder).await;
    let session = opened(&mut side, "s").await;
    drop(session.clone());
    drop(session);
    next_is(&mut side.agent, &side.cx, "_marker").await;
    side.agent.send(&idle("s", "end_turn")).await;
    assert_eq!(updates.recv().await.as_deref(), Some("s"));
    drop(side.foreground);
    side.agent.expect_end().await;
}

/// Unhandled traffic of version 2 is ignored or refused at once; nothing is kept.
#[tokio::test]
async fn nothing_is_kept_for_a_handler_that_comes_later() {
    let mut side = client().await;
    side.agent.send(&idle("s", "end_turn")).await;
    side.agent.send(&request(1, "session/request_permission", json!({ "sessionId": "s" }))).await;
    assert_eq!(refused(&mut side.agent, 1).await, -32601);
    let (told, mut seen) = mpsc::unbounded_channel();
    let _guard = side.cx.add_dynamic_handler(Tells(told)).expect("runs");
    side.agent.send(&note("fresh", json!({}))).await;
    assert_eq!(seen.recv().await.as_deref(), Some("fresh"));
}

struct Tells(mpsc::UnboundedSender<String>);

impl greenroom::HandleDispatchFrom<Agent> for Tells {
    async fn handle_dispatch_from(
        &mut self,
        message: greenroom::Dispatch,
        _: greenroom::ConnectionTo<Agent>,
    ) -> greenroom::Result<greenroom::Handled<greenroom::Dispatch>> {
        let _ = self.0.send(message.method().to_owned());
        Ok(greenroom::Handled::Yes)
    }
}

/// Statement 81: replay reaches the handlers in order, and before the answer does.
#[tokio::test]
async fn statement_81_replay_comes_before_the_answer_to_a_resume() {
    let (told, mut order) = mpsc::unbounded_channel();
    let updates = told.clone();
    let builder = Client.v2().on_receive_notification(
        async move |update: UntypedMessage, _cx: V2ConnectionTo<Agent>| {
            updates.send(update.params["n"].clone()).map_err(|_| Error::internal_error())
        },
        on_receive_notification!(),
    );
    let mut side = connected(builder).await;
    side.cx
        .prepare_request(v2::ResumeSessionRequest::new("old", v2::AbsolutePath::from(std::path::Path::new("/"))))
        .on_receiving_result(async move |_| told.send(json!("answer")).map_err(|_| Error::internal_error()))
        .expect("sent");
    let id = asked(&mut side.agent, "session/resume").await;
    let mut all = String::new();
    for number in 0..100 {
        all += &format!("{}\n", note("session/update", json!({ "sessionId": "old", "n": number })));
    }
    all += &format!("{}\n", result(&id, json!({})));
    side.agent.write(all).await;
    for number in 0..100 {
        assert_eq!(order.recv().await, Some(json!(number)));
    }
    assert_eq!(order.recv().await, Some(json!("answer")));
}
