//! Lists that a receiver acts on are read strictly: `-32602`, and no handler runs. What is only
//! shown is read leniently.

use greenroom::schema::v1;
use greenroom::{Agent, Client, JsonRpcRequest, Responder, on_receive_request};
use greenroom_testkit::scripted::pair;
use serde_json::{Value, json};

/// Whether an agent's or a client's handler of this type takes these params: the code, if not.
async fn taken<Req: JsonRpcRequest>(method: &str, params: &Value) -> Result<(), i64> {
    let builder = Agent.builder().on_receive_request(
        async |_: Req, responder: Responder<Req::Response>, _cx| {
            responder.respond_with_error(greenroom::Error::new(1, "the handler ran"))
        },
        on_receive_request!(),
    );
    let (mut peer, link) = pair(1 << 16);
    tokio::spawn(greenroom::ConnectTo::<Client>::connect_to(builder, link));
    peer.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).await;
    match peer.receive().await["error"]["code"].as_i64().expect("an error") {
        1 => Ok(()),
        code => Err(code),
    }
}

/// The object with one member changed.
fn with(object: &Value, name: &str, value: Value) -> Value {
    let mut changed = object.clone();
    changed[name] = value;
    changed
}

/// Each value is refused; null and an empty list are taken.
async fn strict<Req: JsonRpcRequest>(method: &str, object: &Value, name: &str, refused: Vec<Value>) {
    for value in refused {
        let params = with(object, name, value);
        assert_eq!(taken::<Req>(method, &params).await, Err(-32602), "{method} {params}");
    }
    for value in [Value::Null, json!([])] {
        let params = with(object, name, value);
        assert_eq!(taken::<Req>(method, &params).await, Ok(()), "{method} {params}");
    }
}

#[tokio::test]
async fn what_version_1_acts_on() {
    let new = json!({ "cwd": "/", "mcpServers": [] });
    let servers =
        || vec![json!(1), json!("x"), json!({}), json!([{}]), json!([{ "type": "http", "name": "n" }]), json!([null])];
    let folders = || vec![json!("/"), json!([1]), json!([null]), json!({})];
    strict::<v1::NewSessionRequest>("session/new", &new, "mcpServers", servers()).await;
    strict::<v1::NewSessionRequest>("session/new", &new, "additionalDirectories", folders()).await;
    let old = with(&new, "sessionId", json!("s"));
    strict::<v1::LoadSessionRequest>("session/load", &old, "mcpServers", servers()).await;
    strict::<v1::LoadSessionRequest>("session/load", &old, "additionalDirectories", folders()).await;
    strict::<v1::ResumeSessionRequest>("session/resume", &old, "mcpServers", servers()).await;
    let terminal = json!({ "sessionId": "s", "command": "c" });
    strict::<v1::CreateTerminalRequest>(
        "terminal/create",
        &terminal,
        "args",
        vec![json!("a"), json!([1]), json!([null])],
    )
    .await;
    let env = vec![json!({}), json!([{ "name": "n" }]), json!([{ "name": "n", "value": 1 }])];
    strict::<v1::CreateTerminalRequest>("terminal/create", &terminal, "env", env).await;
}

#[tokio::test]
async fn system_prompts() {
    let new = json!({ "cwd": "/", "mcpServers": [] });
    let text = json!([{ "type": "text", "text": "t" }]);
    for (prompt, outcome) in [
        (json!({ "mode": "append", "content": text }), Ok(())),
        (json!({ "mode": "override", "content": text }), Ok(())),
        (json!({ "mode": "_mine", "content": text }), Ok(())),
        (Value::Null, Ok(())),
        (json!("be brief"), Err(-32602)),
        (json!({}), Err(-32602)),
        (json!({ "content": text }), Err(-32602)),
        (json!({ "mode": "append", "content": "t" }), Err(-32602)),
        (json!({ "mode": "append", "content": [{ "type": "text" }] }), Err(-32602)),
        (json!({ "mode": 1, "content": text }), Err(-32602)),
    ] {
        let params = with(&new, "systemPrompt", prompt);
        assert_eq!(taken::<v1::NewSessionRequest>("session/new", &params).await, outcome, "{params}");
        let old = with(&params, "sessionId", json!("s"));
        assert_eq!(taken::<v1::ResumeSessionRequest>("session/resume", &old).await, outcome, "{old}");
    }
}

#[tokio::test]
async fn what_is_only_shown() {
    let initialize = json!({ "protocolVersion": 1 });
    for (name, value) in [
        ("clientCapabilities", json!({ "fs": 1, "terminal": "x", "session": [], "elicitation": 7, "plan": "y" })),
        ("clientCapabilities", json!(null)),
        ("clientInfo", json!({ "name": 1 })),
        ("_meta", json!("x")),
    ] {
        let params = with(&initialize, name, value);
        assert_eq!(taken::<v1::InitializeRequest>("initialize", &params).await, Ok(()), "{params}");
    }
    let commands =
        json!([{ "name": "a", "description": "A" }, { "name": 1 }, null, { "name": "b", "description": "B" }]);
    let update = json!({ "sessionId": "s", "update": { "sessionUpdate": "available_commands_update", "availableCommands": commands } });
    let read: v1::SessionNotification = serde_json::from_value(update).expect("an update");
    let v1::SessionUpdate::AvailableCommandsUpdate(update) = read.update else { panic!("commands") };
    assert_eq!(update.available_commands.iter().map(|command| command.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[cfg(feature = "unstable_protocol_v2")]
#[tokio::test]
async fn what_version_2_acts_on() {
    use greenroom::schema::v2;
    let new = json!({ "cwd": "/" });
    let servers = || vec![json!(1), json!({}), json!([{}]), json!([{ "type": "stdio", "name": "n" }]), json!([null])];
    strict::<v2::NewSessionRequest>("session/new", &new, "mcpServers", servers()).await;
    strict::<v2::NewSessionRequest>("session/new", &new, "additionalDirectories", vec![json!("/"), json!([1])]).await;
    let old = json!({ "cwd": "/", "sessionId": "s" });
    strict::<v2::ResumeSessionRequest>("session/resume", &old, "mcpServers", servers()).await;
    for cursor in [json!("start"), json!({}), json!({ "type": 1 }), json!([])] {
        let params = with(&old, "replayFrom", cursor);
        assert_eq!(taken::<v2::ResumeSessionRequest>("session/resume", &params).await, Err(-32602), "{params}");
    }
    let prompt = json!({ "sessionId": "s", "prompt": [] });
    for key in [json!(""), json!(1), json!("x".repeat(256))] {
        let params = with(&prompt, "idempotencyKey", key);
        assert_eq!(taken::<v2::PromptRequest>("session/prompt", &params).await, Err(-32602), "{params}");
    }
    // An empty list of options asks nothing (spec §1.E, E7).
    let permission = json!({ "sessionId": "s", "title": "T", "options": [] });
    let outcome = taken::<v2::RequestPermissionRequest>("session/request_permission", &permission).await;
    assert_eq!(outcome, Err(-32602));
}
