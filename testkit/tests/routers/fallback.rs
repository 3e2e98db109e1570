//! A connector whose client of version 2 gives way to one of version 1.

use std::sync::{Arc, Mutex};

use greenroom::schema::{ProtocolVersion, v1, v2};
use greenroom::{Agent, Client, ConnectTo, ConnectionTo, Error, V2ConnectionTo};
use greenroom_testkit::scripted::Local;
use serde_json::{Value, json};

use super::connector::{Attempt, asked, connect};
use super::support::*;

/// An initialize that version 1 can say as well.
fn plain() -> Value {
    let info = json!({ "name": "peer", "version": "1" });
    request("two", "initialize", json!({ "protocolVersion": 2, "info": info, "capabilities": {} }))
}

/// What a client of version 1 sends that says the same.
fn same(id: Value) -> Value {
    let info = json!({ "name": "peer", "version": "1" });
    let mut params = json!({ "protocolVersion": 1, "clientInfo": info, "clientCapabilities": {
        "fs": { "readTextFile": false, "writeTextFile": false },
        "terminal": false,
        "session": { "configOptions": { "boolean": {} } },
    } });
    // Whatever else this build's schema writes by default.
    let written: v1::InitializeRequest = serde_json::from_value(params.clone()).expect("version 1");
    params = serde_json::to_value(written).expect("JSON");
    request(id, "initialize", params)
}

const ANSWER: &str = r#"{"id":"two" ,"jsonrpc":"2.0","result":{"n":1.50e1, "protocolVersion" : 1}}"#;

/// The agent has answered an initialize of version 2 with version 1.
async fn lowered(first: &Value) -> (Attempt, Local, Local) {
    let (attempt, client, mut agent) = asked(true, &first.to_string()).await;
    agent.write(format!("{ANSWER}\n")).await;
    (attempt, client, agent)
}

#[tokio::test]
async fn a_client_that_says_the_same_takes_the_connection_over() {
    for id in [json!(1), json!("i")] {
        let (mut attempt, mut old, mut agent) = lowered(&plain()).await;
        // What comes behind the answer waits for whoever takes over.
        let behind = note("session/update", json!({ "n": 1.5 })).to_string();
        agent.write(format!("{behind}\n")).await;
        soon(old.expect_end()).await;
        let mut client = made(&mut attempt.v1s).await;
        client.send(&same(id.clone())).await;
        let delivered = soon(client.line()).await.expect("the answer");
        assert_eq!(delivered, ANSWER.replace(r#""two""#, &id.to_string()), "the original but for the id");
        assert_eq!(soon(client.line()).await, Some(behind));
        for line in ODD_LINES {
            // The first line that the agent sees: no second initialize.
            passes(&mut client, &mut agent, line).await;
            passes(&mut agent, &mut client, line).await;
        }
        client.close().await;
        soon(agent.expect_end()).await;
        agent.close().await;
        soon(attempt.run).await.expect("no panic").expect("a clean end");
        for factory in [&mut attempt.v1s, &mut attempt.v2s, &mut attempt.agents] {
            made_no_more(factory);
        }
    }
}

/// A fresh client of version 1 on a fresh connection.
async fn starts_again(attempt: &mut Attempt) {
    let (mut client, mut agent) = (made(&mut attempt.v1s).await, made(&mut attempt.agents).await);
    passes(&mut client, &mut agent, &same(json!(1)).to_string()).await;
    passes(&mut agent, &mut client, &result(1, json!({ "protocolVersion": 1 })).to_string()).await;
    for line in ODD_LINES {
        passes(&mut client, &mut agent, line).await;
        passes(&mut agent, &mut client, line).await;
    }
    client.close().await;
    soon(agent.expect_end()).await;
    agent.close().await;
    soon(&mut attempt.run).await.expect("no panic").expect("a clean end");
    for factory in [&mut attempt.v1s, &mut attempt.v2s, &mut attempt.agents] {
        made_no_more(factory);
    }
}

#[tokio::test]
async fn a_client_that_says_something_else_gets_a_connection_of_its_own() {
    let mut other = same(json!(1));
    other["params"]["clientCapabilities"]["terminal"] = json!(true);
    for first in [other, request(1, "session/new", json!({})), note("x", json!({}))] {
        let (mut attempt, mut old, mut agent) = lowered(&plain()).await;
        soon(old.expect_end()).await;
        let mut probed = made(&mut attempt.v1s).await;
        probed.send(&first).await;
        soon(probed.expect_end()).await;
        soon(agent.expect_end()).await;
        starts_again(&mut attempt).await;
    }
}

#[tokio::test]
async fn a_client_that_ends_without_a_word_is_not_run_again() {
    let (mut attempt, mut old, mut agent) = lowered(&plain()).await;
    soon(old.expect_end()).await;
    let mut probed = made(&mut attempt.v1s).await;
    probed.close().await;
    soon(probed.expect_end()).await;
    soon(agent.expect_end()).await;
    soon(attempt.run).await.expect("no panic").expect("it ended as its client did");
    made_no_more(&mut attempt.v1s);
}

#[tokio::test]
async fn what_version_one_cannot_say_is_not_probed() {
    let mut unknown = plain();
    unknown["params"]["unknown"] = json!(1);
    let mut terminal = plain();
    terminal["params"]["capabilities"] = json!({ "auth": { "terminal": { "_meta": { "k": 1 } } } });
    for first in [unknown, terminal] {
        let (mut attempt, mut old, mut agent) = lowered(&first).await;
        soon(old.expect_end()).await;
        soon(agent.expect_end()).await;
        starts_again(&mut attempt).await;
    }
}

#[tokio::test]
async fn a_client_that_went_on_is_not_probed() {
    let (mut attempt, mut old, mut agent) = asked(true, &plain().to_string()).await;
    passes(&mut old, &mut agent, &note("$/cancel_request", json!({ "requestId": "two" })).to_string()).await;
    agent.write(format!("{ANSWER}\n")).await;
    soon(old.expect_end()).await;
    soon(agent.expect_end()).await;
    starts_again(&mut attempt).await;
}

#[tokio::test]
async fn dropping_the_connector_while_a_client_is_probed_ends_everything() {
    let (mut attempt, _old, mut agent) = lowered(&plain()).await;
    let mut probed = made(&mut attempt.v1s).await;
    attempt.run.abort();
    soon(probed.expect_end()).await;
    soon(agent.expect_end()).await;
}

#[tokio::test]
async fn an_agent_that_ends_while_a_client_is_probed_ends_the_connection() {
    let (mut attempt, _old, mut agent) = lowered(&plain()).await;
    let mut client = made(&mut attempt.v1s).await;
    agent.close().await;
    client.send(&same(json!(1))).await;
    // The answer was there already.
    assert_eq!(soon(client.receive()).await["result"]["protocolVersion"], 1);
    soon(client.expect_end()).await;
    client.close().await;
    soon(attempt.run).await.expect("no panic").expect("a clean end");
}

/// What a client has done, in order.
type Log = Arc<Mutex<Vec<String>>>;

fn wrote(log: &Log, line: impl Into<String>) {
    log.lock().expect("no panic").push(line.into());
}

/// A client that asks for its version and then for an echo.
fn first_client(log: Log) -> impl ConnectTo<Agent> {
    Client.v2().with_spawned(async move |cx: V2ConnectionTo<Agent>| {
        let info = v2::Implementation::new("peer", "1");
        wrote(&log, "v2 asks");
        let answer = cx.send_request(v2::InitializeRequest::new(ProtocolVersion::V2, info)).block_task().await?;
        wrote(&log, format!("v2 got {}", answer.protocol_version));
        echoed(&log, cx.send_request(message("echo")).block_task()).await
    })
}

fn second_client(log: Log, capable: bool) -> impl ConnectTo<Agent> {
    Client.builder().with_spawned(async move |cx: ConnectionTo<Agent>| {
        wrote(&log, "v1 asks");
        let hello: v1::InitializeRequest = serde_json::from_value(same(json!(1))["params"].clone())?;
        let capabilities = hello.client_capabilities.clone().terminal(capable);
        let answer = cx.send_request(hello.client_capabilities(capabilities)).block_task().await?;
        wrote(&log, format!("v1 got {}", answer.protocol_version));
        echoed(&log, cx.send_request(message("echo")).block_task()).await
    })
}

fn message(method: &str) -> greenroom::UntypedMessage {
    greenroom::UntypedMessage::new(method, json!({ "k": 1 })).expect("params")
}

async fn echoed(log: &Log, answer: impl Future<Output = greenroom::Result<Value>>) -> greenroom::Result<()> {
    wrote(log, answer.await?.to_string());
    // A runner that is done does not end its connection; this ends the whole attempt.
    Err(Error::internal_error().data("done"))
}

#[tokio::test]
async fn real_clients_and_agents_agree_on_a_version() {
    let agent_two = || {
        Agent.v2().on_receive_request(
            async |message: greenroom::UntypedMessage,
                   responder: greenroom::Responder<Value>,
                   _client: V2ConnectionTo<Client>| {
                match message.method.as_str() {
                    "initialize" => {
                        let info = v2::Implementation::new("agent", "1");
                        let answer = v2::InitializeResponse::new(ProtocolVersion::V2, info);
                        responder.respond(serde_json::to_value(answer)?)
                    }
                    _ => responder.respond(message.params),
                }
            },
            greenroom::on_receive_request!(),
        )
    };
    for (speaks_two, capable, expected) in [
        (true, false, ["v2 asks", "v2 got 2", r#"{"k":1}"#].as_slice()),
        (false, false, ["v2 asks", "v1 asks", "v1 got 1", r#"{"k":1}"#].as_slice()),
        (false, true, ["v2 asks", "v1 asks", "v1 asks", "v1 got 1", r#"{"k":1}"#].as_slice()),
    ] {
        let log = Log::default();
        let (one, two) = (log.clone(), log.clone());
        let connector = Client
            .protocol_connector()
            .with_v1(move || second_client(one.clone(), capable))
            .with_v2(move || first_client(two.clone()));
        let transport = move || {
            if speaks_two {
                greenroom::DynConnectTo::<Client>::new(agent_two())
            } else {
                greenroom::DynConnectTo::new(echo("one"))
            }
        };
        let error = soon(connector.connect_to(transport)).await.expect_err("the client's own");
        assert_eq!(error.data, Some(json!("done")), "{error}");
        assert_eq!(*log.lock().expect("no panic"), expected);
    }
}

#[tokio::test]
async fn without_a_client_of_version_one_the_client_of_version_two_fails() {
    let log = Log::default();
    let mine = log.clone();
    let connector = Client.protocol_connector().with_v2(move || first_client(mine.clone()));
    let error = soon(connector.connect_to(|| echo("one"))).await.expect_err("version 1");
    assert_eq!(i32::from(error.code), -32600);
    assert_eq!(*log.lock().expect("no panic"), ["v2 asks"]);
    // Nothing is left over that would hold a second attempt up.
    let attempt = connect(false);
    attempt.run.abort();
}
