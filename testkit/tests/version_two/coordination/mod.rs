//! The chapter "Session Operation Coordination" between real connections; the agent is a script.

mod attack;
mod ending;
mod policy;

use greenroom::coordination::{SharedSession, SharedSessions};
use greenroom::schema::v2;
use greenroom_testkit::scripted::Local;
use serde_json::{Value, json};

use super::support::{Side, client, note, result};

/// A client that shares sessions in `/work`, in front of a scripted agent.
async fn coordinated() -> (Side, SharedSessions) {
    let side = client().await;
    let sessions = side.cx.coordinate_sessions("/work").expect("the connection runs");
    (side, sessions)
}

/// What a session's agent says.
fn says(session: &str, text: &str) -> Value {
    let content = json!({ "type": "text", "text": text });
    let update = json!({ "sessionUpdate": "agent_message_chunk", "messageId": "m", "content": content });
    note("session/update", json!({ "sessionId": session, "update": update }))
}

fn text(update: v2::SessionUpdate) -> String {
    match update {
        v2::SessionUpdate::AgentMessageChunk(chunk) => match chunk.content {
            v2::ContentBlock::Text(text) => text.text,
            other => format!("{other:?}"),
        },
        other => format!("{other:?}"),
    }
}

fn texts(session: &SharedSession) -> Vec<String> {
    session.log().updates().into_iter().map(text).collect()
}

async fn next(session: &mut SharedSession) -> String {
    text(session.next_update().await.expect("an update"))
}

/// Reads the request that resumes this session, and gives its id.
async fn resuming(agent: &mut Local, session: &str) -> Value {
    let request = agent.receive().await;
    assert_eq!(request["method"], "session/resume", "{request}");
    let expected = json!({ "sessionId": session, "cwd": "/work", "replayFrom": { "type": "start" } });
    assert_eq!(request["params"], expected);
    request["id"].clone()
}

/// Reads the request that closes this session, and gives its id.
async fn closing(agent: &mut Local, session: &str) -> Value {
    let request = agent.receive().await;
    assert_eq!(request["method"], "session/close", "{request}");
    assert_eq!(request["params"], json!({ "sessionId": session }));
    request["id"].clone()
}

async fn done(agent: &mut Local, id: &Value) {
    agent.send(&result(id, json!({}))).await;
}

async fn refuse(agent: &mut Local, id: &Value, message: &str) {
    agent.send(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32000, "message": message } })).await;
}

/// Loads a session that replays one update.
async fn loaded(side: &mut Side, sessions: &SharedSessions, session: &str) -> SharedSession {
    let load = sessions.load(session);
    let id = resuming(&mut side.agent, session).await;
    side.agent.send(&says(session, "replayed")).await;
    done(&mut side.agent, &id).await;
    load.await.expect("a session")
}

/// Everything that the agent sent so far was dispatched, and nothing but this answer was sent.
async fn settle(agent: &mut Local) {
    let ask = json!({ "jsonrpc": "2.0", "id": "settle", "method": "unknown/ask", "params": {} });
    agent.send(&ask).await;
    let answer = agent.receive().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("settle"), &json!(-32601)), "{answer}");
}
