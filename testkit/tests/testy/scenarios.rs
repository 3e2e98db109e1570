//! Scenarios without elicitations: what is sent, in which order.

use greenroom::schema::v1::{ContentBlock, SessionNotification};
use serde_json::{Value, json};

use crate::support::{Answer, Scripted, friendly, never, result};

/// A client that has everything.
pub(crate) fn capable() -> Value {
    json!({
        "fs": { "readTextFile": true, "writeTextFile": true },
        "terminal": true,
        "plan": {},
        "subagents": {},
        "session": { "notices": {}, "compaction": {}, "configOptions": { "boolean": {} } },
        "elicitation": { "form": {}, "url": {} },
    })
}

const FOR_EVERYBODY: [&str; 11] = [
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "session_info_update",
    "usage_update",
];

const FOR_CAPABLE: [&str; 10] = [
    "notice",
    "compaction_update",
    "compaction_summary_chunk",
    "compaction_update",
    "plan_update",
    "plan_update",
    "plan_removed",
    "subagent_update",
    "session_message",
    "session_message_chunk",
];

const CALLBACKS: [&str; 8] = [
    "session/request_permission",
    "fs/write_text_file",
    "fs/read_text_file",
    "terminal/create",
    "terminal/output",
    "terminal/wait_for_exit",
    "terminal/kill",
    "terminal/release",
];

/// Everything that was sent is what its type says, and nothing more.
fn assert_typed(answer: &Answer) {
    for message in answer.before.iter().filter(|message| message["method"] == "session/update") {
        let typed: SessionNotification = serde_json::from_value(message["params"].clone()).expect("an update");
        assert_eq!(serde_json::to_value(typed).expect("JSON"), message["params"]);
    }
}

#[tokio::test]
async fn every_update_is_sent_to_those_who_know_it() {
    for (capabilities, kinds) in [
        (json!({}), FOR_EVERYBODY.to_vec()),
        (json!({ "plan": {} }), [&FOR_EVERYBODY[..], &FOR_CAPABLE[4..7]].concat()),
        (capable(), [&FOR_EVERYBODY[..], &FOR_CAPABLE[..]].concat()),
    ] {
        let mut client = Scripted::v1(capabilities, never).await;
        let session = client.open("/").await;
        let answer = client.prompt(&session, "session_updates").await;
        assert_eq!((answer.kinds(), &answer.result()["stopReason"]), (kinds, &json!("end_turn")));
        assert_typed(&answer);
    }
}

#[tokio::test]
async fn every_content_block_is_sent() {
    let mut client = Scripted::v1(json!({}), never).await;
    let session = client.open("/").await;
    let answer = client.prompt(&session, "content").await;
    let types: Vec<_> = answer.updates().iter().map(|update| update["content"]["type"].clone()).collect();
    assert_eq!(types, ["text", "image", "audio", "resource_link", "resource", "resource"]);
    let resources: Vec<_> = answer.updates()[4..].iter().map(|update| &update["content"]["resource"]).collect();
    assert!(resources[0]["text"].is_string() && resources[1]["blob"].is_string());
    assert_typed(&answer);
    // All of it is remembered.
    let params = json!({ "sessionId": session, "cwd": "/", "mcpServers": [] });
    let loaded = client.request("session/load", params).await;
    assert_eq!(loaded.updates()[1..], answer.updates());
}

#[tokio::test]
async fn tool_calls_run_and_fail() {
    let mut client = Scripted::v1(json!({}), never).await;
    let session = client.open("/").await;
    let first = client.prompt(&session, "tool_calls").await;
    let steps: Vec<_> = first.updates().iter().map(|update| (&update["toolCallId"], &update["status"])).collect();
    let (edit, fetch) = (json!("edit-1"), json!("fetch-1"));
    let status = ["in_progress", "completed", "failed"].map(|status| json!(status));
    // A status of `pending` is the default and not written.
    let expected =
        [(&edit, &Value::Null), (&edit, &status[0]), (&edit, &status[1]), (&fetch, &status[0]), (&fetch, &status[2])];
    assert_eq!(steps, expected);
    assert_eq!(first.updates()[2]["content"][0]["type"], "diff");
    assert_typed(&first);
    let second = client.prompt(&session, "tool_calls").await;
    assert_eq!(second.updates()[0]["toolCallId"], "edit-2", "a new turn has new calls");
}

#[tokio::test]
async fn every_request_is_sent() {
    let mut client = Scripted::v1(capable(), friendly).await;
    let session = client.open("/").await;
    let answer = client.prompt(&session, "callbacks").await;
    assert_eq!(answer.methods()[..8], CALLBACKS);
    assert_eq!(answer.methods().iter().filter(|method| **method == "elicitation/create").count(), 6);
    let said = [
        "session/request_permission: selected allow-once",
        "fs/write_text_file: written",
        "fs/read_text_file: what was written",
        "terminal/create: created",
        "terminal/output: all of it",
        "terminal/wait_for_exit: code 0",
        "terminal/kill: done",
        "terminal/release: released",
    ];
    assert_eq!(answer.texts()[..8], said);
    let shown = answer.updates().into_iter().find(|update| update["sessionUpdate"] == "tool_call").expect("a call");
    assert_eq!(shown["content"], json!([{ "type": "terminal", "terminalId": "terminal-1" }]));
}

#[tokio::test]
async fn full_is_all_of_them_in_order() {
    let mut client = Scripted::v1(capable(), friendly).await;
    let session = client.open("/").await;
    let full = client.prompt(&session, "full").await;
    let mut kinds = Vec::new();
    let mut methods = Vec::new();
    for part in ["session_updates", "content", "tool_calls", "callbacks", "cancel_status"] {
        let answer = client.prompt(&session, part).await;
        kinds.extend(answer.kinds().into_iter().map(str::to_owned));
        methods.extend(answer.methods().into_iter().map(str::to_owned));
    }
    assert_eq!(
        (full.kinds(), full.methods()),
        (kinds.iter().map(String::as_str).collect(), methods.iter().map(String::as_str).collect())
    );
    assert_eq!(full.result()["stopReason"], "end_turn");
}

fn refuses(request: &Value) -> Value {
    let error = json!({ "code": -32601, "message": "Method not found" });
    match request["method"].as_str() {
        Some("terminal/create") => json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }),
        _ => friendly(request),
    }
}

/// How a client refuses is what the prompt ends with.
#[tokio::test]
async fn a_refusal_of_the_client_ends_the_prompt() {
    let mut client = Scripted::v1(json!({}), refuses).await;
    let session = client.open("/").await;
    let answer = client.prompt(&session, "callbacks").await;
    assert_eq!((answer.code(), answer.methods()), (-32601, CALLBACKS[..4].to_vec()));
    client.prompt(&session, "help").await.result();
}

fn cancels(request: &Value) -> Value {
    result(request, json!({ "outcome": { "outcome": "cancelled" } }))
}

#[tokio::test]
async fn a_cancelled_permission_ends_the_turn() {
    let mut client = Scripted::v1(json!({}), cancels).await;
    let session = client.open("/").await;
    let answer = client.prompt(&session, "callbacks").await;
    assert_eq!((answer.methods(), &answer.result()["stopReason"]), (CALLBACKS[..1].to_vec(), &json!("cancelled")));
}

/// C24: nothing of a cancelled turn stays open.
#[tokio::test]
async fn a_cancelled_turn_cancels_what_it_asked() {
    let mut client = Scripted::v1(json!({}), never).await;
    let session = client.open("/").await;
    let id = client.send_prompt(&session, "callbacks").await;
    let asked = client.peer.receive().await;
    assert_eq!(asked["method"], CALLBACKS[0]);
    client.notify("session/cancel", json!({ "sessionId": session })).await;
    let answer = client.wait(id).await;
    assert_eq!(answer.result()["stopReason"], "cancelled");
    let cancelled = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": asked["id"] } });
    assert!(answer.before.contains(&cancelled), "{:?}", answer.before);
}

/// Blocks of a prompt that are no text are taken as well, and remembered.
#[tokio::test]
async fn prompts_may_hold_anything() {
    let mut client = Scripted::v1(json!({}), never).await;
    let session = client.open("/").await;
    let image = json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
    let prompt = json!([{ "type": "text", "text": "echo a" }, image, { "type": "text", "text": "b" }]);
    let answer = client.request("session/prompt", json!({ "sessionId": session, "prompt": prompt })).await;
    assert_eq!(answer.texts(), ["ab"]);
    let params = json!({ "sessionId": session, "cwd": "/", "mcpServers": [] });
    let loaded = client.request("session/load", params).await;
    let replayed: ContentBlock = serde_json::from_value(loaded.updates()[1]["content"].clone()).expect("a block");
    assert!(matches!(replayed, ContentBlock::Image(_)), "{replayed:?}");
}
