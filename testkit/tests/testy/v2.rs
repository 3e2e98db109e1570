//! The baseline of protocol version 2.

use serde_json::{Value, json};

use crate::support::{Answer, Scripted, never};

async fn client() -> Scripted {
    let mut client = Scripted::serve(greenroom_testkit::testy::agent_v2(), never);
    let info = json!({ "name": "client", "version": "1" });
    let answer = client.request("initialize", json!({ "protocolVersion": 2, "info": info })).await;
    // The baseline, and nothing else.
    assert_eq!(answer.result()["capabilities"], json!({ "session": {} }));
    client
}

fn prompt(session: &str, text: &str, key: Option<&str>) -> Value {
    let mut params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
    if let Some(key) = key {
        params["idempotencyKey"] = json!(key);
    }
    params
}

/// Reads updates up to one that says idle, and gives them and the reason.
async fn until_idle(client: &mut Scripted) -> (Vec<Value>, Value) {
    let mut updates = Vec::new();
    loop {
        let message = client.peer.receive().await;
        assert_eq!(message["method"], "session/update", "{message}");
        let update = message["params"]["update"].clone();
        let idle = update["state"] == "idle";
        let reason = update["stopReason"].clone();
        updates.push(update);
        if idle {
            return (updates, reason);
        }
    }
}

fn kinds(updates: &[Value]) -> Vec<&str> {
    updates.iter().map(|update| update["sessionUpdate"].as_str().expect("a kind")).collect()
}

fn message_id(answer: &Answer) -> Value {
    answer.result()["messageId"].clone()
}

#[tokio::test]
async fn a_prompt_is_accepted_worked_on_and_done() {
    let mut client = client().await;
    let session = client.open("/").await;
    let accepted = client.request("session/prompt", prompt(&session, "echo Hello", None)).await;
    assert_eq!(accepted.before, [] as [Value; 0], "the acceptance comes first");
    let (updates, reason) = until_idle(&mut client).await;
    assert_eq!(kinds(&updates), ["user_message", "state_update", "agent_message_chunk", "state_update"]);
    assert_eq!(
        (&updates[0]["messageId"], &updates[0]["content"][0]["text"]),
        (&message_id(&accepted), &json!("echo Hello"))
    );
    assert_eq!((&updates[1]["state"], &updates[2]["content"]["text"]), (&json!("running"), &json!("Hello")));
    assert_eq!(reason, "end_turn");
    client.request("session/prompt", prompt(&session, "help", None)).await.result();
    let (updates, _) = until_idle(&mut client).await;
    let help = updates[2]["content"]["text"].as_str().expect("text");
    assert!(help.contains("cancel_status") && !help.contains("elicitations"), "{help}");
}

#[tokio::test]
async fn waiting_work_is_cancelled_by_its_session() {
    let mut client = client().await;
    let session = client.open("/").await;
    let accepted = client.request("session/prompt", prompt(&session, "wait_for_cancel", None)).await;
    assert!(message_id(&accepted).is_string(), "accepted while the work goes on");
    let (running, _) = (client.peer.receive().await, client.peer.receive().await);
    assert_eq!(running["params"]["update"]["sessionUpdate"], "user_message");
    client.notify("session/cancel", json!({ "sessionId": session })).await;
    assert_eq!(until_idle(&mut client).await.1, "cancelled");
    client.request("session/prompt", prompt(&session, "cancel_status", None)).await.result();
    let (updates, reason) = until_idle(&mut client).await;
    assert_eq!((&updates[2]["content"]["text"], reason), (&json!("session/cancel received: yes"), json!("end_turn")));
    // Nothing is worked on, so nothing is to be told.
    client.notify("session/cancel", json!({ "sessionId": session })).await;
    assert_eq!(client.request("session/list", json!({})).await.before, [] as [Value; 0]);
}

#[tokio::test]
async fn prompts_wait_for_their_turn() {
    let mut client = client().await;
    let session = client.open("/").await;
    client.request("session/prompt", prompt(&session, "wait_for_cancel", None)).await.result();
    let second = client.send("session/prompt", prompt(&session, "echo second", None)).await;
    let withdrawn = client.send("session/prompt", prompt(&session, "echo withdrawn", None)).await;
    client.notify("$/cancel_request", json!({ "requestId": withdrawn })).await;
    assert_eq!(client.wait(withdrawn).await.code(), -32800);
    // What was sent before the cancellation goes with it; what comes after it does not.
    client.notify("session/cancel", json!({ "sessionId": session })).await;
    let third = client.send("session/prompt", prompt(&session, "echo third", None)).await;
    assert_eq!(client.wait(second).await.code(), -32800);
    assert_eq!(until_idle(&mut client).await.1, "cancelled");
    client.wait(third).await.result();
    assert_eq!(until_idle(&mut client).await.0[2]["content"]["text"], "third");
}

#[tokio::test]
async fn a_key_is_inserted_once() {
    let mut client = client().await;
    let session = client.open("/").await;
    let first = client.request("session/prompt", prompt(&session, "echo once", Some("k"))).await;
    until_idle(&mut client).await;
    let again = client.request("session/prompt", prompt(&session, "echo once", Some("k"))).await;
    assert_eq!((message_id(&again), again.before.len()), (message_id(&first), 0));
    let other = client.open("/").await;
    client.request("session/prompt", prompt(&other, "echo elsewhere", Some("k"))).await.result();
    assert_eq!(until_idle(&mut client).await.0.len(), 4, "a key belongs to its session");
    for key in ["", &"x".repeat(256)] {
        let refused = client.request("session/prompt", prompt(&session, "echo no", Some(key))).await;
        assert_eq!((refused.code(), refused.before.len()), (-32602, 0));
    }
    let longest = "中".repeat(255);
    client.request("session/prompt", prompt(&session, "echo yes", Some(&longest))).await.result();
    until_idle(&mut client).await;
    // It was inserted once, so it is replayed once.
    let params = json!({ "sessionId": session, "cwd": "/", "replayFrom": { "type": "start" } });
    let resumed = client.request("session/resume", params).await;
    assert_eq!(resumed.kinds().iter().filter(|kind| **kind == "user_message").count(), 2);
}

#[tokio::test]
async fn a_resume_tells_the_state_and_replays_when_asked() {
    let mut client = client().await;
    let session = client.open("/").await;
    let accepted = client.request("session/prompt", prompt(&session, "echo one", None)).await;
    until_idle(&mut client).await;
    client.request("session/close", json!({ "sessionId": session })).await.result();
    let refused = client.request("session/prompt", prompt(&session, "echo two", None)).await;
    assert_eq!((refused.code(), &refused.error()["data"]["sessionId"]), (-32002, &json!(session)), "closed");

    let mut params = json!({ "sessionId": session, "cwd": "/" });
    let resumed = client.request("session/resume", params.clone()).await;
    assert_eq!(resumed.updates(), [&json!({ "sessionUpdate": "state_update", "state": "idle" })]);

    params["replayFrom"] = json!({ "type": "start" });
    let resumed = client.request("session/resume", params.clone()).await;
    assert_eq!(resumed.kinds(), ["user_message", "agent_message", "replay_complete", "state_update"]);
    let updates = resumed.updates();
    assert_eq!(updates[0]["messageId"], message_id(&accepted), "the id of the acceptance is kept");
    assert_eq!((&updates[1]["content"][0]["text"], &updates[3]["stopReason"]), (&json!("one"), &Value::Null));

    client.request("session/prompt", prompt(&session, "wait_for_cancel", None)).await.result();
    let (_, _) = (client.peer.receive().await, client.peer.receive().await);
    let resumed = client.request("session/resume", params.clone()).await;
    assert_eq!(resumed.updates().last().expect("a state")["state"], "running");

    params["replayFrom"] = json!({ "type": "_elsewhere" });
    let refused = client.request("session/resume", params.clone()).await;
    assert_eq!((refused.code(), refused.before.len()), (-32602, 0));
    params["sessionId"] = json!("session-9");
    params["replayFrom"] = Value::Null;
    let refused = client.request("session/resume", params).await;
    assert_eq!((refused.code(), &refused.error()["data"]["sessionId"]), (-32002, &json!("session-9")));
}

#[tokio::test]
async fn a_close_ends_the_work_before_it_answers() {
    let mut client = client().await;
    let session = client.open("/").await;
    client.request("session/prompt", prompt(&session, "wait_for_cancel", None)).await.result();
    let (_, _) = (client.peer.receive().await, client.peer.receive().await);
    let waiting = client.send("session/prompt", prompt(&session, "echo never", None)).await;
    let closed = client.request("session/close", json!({ "sessionId": session })).await;
    closed.result();
    let [uninserted, idle] = closed.before.as_slice() else { panic!("two: {:?}", closed.before) };
    assert_eq!((&uninserted["id"], &uninserted["error"]["code"]), (&json!(waiting), &json!(-32800)));
    assert_eq!(idle["params"]["update"]["stopReason"], "cancelled");
    // What is not there is closed.
    client.request("session/close", json!({ "sessionId": "session-9" })).await.result();
}

#[tokio::test]
async fn bad_prompts_are_refused_before_they_are_inserted() {
    let mut client = client().await;
    let session = client.open("/").await;
    let image = json!([{ "type": "image", "data": "", "mimeType": "image/png" }]);
    for (params, code) in [
        (json!({ "sessionId": session, "prompt": [] }), -32602),
        (json!({ "sessionId": session, "prompt": image }), -32602),
        (prompt(&session, r#"{"command":"run_scenario","scenario":"full"}"#, None), -32602),
        (prompt(&session, "elicitations", None), -32602),
        (prompt("session-01", "help", None), -32002),
        (prompt("session-0", "help", None), -32002),
        (prompt("other", "help", None), -32002),
    ] {
        let refused = client.request("session/prompt", params.clone()).await;
        assert_eq!((refused.code(), refused.before.len()), (code, 0), "{params}");
    }
}

#[tokio::test]
async fn sessions_are_listed_and_rooted() {
    let mut client = client().await;
    for number in 0..55 {
        client.open(if number < 5 { "/five" } else { "/" }).await;
    }
    let first = client.request("session/list", json!({})).await.result().clone();
    let second = client.request("session/list", json!({ "cursor": first["nextCursor"] })).await.result().clone();
    let count = |page: &Value| page["sessions"].as_array().expect("a list").len();
    assert_eq!((count(&first), count(&second), &second["nextCursor"]), (50, 5, &Value::Null));
    assert_eq!(count(client.request("session/list", json!({ "cwd": "/five" })).await.result()), 5);
    assert_eq!(client.request("session/list", json!({ "cursor": "x" })).await.code(), -32602);
    let server = json!({ "type": "stdio", "name": "same", "command": "/bin/true", "args": [], "env": [] });
    for params in [
        json!({ "cwd": "relative" }),
        json!({ "cwd": "/a/../b" }),
        json!({ "cwd": "/", "mcpServers": [server, server] }),
    ] {
        assert_eq!(client.request("session/new", params.clone()).await.code(), -32602, "{params}");
    }
}
