//! A client in front of a scripted agent.

use std::sync::Arc;
use std::time::Duration;

use greenroom::runtime::{Fault, Node};
use greenroom::{ActiveSession, Agent, Client, ConnectionOptions, ConnectionTo, Dispatch, Role, SessionMessage};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// A client whose agent is a script, and the client's foreground in the hands of the test.
pub(crate) struct Side {
    pub(crate) agent: Local,
    pub(crate) cx: ConnectionTo<Agent>,
    /// Dropping it ends the foreground.
    pub(crate) foreground: oneshot::Sender<()>,
}

pub(crate) async fn client(options: ConnectionOptions) -> Side {
    let (agent, link) = pair(1024 * 1024);
    let (give, take) = oneshot::channel();
    let (foreground, end) = oneshot::channel::<()>();
    tokio::spawn(Client.builder().options(options).connect_with(link, async move |cx: ConnectionTo<Agent>| {
        give.send(cx).expect("the test waits");
        let _ = end.await;
        Ok(())
    }));
    Side { agent, cx: take.await.expect("a connection"), foreground }
}

pub(crate) async fn plain() -> Side {
    client(ConnectionOptions::default()).await
}

pub(crate) fn update(session: &str, text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": {
        "sessionId": session,
        "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } },
    } })
}

pub(crate) fn permission(id: &str, session: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": {
        "sessionId": session,
        "toolCall": { "toolCallId": "t" },
        "options": [{ "optionId": "yes", "name": "Yes", "kind": "allow_once" }],
    } })
}

pub(crate) fn result(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Reads a request of this method and gives its id.
pub(crate) async fn asked(agent: &mut Local, method: &str) -> Value {
    let request = agent.receive().await;
    assert_eq!(request["method"], method, "{request}");
    request["id"].clone()
}

/// Answers `session/new` with this session.
pub(crate) async fn open(agent: &mut Local, session: &str) {
    let id = asked(agent, "session/new").await;
    agent.send(&result(&id, json!({ "sessionId": session }))).await;
}

/// Opens a session with this id.
pub(crate) async fn session(side: &mut Side, id: &str) -> ActiveSession<'static, Agent> {
    let cx = side.cx.clone();
    let ours = tokio::spawn(async move { cx.build_session("/").block_task().start_session().await });
    open(&mut side.agent, id).await;
    ours.await.expect("no panic").expect("a session")
}

/// The supervisor of the coordinators.
pub(crate) fn supervisor<C: Role>(cx: &ConnectionTo<C>) -> Arc<Node> {
    cx.tree().children().into_iter().find(|child| child.kind() == "sessions").expect("there are sessions")
}

/// The coordinator of the session that was opened last.
pub(crate) fn coordinator<C: Role>(cx: &ConnectionTo<C>) -> Arc<Node> {
    supervisor(cx).children().pop().expect("there is a session")
}

/// A name and a way to break an actor.
pub(crate) type Breaking = (&'static str, fn(&Arc<Node>) -> bool);

/// Every way that ends an actor.
pub(crate) const FAULTS: [Breaking; 4] = [
    ("kill", |node| node.kill()),
    ("stop", |node| node.stop()),
    ("panic", |node| node.inject(Fault::Panic)),
    ("panic inside", |node| node.inject(Fault::PanicInside)),
];

/// Waits until the actor at this place was started again.
pub(crate) async fn restarted(node: &Arc<Node>, before: u32) {
    until("it is started again", || node.restarts() > before).await;
}

/// Lets others work until this is true.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..3_000_000 {
        if condition() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{what}: never");
}

/// What waits in the mailbox of this actor.
pub(crate) fn waiting(node: &Arc<Node>) -> usize {
    node.snapshot().mailbox_depth
}

/// Waits until everything that the agent has sent so far is with its session; `witness` is the reader of
/// another one, with this id.
pub(crate) async fn arrived(agent: &mut Local, witness: &mut ActiveSession<'static, Agent>, id: &str) {
    agent.send(&update(id, "behind it")).await;
    assert_eq!(told(soon(witness.read_update()).await.expect("a message")), "behind it");
}

/// Waits for something that must come. With a paused clock this fails as soon as it cannot come any
/// more.
pub(crate) async fn soon<F: Future>(awaited: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(3600), awaited).await.expect("it comes")
}

/// Ends a turn.
pub(crate) async fn stop(agent: &mut Local, id: &Value, reason: &str) {
    agent.send(&result(id, json!({ "stopReason": reason }))).await;
}

/// What a message of the session says, for comparing.
pub(crate) fn told(message: SessionMessage) -> String {
    match message {
        SessionMessage::SessionMessage(Dispatch::Notification(note)) => {
            note.params["update"]["content"]["text"].as_str().unwrap_or("?").to_owned()
        }
        SessionMessage::SessionMessage(Dispatch::Request(request, _)) => request.method,
        SessionMessage::StopReason(reason) => format!("{reason:?}"),
        other => format!("{other:?}"),
    }
}
