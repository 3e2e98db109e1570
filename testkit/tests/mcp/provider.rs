//! What a provider answers, row by row, over a connection.

use greenroom::Error;
use greenroom::mcp_server::{McpConnectionContext, McpOutcome};
use greenroom::schema::McpError;
use serde_json::{Map, Value, json};

use super::support::*;

#[tokio::test]
async fn a_server_answers_and_its_notifications_come_first() {
    let mut it = attached(server(|request, context| {
        Box::pin(async move {
            assert_eq!(context.metadata()["io.modelcontextprotocol/protocolVersion"], VERSION);
            assert!(!context.operation_cancellation().is_cancelled() && !context.cancellation().is_cancelled());
            let whom = context.connection().context().clone();
            let McpConnectionContext::Acp { server_id, request_id } = &whom else { panic!("over ACP") };
            assert_eq!((server_id, request_id), (context.server_id(), context.request_id()));
            let progress = json!({ "progress": 1 }).as_object().cloned();
            context.send_notification("notifications/progress", progress).await?;
            context.send_notification("notifications/message", None).await?;
            Ok(McpOutcome::Result(json!({ "method": request.method, "name": request.params.expect("params")["name"] })))
        })
    }))
    .await;
    it.agent.send(&call("x", &it.id, "op", "tools/call", json!({ "name": "n" }))).await;
    let about = |method: &str, params: Value| {
        let mut note = note("mcp/message", json!({ "serverId": it.id, "requestId": "op", "method": method }));
        if !params.is_null() {
            note["params"]["params"] = params;
        }
        note
    };
    it.agent.expect(about("notifications/progress", json!({ "progress": 1 }))).await;
    it.agent.expect(about("notifications/message", Value::Null)).await;
    it.agent.expect(result("x", json!({ "result": { "method": "tools/call", "name": "n" } }))).await;
}

#[tokio::test]
async fn every_refusal_of_the_binding_has_its_code() {
    let mut it = attached(server(shouting)).await;
    let id = it.id.clone();
    // Errors of ACP.
    it.agent.send(&call(1, "unknown", "a", "tools/list", json!({}))).await;
    assert_eq!(refused(&mut it.agent, 1).await, -33001);
    for (number, params) in [
        json!({ "serverId": id, "method": "m" }),
        json!({ "serverId": id, "requestId": 7, "method": "m" }),
        json!({ "serverId": id, "requestId": "a", "method": "m", "params": [1] }),
        json!({ "serverId": 7, "requestId": "a", "method": "m" }),
        json!({}),
        Value::Null,
    ]
    .into_iter()
    .enumerate()
    {
        it.agent.send(&request(number, "mcp/message", params.clone())).await;
        assert_eq!(refused(&mut it.agent, number).await, -32602, "{params}");
    }
    // Errors of MCP.
    let metadata =
        |meta: Value| json!({ "serverId": id, "requestId": "a", "method": "tools/list", "params": { "_meta": meta } });
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    for (number, (params, code)) in [
        (json!({ "serverId": id, "requestId": "a", "method": "initialize" }), -32601),
        (json!({ "serverId": id, "requestId": "a", "method": "tools/list" }), -32602),
        (metadata(json!("text")), -32602),
        (metadata(json!({ version: 1, capabilities: {} })), -32602),
        (metadata(json!({ version: VERSION })), -32602),
        (metadata(json!({ version: "2025-11-25", capabilities: {} })), -32022),
    ]
    .into_iter()
    .enumerate()
    {
        it.agent.send(&request(number, "mcp/message", params.clone())).await;
        let answer = next(&mut it.agent).await;
        assert_eq!(answer["id"], number);
        assert_eq!(answer["result"]["error"]["code"], code, "{params}: {answer}");
        assert!(answer["result"].get("result").is_none());
    }
}

#[tokio::test]
async fn outcomes_and_failures_keep_apart() {
    let mut it = attached(server(|request, _| {
        Box::pin(async move {
            match &*request.method {
                "null" => Ok(McpOutcome::Result(Value::Null)),
                "inner" => {
                    let mut error = McpError::new(-32000, "no").data(Value::Null);
                    error.extra = Map::from_iter([("more".to_owned(), json!([1]))]);
                    Ok(McpOutcome::Error(error))
                }
                "server/discover" => Ok(McpOutcome::Result(json!({ "supportedVersions": ["2025-11-25", VERSION] }))),
                "fails" => Err(Error::invalid_params().data("why")),
                _ => panic!("expected by this test"),
            }
        })
    }))
    .await;
    for (method, expected) in [
        ("null", json!({ "result": null })),
        ("inner", json!({ "error": { "code": -32000, "message": "no", "data": null, "more": [1] } })),
        ("server/discover", json!({ "result": { "supportedVersions": [VERSION] } })),
    ] {
        it.agent.send(&call(1, &it.id, "a", method, json!({}))).await;
        it.agent.expect(result(1, expected)).await;
    }
    it.agent.send(&call(2, &it.id, "a", "fails", json!({}))).await;
    let answer = next(&mut it.agent).await;
    assert_eq!(answer["error"]["code"], -33002);
    assert!(answer["error"]["data"].as_str().is_some_and(|data| data.contains("why")), "{answer}");
    it.agent.send(&call(3, &it.id, "a", "panics", json!({}))).await;
    let answer = next(&mut it.agent).await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(3), &json!(-33002)));
    // And nothing else noticed.
    it.agent.send(&call(4, &it.id, "a", "null", json!({}))).await;
    it.agent.expect(result(4, json!({ "result": null }))).await;
}

#[tokio::test]
async fn operations_run_at_the_same_time_and_their_ids_are_their_own() {
    let (release, released) = tokio::sync::watch::channel(false);
    let mut it = attached(server(move |request, _| {
        let mut released = released.clone();
        Box::pin(async move {
            if request.method == "slow" {
                let _ = released.wait_for(|released| *released).await;
            }
            Ok(McpOutcome::Result(json!(request.method)))
        })
    }))
    .await;
    it.agent.send(&call(1, &it.id, "one", "slow", json!({}))).await;
    it.agent.send(&call(2, &it.id, "two", "fast", json!({}))).await;
    it.agent.expect(result(2, json!({ "result": "fast" }))).await;
    it.agent.send(&call(3, &it.id, "one", "fast", json!({}))).await;
    assert_eq!(refused(&mut it.agent, 3).await, -32602, "the id is taken");
    release.send_replace(true);
    it.agent.expect(result(1, json!({ "result": "slow" }))).await;
    it.agent.send(&call(4, &it.id, "one", "fast", json!({}))).await;
    it.agent.expect(result(4, json!({ "result": "fast" }))).await;
}

#[tokio::test]
async fn there_is_a_limit_to_what_is_active() {
    let mut it = attached(server(|_, context| {
        Box::pin(async move {
            context.operation_cancellation().cancelled().await;
            Ok(McpOutcome::Result(Value::Null))
        })
    }))
    .await;
    for number in 0..=1024 {
        it.agent.send(&call(number, &it.id, &number.to_string(), "waits", json!({}))).await;
    }
    assert_eq!(refused(&mut it.agent, 1024).await, -33000);
    it.agent.send(&note("$/cancel_request", json!({ "requestId": 5 }))).await;
    assert_eq!(refused(&mut it.agent, 5).await, -32800);
    it.agent.send(&call("again", &it.id, "again", "waits", json!({}))).await;
    it.agent.send(&note("$/cancel_request", json!({ "requestId": "again" }))).await;
    assert_eq!(refused(&mut it.agent, "again").await, -32800, "there is room again");
}

#[tokio::test]
async fn notifications_for_other_servers_go_nowhere() {
    let mut it = attached(server(shouting)).await;
    it.agent
        .send(&note("mcp/message", json!({ "serverId": it.id, "requestId": "x", "method": "notifications/x" })))
        .await;
    it.agent.send(&note("mcp/message", json!({ "serverId": "other" }))).await;
    it.agent.send(&call(1, &it.id, "a", "tools/call", json!({ "name": "shout", "arguments": { "text": "hi" } }))).await;
    it.agent.expect(result(1, json!({ "result": { "content": [{ "type": "text", "text": "HI" }] } }))).await;
}
