//! Tools made of closures.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom::mcp_server::{
    McpOutcome, McpRequest, McpRequestContext, McpServer, McpToolRegistry, tool_fn, tool_fn_mut,
};
use greenroom::{Agent, ChainRun, Error};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::support::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Counted {
    calls: usize,
    text: String,
}

/// Serves the tools of a registry.
fn serving(registry: McpToolRegistry<Agent>) -> impl Fn(McpRequest, McpRequestContext<Agent>) -> Answer + Send + Sync {
    let registry = Arc::new(registry);
    move |request, context| {
        let registry = registry.clone();
        Box::pin(async move {
            let params = request.params.unwrap_or_default();
            let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
            let tool = registry.enabled_tool(name).ok_or_else(Error::method_not_found)?;
            let arguments = params.get("arguments").cloned().unwrap_or_default();
            tokio::select! {
                biased;
                () = context.operation_cancellation().cancelled() => Err(Error::request_cancelled()),
                result = tool.call_tool(arguments, context.connection().clone()) => {
                    Ok(McpOutcome::Result(json!({ "structuredContent": result? })))
                }
            }
        })
    }
}

fn asks(id: &str, server: &str, name: &str, text: &str) -> Value {
    call(id, server, id, "tools/call", json!({ "name": name, "arguments": { "text": text } }))
}

#[tokio::test]
async fn closures_are_tools_with_schemas() {
    let mut registry = McpToolRegistry::default();
    let (shout, runs) = tool_fn(
        "shout",
        "Says it louder.",
        async |input: Text, cx: greenroom::mcp_server::McpConnectionTo<Agent>| {
            assert!(cx.server_id().is_some());
            Ok(Counted { calls: 1, text: input.text.to_uppercase() })
        },
        greenroom::tool_fn!(),
    );
    registry.register_tool(shout);
    let tool = registry.tool("shout").expect("registered");
    let metadata = tool.metadata();
    assert_eq!((metadata.name(), metadata.description(), metadata.title()), ("shout", "Says it louder.", None));
    assert_eq!(metadata.input_schema()["properties"]["text"]["type"], "string");
    assert!(tool.has_structured_output());
    assert_eq!(metadata.output_schema().expect("an object")["properties"]["text"]["type"], "string");
    let mut it = attached(McpServer::new_service("tools", Asks(serving(registry)), runs)).await;
    it.agent.send(&asks("1", &it.id, "shout", "hi")).await;
    it.agent.expect(result("1", json!({ "result": { "structuredContent": { "calls": 1, "text": "HI" } } }))).await;
    let odd = call("2", &it.id, "2", "tools/call", json!({ "name": "shout", "arguments": { "text": 7 } }));
    it.agent.send(&odd).await;
    assert_eq!(refused(&mut it.agent, "2").await, -33002);
}

#[tokio::test]
async fn mutable_tools_queue_and_forget_what_was_cancelled() {
    let (say, mut heard) = log();
    let (release, released) = oneshot::channel::<()>();
    let (mut calls, mut released) = (0, Some(released));
    let (count, counting) = tool_fn_mut(
        "count",
        "Counts its calls.",
        async move |input: Text, _cx: greenroom::mcp_server::McpConnectionTo<Agent>| {
            calls += 1;
            let _ = say.send(if input.text == "first" { "first" } else { "another" });
            if input.text == "panic" {
                panic!("expected by this test");
            }
            if let Some(released) = released.take() {
                let _ = released.await;
            }
            Ok(Counted { calls, text: input.text })
        },
        greenroom::tool_fn_mut!(),
    );
    let (other, runs) = tool_fn(
        "other",
        "Does nothing.",
        async |input: Text, _cx: greenroom::mcp_server::McpConnectionTo<Agent>| Ok(input.text),
        greenroom::tool_fn!(),
    );
    let mut registry = McpToolRegistry::default();
    registry.register_tool(count);
    registry.register_tool(other);
    let server = McpServer::new_service("tools", Asks(serving(registry)), ChainRun::new(counting, runs));
    let mut it = attached(server).await;
    it.agent.send(&asks("1", &it.id, "count", "first")).await;
    heard.expect("first").await;
    it.agent.send(&asks("2", &it.id, "count", "waits")).await;
    it.agent.send(&asks("3", &it.id, "other", "free")).await;
    it.agent.expect(result("3", json!({ "result": { "structuredContent": "free" } }))).await;
    // The call that waits is answered although the one before it still runs, and never runs itself.
    it.agent.send(&note("$/cancel_request", json!({ "requestId": "2" }))).await;
    assert_eq!(refused(&mut it.agent, "2").await, -32800);
    release.send(()).expect("the first call waits");
    it.agent.expect(result("1", json!({ "result": { "structuredContent": { "calls": 1, "text": "first" } } }))).await;
    heard.expect_silence();
    // A panic harms its own call only.
    it.agent.send(&asks("4", &it.id, "count", "panic")).await;
    assert_eq!(refused(&mut it.agent, "4").await, -33002);
    it.agent.send(&asks("5", &it.id, "count", "last")).await;
    it.agent.expect(result("5", json!({ "result": { "structuredContent": { "calls": 3, "text": "last" } } }))).await;
}

#[tokio::test]
async fn a_cancelled_call_does_not_poison_the_queue() {
    let (say, mut heard) = log();
    let (count, counting) = tool_fn_mut(
        "count",
        "Waits for ever the first time.",
        async move |input: Text, _cx: greenroom::mcp_server::McpConnectionTo<Agent>| {
            let _ = say.send("began");
            if input.text == "for ever" {
                std::future::pending::<()>().await;
            }
            Ok(input.text)
        },
        greenroom::tool_fn_mut!(),
    );
    let mut registry = McpToolRegistry::default();
    registry.register_tool(count);
    let mut it = attached(McpServer::new_service("tools", Asks(serving(registry)), counting)).await;
    it.agent.send(&asks("1", &it.id, "count", "for ever")).await;
    heard.expect("began").await;
    it.agent.send(&note("$/cancel_request", json!({ "requestId": "1" }))).await;
    assert_eq!(refused(&mut it.agent, "1").await, -32800);
    it.agent.send(&asks("2", &it.id, "count", "next")).await;
    it.agent.expect(result("2", json!({ "result": { "structuredContent": "next" } }))).await;
}

/// Inputs of one test that are in memory.
static INPUTS: AtomicUsize = AtomicUsize::new(0);

/// Counts itself in [`INPUTS`].
struct Counting;

impl Default for Counting {
    fn default() -> Self {
        INPUTS.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        INPUTS.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Kept {
    text: String,
    #[serde(skip)]
    #[schemars(skip)]
    _counting: Counting,
}

#[tokio::test]
async fn calls_that_were_cancelled_while_they_waited_keep_no_memory() {
    let (say, mut heard) = log();
    let (release, released) = oneshot::channel::<()>();
    let mut released = Some(released);
    let (slow, runs) = tool_fn_mut(
        "slow",
        "Waits the first time.",
        async move |input: Kept, _cx: greenroom::mcp_server::McpConnectionTo<Agent>| {
            let _ = say.send("began");
            if let Some(released) = released.take() {
                let _ = released.await;
            }
            Ok(input.text)
        },
        greenroom::tool_fn_mut!(),
    );
    let mut registry = McpToolRegistry::default();
    registry.register_tool(slow);
    let mut it = attached(McpServer::new_service("tools", Asks(serving(registry)), runs)).await;
    it.agent.send(&asks("first", &it.id, "slow", "first")).await;
    heard.expect("began").await;
    for round in 0..50 {
        let id = round.to_string();
        it.agent.send(&asks(&id, &it.id, "slow", "waits")).await;
        soon(async {
            while INPUTS.load(Ordering::Relaxed) < 2 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        it.agent.send(&note("$/cancel_request", json!({ "requestId": id }))).await;
        assert_eq!(refused(&mut it.agent, id).await, -32800);
        assert_eq!(INPUTS.load(Ordering::Relaxed), 1, "only the one that runs");
    }
    it.agent.send(&asks("last", &it.id, "slow", "last")).await;
    release.send(()).expect("the first call waits");
    it.agent.expect(result("first", json!({ "result": { "structuredContent": "first" } }))).await;
    it.agent.expect(result("last", json!({ "result": { "structuredContent": "last" } }))).await;
    heard.expect("began").await;
    heard.expect_silence();
}
