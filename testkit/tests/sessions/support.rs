//! A client in front of a scripted agent.

use greenroom::{Agent, Client, ConnectionOptions, ConnectionTo, Dispatch, SessionMessage};
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
