//! What a recording shows.

use greenroom::{Conductor, DynConnectTo};
use greenroom_conductor::trace::{TraceEvent, TraceWriter};
use greenroom_conductor::{ConductorImpl, ProxiesAndAgent};
use greenroom_testkit::{arrow, pass_through, testy};
use serde_json::{Value, json};

use crate::support::{Traced, brief, initialize, recording};

fn two_proxies() -> Vec<DynConnectTo<Conductor>> {
    vec![DynConnectTo::new(pass_through()), DynConnectTo::new(arrow())]
}

/// The events behind those of the initialize.
fn behind_initialize(events: &[Value], proxies: usize) -> &[Value] {
    let (initialize, rest) = events.split_at(2 * (proxies + 1));
    let shown: Vec<&Value> = initialize.iter().filter(|event| event["type"] == "request").collect();
    assert!(shown.iter().all(|event| event["method"] == "initialize" && event["protocol"] == "acp"), "{shown:?}");
    rest
}

#[tokio::test]
async fn the_flow_is_told_from_component_to_component_without_envelopes() {
    let (writer, recording) = recording();
    let mut traced = Traced::start(two_proxies(), writer).await;
    let params = json!({ "sessionId": "s1", "prompt": [], "big": 9_007_199_254_740_993_u64 });
    traced.client.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": params })).await;
    let asked = traced.agent.receive().await;
    let update = json!({ "sessionId": "s1", "update": { "sessionUpdate": "agent_message_chunk",
        "content": { "type": "text", "text": "hi" } } });
    traced.agent.send(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": update })).await;
    let reply = json!({ "jsonrpc": "2.0", "id": asked["id"], "error": { "code": 77, "message": "no" } });
    traced.agent.send(&reply).await;
    assert_eq!(traced.client.receive().await["params"]["update"]["content"]["text"], "→ hi");
    assert_eq!(traced.client.receive().await["error"]["code"], 77);
    traced.end().await;

    let events = recording.all().await;
    let before: Vec<String> = events.iter().take(6).map(brief).collect();
    assert_eq!(before[0], "Client -> Proxy(0) initialize#\"first\"");
    assert!(before[1].starts_with("Proxy(0) -> Proxy(1) initialize#"), "{before:?}");
    assert!(before[2].starts_with("Proxy(1) -> Agent initialize#"), "{before:?}");
    assert!(before[3].starts_with("Agent -> Proxy(1) result#"), "{before:?}");
    assert_eq!(before[5], "Proxy(0) -> Client result#\"first\"");
    let rest = behind_initialize(&events, 2);
    let shown: Vec<String> = rest.iter().map(brief).collect();
    assert_eq!(shown[0], "Client -> Proxy(0) session/prompt#7");
    assert!(shown[1].starts_with("Proxy(0) -> Proxy(1) session/prompt#"), "{shown:?}");
    assert!(shown[2].starts_with("Proxy(1) -> Agent session/prompt#"), "{shown:?}");
    let updates: Vec<&Value> = rest.iter().filter(|event| event["method"] == "session/update").collect();
    let ends: Vec<String> = updates.iter().map(|event| brief(event)).collect();
    assert_eq!(
        ends,
        ["Agent -> Proxy(1)", "Proxy(1) -> Proxy(0)", "Proxy(0) -> Client"]
            .map(|ends| format!("{ends} session/update"))
    );
    let text = |event: &Value| event["params"]["update"]["content"]["text"].clone();
    assert_eq!(updates.iter().map(|event| text(event)).collect::<Vec<_>>(), ["hi", "→ hi", "→ hi"]);
    assert_eq!(rest[2]["params"]["big"], 9_007_199_254_740_993_u64);
    assert!(rest.iter().all(|event| event["type"] == "response" || event["session"] == "s1"), "{rest:?}");
    let answers: Vec<&Value> = rest.iter().filter(|event| event["type"] == "response").collect();
    assert_eq!(answers.len(), 3);
    assert_eq!(brief(answers[2]), "Proxy(0) -> Client error#7");
    assert_eq!(answers[2]["payload"], json!({ "code": 77, "message": "no" }));
    let times: Vec<f64> = events.iter().map(|event| event["ts"].as_f64().expect("a time")).collect();
    assert!(times.is_sorted() && times[0] >= 0.0, "{times:?}");
    let all = format!("{events:?}");
    assert!(!all.contains("successor") && !all.contains("proxy/initialize"), "{all}");
}

#[tokio::test]
async fn mcp_messages_are_unwrapped_with_their_answers() {
    let (writer, recording) = recording();
    let mut traced = Traced::start(vec![DynConnectTo::new(pass_through())], writer).await;
    let call = |id: u64, method: &str| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "mcp/message", "params": {
            "serverId": "srv", "requestId": "r", "method": method, "params": { "name": "tool" } } })
    };
    for (id, outer) in [
        (1, json!({ "result": { "result": null } })),
        (2, json!({ "result": { "error": { "code": -32601, "message": "inner" } } })),
        (3, json!({ "error": { "code": -33001, "message": "outer" } })),
    ] {
        traced.agent.send(&call(id, "tools/call")).await;
        let mut answer = traced.client.receive().await;
        let (name, value) = outer.as_object().expect("an object").iter().next().expect("a member");
        answer.as_object_mut().expect("an object").retain(|name, _| name == "jsonrpc" || name == "id");
        answer[name] = value.clone();
        traced.client.send(&answer).await;
        assert_eq!(traced.agent.receive().await["id"], id);
    }
    let note = json!({ "jsonrpc": "2.0", "method": "mcp/message",
        "params": { "serverId": "srv", "requestId": "r", "method": "notifications/progress" } });
    traced.client.send(&note).await;
    assert_eq!(traced.agent.receive().await["method"], "mcp/message");
    traced.end().await;

    let events = recording.all().await;
    let rest = behind_initialize(&events, 1);
    let requests: Vec<&Value> = rest.iter().filter(|event| event["type"] == "request").collect();
    assert_eq!(requests.len(), 6);
    for request in requests {
        assert_eq!((&request["method"], &request["protocol"]), (&json!("tools/call"), &json!("mcp")));
        assert_eq!(request["params"], json!({ "name": "tool" }));
        assert_eq!(request.get("session"), None);
    }
    let to_agent: Vec<&Value> = rest.iter().filter(|e| e["type"] == "response" && e["to"] == "Agent").collect();
    let said = |event: &Value| (event["is_error"].clone(), event["error_domain"].clone(), event["payload"].clone());
    assert_eq!(said(to_agent[0]), (json!(false), Value::Null, Value::Null));
    assert_eq!(said(to_agent[1]), (json!(true), json!("mcp"), json!({ "code": -32601, "message": "inner" })));
    assert_eq!(said(to_agent[2]), (json!(true), json!("acp"), json!({ "code": -33001, "message": "outer" })));
    let note = rest.iter().find(|event| event["type"] == "notification").expect("a notification");
    assert_eq!((&note["method"], &note["params"]), (&json!("notifications/progress"), &Value::Null));
}

#[tokio::test]
async fn cancellations_refusals_and_noise_are_shown() {
    let (writer, recording) = recording();
    let mut traced = Traced::start(Vec::new(), writer).await;
    traced.client.send(&json!({ "jsonrpc": "2.0", "id": "a", "method": "_slow" })).await;
    let asked = traced.agent.receive().await;
    let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": "a" } });
    traced.client.send(&cancel).await;
    assert_eq!(traced.agent.receive().await["params"]["requestId"], asked["id"]);
    let error = json!({ "code": -32800, "message": "cancelled" });
    traced.agent.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })).await;
    assert_eq!(traced.client.receive().await["id"], "a");
    traced.client.send(&json!({ "jsonrpc": "2.0", "id": 5, "method": "proxy/initialize", "params": {} })).await;
    assert_eq!(traced.client.receive().await["error"]["code"], -32600);
    traced.agent.write("hello, secret\n").await;
    traced.agent.send(&json!({ "jsonrpc": "2.0", "method": "_end" })).await;
    assert_eq!(traced.client.receive().await["method"], "_end");
    traced.end().await;
    let events = recording.all().await;
    let shown: Vec<String> = behind_initialize(&events, 0).iter().map(brief).collect();
    assert_eq!(
        shown,
        [
            "Client -> Agent _slow#\"a\"",
            "Client -> Agent $/cancel_request",
            "Agent -> Client error#\"a\"",
            "Client -> Conductor proxy/initialize#5",
            "Conductor -> Client error#5",
            "Some(\"noise\") 13",
            "Agent -> Client _end",
        ]
    );
    assert!(!format!("{events:?}").contains("secret"));
}

#[tokio::test]
async fn batches_stay_whole_on_the_wire_and_come_apart_in_the_recording() {
    let (writer, recording) = recording();
    let mut traced = Traced::start(Vec::new(), writer).await;
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "_one" },
        { "jsonrpc": "2.0", "method": "_note" },
        { "jsonrpc": "2.0", "id": null, "method": "_two" },
    ]);
    traced.client.send(&batch).await;
    traced.answer("result", json!("one")).await;
    assert_eq!(traced.agent.receive().await["method"], "_note");
    traced.answer("result", json!("two")).await;
    let answers = json!([
        { "jsonrpc": "2.0", "id": 1, "result": "one" },
        { "jsonrpc": "2.0", "id": null, "result": "two" },
    ]);
    traced.client.expect(answers).await;
    traced.end().await;
    let events = recording.all().await;
    let mut shown: Vec<String> = behind_initialize(&events, 0).iter().map(brief).collect();
    assert_eq!(shown[..3], ["_one#1", "_note", "_two#null"].map(|call| format!("Client -> Agent {call}")));
    shown[3..].sort();
    assert_eq!(shown[3..], ["result#1", "result#null"].map(|answer| format!("Agent -> Client {answer}")));
}

/// Row C63: a batch with an entry that is no message is answered the same with and without a
/// recording, in one array.
#[tokio::test]
async fn a_recording_changes_nothing_about_a_batch() {
    for proxies in [0, 2] {
        let mut replies = Vec::new();
        for writer in [None, Some(recording().0)] {
            let proxies = (0..proxies).map(|_| DynConnectTo::new(pass_through())).collect();
            let mut chain = Traced::start(proxies, writer).await;
            let batch = concat!(
                r#"[{"jsonrpc":"2.0","id":"a","method":"_one"},{"jsonrpc":"2.0","method":"_note","params":[1]},"#,
                r#"{"foo":"boo"},{"jsonrpc":"2.0","id":9007199254740993,"method":"_two"}]"#
            );
            chain.client.write(format!("{batch}\n")).await;
            chain.answer("result", Value::Null).await;
            assert_eq!(chain.agent.receive().await["method"], "_note");
            chain.answer("error", json!({ "code": 7, "message": "of our own" })).await;
            let line = chain.client.line().await.expect("one line");
            let reply: Vec<Value> = serde_json::from_str(&line).expect("one array");
            let ids: Vec<&Value> = reply.iter().map(|answer| &answer["id"]).collect();
            assert_eq!(ids, [&json!("a"), &Value::Null, &json!(9_007_199_254_740_993_i64)]);
            assert_eq!((&reply[0]["result"], &reply[1]["error"]["code"]), (&Value::Null, &json!(-32600)));
            assert_eq!(reply[2]["error"], json!({ "code": 7, "message": "of our own" }));
            replies.push(line);
            chain.end().await;
        }
        assert_eq!(replies[0], replies[1]);
    }
}

#[tokio::test]
async fn secrets_stay_out_of_the_recording_and_on_the_wire() {
    let (writer, recording) = recording();
    let mut traced = Traced::start(vec![DynConnectTo::new(pass_through())], writer).await;
    let params = json!({ "mcpServers": [
        { "name": "a", "command": "c", "env": [{ "name": "KEY", "value": "hunter2" }] },
        { "type": "http", "url": "https://me:hunter2@host/x?token=hunter2&a=b",
          "headers": [{ "name": "X", "value": "hunter2" }] },
    ], "Authorization": "hunter2" });
    traced.client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params })).await;
    let arrived = traced.answer("result", json!({ "set-cookie": "hunter2" })).await;
    assert_eq!(arrived["params"], params);
    assert_eq!(traced.client.receive().await["result"]["set-cookie"], "hunter2");
    traced.end().await;
    let events = recording.all().await;
    let text = format!("{events:?}");
    assert!(!text.contains("hunter2"), "{text}");
    assert!(text.contains("https://host/x?token=[REDACTED]&a=b") && text.contains("KEY"), "{text}");
}

#[tokio::test]
async fn a_file_is_emptied_and_gets_one_object_a_line() {
    let path = std::env::temp_dir().join(format!("greenroom-trace-{}.jsons", std::process::id()));
    std::fs::write(&path, "what was here before\n".repeat(100)).expect("a file");
    let components = ProxiesAndAgent::new(testy()).proxy(pass_through());
    let (mut client, link) = greenroom_testkit::scripted::pair(1 << 16);
    let conductor = ConductorImpl::new_agent("file", components).trace_to_path(&path).expect("a file");
    let chain = conductor.start(link).await.expect("a chain");
    client.send(&initialize("a\u{2028}\"b")).await;
    assert_eq!(client.receive().await["id"], "a\u{2028}\"b");
    // White space of the sender does not tear a line apart.
    client.write("{\"jsonrpc\":\"2.0\",\"id\":2,\t\"method\":\"_unknown\",\"params\":{\"a\":\t1}}\n").await;
    assert_eq!(client.receive().await["id"], 2);
    client.close().await;
    chain.closed().await.expect("a clean end");
    let text = std::fs::read_to_string(&path).expect("the recording");
    std::fs::remove_file(&path).expect("the recording");
    let events: Vec<TraceEvent> = text.lines().map(|line| TraceEvent::from_line(line).expect(line)).collect();
    assert_eq!(events.len(), 8, "{text}");
    assert!(text.ends_with('\n'));
    let TraceEvent::Request(first) = &events[0] else { panic!("{text}") };
    assert_eq!(first.id, "a\u{2028}\"b");
    let member = |line: &str| {
        serde_json::from_str::<Value>(line)
            .expect("JSON")
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(member(lines[0]), ["type", "ts", "protocol", "from", "to", "id", "method", "params"]);
    assert_eq!(member(lines[3]), ["type", "ts", "from", "to", "id", "is_error", "payload"]);
    let unwritable = TraceWriter::from_path(std::env::temp_dir().join("no-such-folder").join("x"));
    assert_eq!(unwritable.expect_err("no folder").kind(), std::io::ErrorKind::NotFound);
}

#[tokio::test]
async fn a_chain_in_a_chain_speaks_of_its_own_ends() {
    let (writer, recording) = recording();
    let inner = ConductorImpl::new_proxy("inner", vec![pass_through()]).with_trace_writer(writer);
    let (nothing, _) = crate::support::recording();
    let mut traced = Traced::start(vec![DynConnectTo::new(inner)], nothing).await;
    traced.client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "_right" })).await;
    traced.answer("result", json!({})).await;
    assert_eq!(traced.client.receive().await["id"], 1);
    traced.agent.send(&json!({ "jsonrpc": "2.0", "id": 9, "method": "_left" })).await;
    let asked = traced.client.receive().await;
    traced.client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": {} })).await;
    assert_eq!(traced.agent.receive().await["id"], 9);
    traced.end().await;
    let events = recording.all().await;
    let ends = |event: &Value| format!("{}>{}", event["from"].as_str().unwrap(), event["to"].as_str().unwrap());
    let shown: Vec<String> = behind_initialize(&events, 1).iter().map(ends).collect();
    let right = ["Client>Proxy(0)", "Proxy(0)>Agent", "Agent>Proxy(0)", "Proxy(0)>Client"];
    let left = ["Agent>Proxy(0)", "Proxy(0)>Client", "Client>Proxy(0)", "Proxy(0)>Agent"];
    assert_eq!(shown, [right, left].concat());
}
