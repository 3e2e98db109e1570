//! A connector whose client of version 2 keeps the connection.

use greenroom::link::Link;
use greenroom::{Client, Error};
use greenroom_testkit::scripted::Local;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::support::*;

/// Everything that a connector starts, as far as it is started.
pub(crate) struct Attempt {
    pub(crate) v1s: mpsc::UnboundedReceiver<Local>,
    pub(crate) v2s: mpsc::UnboundedReceiver<Local>,
    pub(crate) agents: mpsc::UnboundedReceiver<Local>,
    pub(crate) run: JoinHandle<greenroom::Result<()>>,
}

/// A connector with scripted clients and agents.
pub(crate) fn connect(with_v1: bool) -> Attempt {
    let ((v1, v1s), (v2, v2s), (transport, agents)) = (factory(), factory(), factory());
    let connector = Client.protocol_connector().with_v2(v2);
    let connector = if with_v1 { connector.with_v1(v1) } else { connector };
    Attempt { v1s, v2s, agents, run: tokio::spawn(connector.connect_to(transport)) }
}

/// A connector whose client of version 2 has sent this, and what the agent got.
pub(crate) async fn asked(with_v1: bool, first: &str) -> (Attempt, Local, Local) {
    let mut attempt = connect(with_v1);
    let mut client = made(&mut attempt.v2s).await;
    client.write(format!("{first}\n")).await;
    let mut agent = made(&mut attempt.agents).await;
    assert_eq!(soon(agent.line()).await.as_deref(), Some(first), "unchanged");
    (attempt, client, agent)
}

fn selected(version: Value) -> Value {
    result("i", json!({ "protocolVersion": version, "more": null }))
}

const FIRST: &str = r#"{"id":"i","params":{"x":1.50e1, "protocolVersion" : 2,"info":{"version":"1","name":"n"}},"jsonrpc":"2.0","method":"initialize"}"#;

#[tokio::test]
async fn an_agent_of_version_two_is_served_on_the_first_connection() {
    let (mut attempt, mut client, mut agent) = asked(true, FIRST).await;
    passes(&mut agent, &mut client, &selected(json!(2)).to_string()).await;
    for line in ODD_LINES {
        passes(&mut client, &mut agent, line).await;
        passes(&mut agent, &mut client, line).await;
    }
    client.close().await;
    soon(agent.expect_end()).await;
    agent.close().await;
    soon(client.expect_end()).await;
    soon(attempt.run).await.expect("no panic").expect("a clean end");
    for factory in [&mut attempt.v1s, &mut attempt.v2s, &mut attempt.agents] {
        made_no_more(factory);
    }
}

#[tokio::test]
async fn what_is_no_lower_version_is_for_the_client_of_version_two() {
    let error = json!({ "jsonrpc": "2.0", "id": "i", "error": { "code": -32022, "message": "", "data": { "x": 1 } } });
    for (with_v1, answer) in [
        (true, error),
        (true, selected(json!(0))),
        (true, selected(json!(3))),
        (true, selected(json!("1"))),
        (true, result("i", json!({}))),
        (false, selected(json!(1))),
    ] {
        let (mut attempt, mut client, mut agent) = asked(with_v1, FIRST).await;
        passes(&mut agent, &mut client, &answer.to_string()).await;
        // It may try again on the same connection, or do what it likes.
        passes(&mut client, &mut agent, FIRST).await;
        passes(&mut agent, &mut client, &selected(json!(1)).to_string()).await;
        made_no_more(&mut attempt.v1s);
        made_no_more(&mut attempt.agents);
    }
}

#[tokio::test]
async fn a_client_that_does_not_begin_with_initialize_fails() {
    for first in [request(1, "session/new", json!({})), note("initialize", hello(2)), json!([initialize(1, 2)])] {
        let mut attempt = connect(true);
        let mut client = made(&mut attempt.v2s).await;
        client.send(&first).await;
        let error = soon(attempt.run).await.expect("no panic").expect_err("no initialize");
        assert_eq!(i32::from(error.code), -32600, "{first}");
        soon(client.expect_end()).await;
        made_no_more(&mut attempt.agents);
        made_no_more(&mut attempt.v1s);
    }
}

#[tokio::test]
async fn a_client_may_have_nothing_to_say() {
    let mut attempt = connect(true);
    let mut client = made(&mut attempt.v2s).await;
    client.close().await;
    soon(client.expect_end()).await;
    soon(attempt.run).await.expect("no panic").expect("a clean end");
    made_no_more(&mut attempt.agents);
}

#[tokio::test]
async fn an_agent_that_ends_before_it_answers_is_an_error() {
    for with_v1 in [true, false] {
        let (mut attempt, mut client, mut agent) = asked(with_v1, FIRST).await;
        agent.close().await;
        // The client sees the end of its connection as it is, and ends when it likes.
        soon(client.expect_end()).await;
        client.close().await;
        soon(agent.expect_end()).await;
        let error = soon(attempt.run).await.expect("no panic").expect_err("no answer");
        assert!(error.to_string().contains("before it answered"), "{error}");
        made_no_more(&mut attempt.v1s);
        made_no_more(&mut attempt.agents);
    }
}

#[tokio::test]
async fn a_transport_that_does_not_open_is_an_error_and_ends_the_client() {
    let (v2, mut v2s) = factory();
    let transport = || Link::opening(async { Err(Error::internal_error().data("no such program")) });
    let run = tokio::spawn(Client.protocol_connector().with_v2(v2).connect_to(transport));
    let mut client = made(&mut v2s).await;
    client.write(format!("{FIRST}\n")).await;
    soon(client.expect_end()).await;
    let error = soon(run).await.expect("no panic").expect_err("it does not open");
    assert_eq!(error.data, Some(json!("no such program")));
}

#[tokio::test]
async fn what_the_agent_says_too_early_is_refused_and_reaches_no_client() {
    let (_attempt, mut client, mut agent) = asked(true, FIRST).await;
    agent.write("Welcome\n").await;
    agent.send(&note("session/update", json!({}))).await;
    agent.send(&request("i", "fs/read_text_file", json!({}))).await;
    assert_eq!(refused(&mut agent, "i").await, -32600);
    agent.send(&json!([request(1, "fs/read_text_file", json!({})), note("x", json!({}))])).await;
    assert_eq!(soon(agent.receive()).await[0]["error"]["code"], -32600);
    agent.write("{\n").await;
    assert_eq!(refused(&mut agent, json!(null)).await, -32700);
    passes(&mut agent, &mut client, &selected(json!(2)).to_string()).await;
}

#[tokio::test]
async fn a_cancelled_initialize_is_cancelled_at_the_agent() {
    let (_attempt, mut client, mut agent) = asked(true, FIRST).await;
    let cancel = note("$/cancel_request", json!({ "requestId": "i" })).to_string();
    passes(&mut client, &mut agent, &cancel).await;
    let cancelled = json!({ "jsonrpc": "2.0", "id": "i", "error": { "code": -32800, "message": "" } });
    passes(&mut agent, &mut client, &cancelled.to_string()).await;
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_connection_along() {
    let (attempt, mut client, mut agent) = asked(true, FIRST).await;
    client.close().await;
    soon(agent.expect_end()).await;
    // What the agent still says arrives.
    passes(&mut agent, &mut client, &selected(json!(1)).to_string()).await;
    agent.close().await;
    soon(client.expect_end()).await;
    soon(attempt.run).await.expect("no panic").expect("a clean end");
}

#[tokio::test]
async fn dropping_the_connector_ends_both_sides() {
    for answered in [false, true] {
        let (attempt, mut client, mut agent) = asked(true, FIRST).await;
        if answered {
            passes(&mut agent, &mut client, &selected(json!(2)).to_string()).await;
        }
        attempt.run.abort();
        soon(client.expect_end()).await;
        soon(agent.expect_end()).await;
    }
}
