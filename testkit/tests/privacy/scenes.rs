//! What can go wrong on a connection, with a secret in every place that can hold one.

use std::time::Duration;

use greenroom::link::Link;
use greenroom::schema::v1;
use greenroom::{
    Agent, Client, ConnectTo, ConnectionTo, Error, Proxy, Responder, UntypedMessage, on_receive_notification,
    on_receive_request,
};
use greenroom_conductor::{ConductorImpl, ProxiesAndAgent, embedded::arrow_proxy};
use greenroom_testkit::scripted::{Local, pair};
use greenroom_testkit::testy;
use serde_json::{Value, json};
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(20);

/// Plays every scene; the names of those that did not go as written.
pub(crate) async fn play() -> Vec<&'static str> {
    let scenes: [(&'static str, tokio::task::JoinHandle<()>); 6] = [
        ("a session through a chain", tokio::spawn(session())),
        ("handlers that fail", tokio::spawn(failing_handlers())),
        ("malformed input, to an agent", tokio::spawn(malformed_to(Role::Agent))),
        ("malformed input, to a client", tokio::spawn(malformed_to(Role::Client))),
        ("malformed input, to a chain", tokio::spawn(malformed_to(Role::Chain))),
        ("transports that break", tokio::spawn(broken_transports())),
    ];
    let mut failed = Vec::new();
    for (name, scene) in scenes {
        if !matches!(timeout(LIMIT, scene).await, Ok(Ok(()))) {
            failed.push(name);
        }
    }
    failed
}

fn new_session() -> Value {
    json!({
        "cwd": "/hunter2-cwd",
        "mcpServers": [
            {
                "name": "a", "command": "/hunter2-command", "args": ["hunter2-argument"],
                "env": [{ "name": "TOKEN_NAME", "value": "hunter2-env" }],
            },
            {
                "type": "http", "name": "b", "url": "https://hunter2-url",
                "headers": [{ "name": "X-Header-Name", "value": "hunter2-header" }],
            },
        ],
        "_meta": { "headers": { "Authorization": "hunter2-header" }, "\u{65}nv": "hunter2-env" },
    })
}

/// Both ends of a byte stream, so that there is a transport to trace.
fn pipe() -> (Link, Link) {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(near);
    let (far_reader, far_writer) = tokio::io::split(far);
    (Link::bytes(reader, writer), Link::bytes(far_reader, far_writer))
}

async fn session() {
    let (near, far) = pipe();
    let chain = ProxiesAndAgent::new(testy()).proxy(arrow_proxy()).proxy(Proxy.builder());
    let chain = ConductorImpl::new_agent("chain", chain).start(far).await.expect("a chain");
    Client
        .builder()
        .on_receive_notification(
            async |_: v1::SessionNotification, _cx| {
                Err::<(), _>(Error::new(-32001, "hunter2-message").data("hunter2-data"))
            },
            on_receive_notification!(),
        )
        .connect_with(near, async |cx: ConnectionTo<Agent>| {
            let ask = |method, params| cx.send_request(UntypedMessage::new(method, params).expect("a message"));
            ask("initialize", json!({ "protocolVersion": 1 })).block_task().await?;
            let session = ask("session/new", new_session()).block_task().await?["sessionId"].clone();
            let prompt = json!([{ "type": "text", "text": "echo hunter2-prompt" }]);
            ask("session/prompt", json!({ "sessionId": session, "prompt": prompt })).block_task().await?;
            ask("session/prompt", json!({ "sessionId": "hunter2-session", "prompt": [] }))
                .block_task()
                .await
                .unwrap_err();
            ask("session/prompt", json!({ "sessionId": ["hunter2-type"] })).block_task().await.unwrap_err();
            ask("_test/unknown", json!({ "a": "hunter2-params" })).block_task().await.unwrap_err();
            Ok(())
        })
        .await
        .expect("a session");
    let _ = chain.closed().await;
}

/// An agent whose every handler fails in its own way.
fn failing() -> impl ConnectTo<Client> {
    Agent
        .builder()
        .on_receive_notification(async |_: v1::CancelNotification, _cx| Ok(()), on_receive_notification!())
        .on_receive_request(
            async |_: v1::NewSessionRequest, _responder, _cx| Err::<(), _>(Error::new(-32001, "hunter2-message")),
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
                match request.method.as_str() {
                    "_test/panic" => panic!("hunter2-panic {:?}", request.params),
                    "_test/error" => {
                        return Err(Error::new(-32001, "hunter2-message").data(json!({ "a": "hunter2-data" })));
                    }
                    "_test/internal" => return Err(greenroom::util::internal_error("hunter2-data")),
                    "_test/task" => {
                        cx.spawn(async { Err(Error::new(-32001, "hunter2-message").data("hunter2-data")) })?
                    }
                    "_test/task panic" => cx.spawn(async { panic!("hunter2-panic") })?,
                    "_test/callback panic" => {
                        cx.send_request(request.clone()).on_receiving_result(async |_| panic!("hunter2-panic"))?
                    }
                    "_test/refused" => return responder.respond_with_internal_error("hunter2-data"),
                    _ => {}
                }
                responder.respond(json!("hunter2-result"))
            },
            on_receive_request!(),
        )
        .on_close(async |_cx| Err(Error::new(-32001, "hunter2-message").data("hunter2-data")))
}

async fn failing_handlers() {
    let (mut peer, link) = pair(1 << 16);
    let serving = tokio::spawn(failing().connect_to(link));
    let methods = ["error", "internal", "panic", "task", "task panic", "callback panic", "refused", "other"];
    for (id, method) in methods.into_iter().enumerate() {
        let params = json!({ "a": "hunter2-params" });
        peer.send(&json!({ "jsonrpc": "2.0", "id": id, "method": format!("_test/{method}"), "params": params })).await;
        loop {
            let message = peer.receive().await;
            if message.get("method").is_none() {
                assert_eq!(message["id"], id);
                break;
            }
            let error = json!({ "code": -32001, "message": "hunter2-message", "data": "hunter2-data" });
            peer.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })).await;
        }
    }
    let session = json!({ "jsonrpc": "2.0", "id": "new", "method": "session/new", "params": new_session() });
    peer.send(&session).await;
    assert_eq!(peer.receive().await["error"]["code"], -32001);
    drop(peer);
    serving.await.expect("no panic gets out").expect_err("the close callback's error");
}

enum Role {
    Agent,
    Client,
    Chain,
}

async fn malformed_to(role: Role) {
    let (peer, link) = pair(1 << 20);
    match role {
        Role::Agent => {
            let serving = tokio::spawn(failing().connect_to(link));
            malformed(peer).await;
            serving.await.expect("no panic").expect_err("the close callback's error");
        }
        Role::Client => {
            let client = Client
                .builder()
                .on_receive_notification(async |_: v1::SessionNotification, _cx| Ok(()), on_receive_notification!());
            let serving = tokio::spawn(client.connect_to(link));
            malformed(peer).await;
            serving.await.expect("no panic").expect("a clean end");
        }
        Role::Chain => {
            let chain = ProxiesAndAgent::new(testy()).proxy(arrow_proxy());
            let chain = ConductorImpl::new_agent("chain", chain).start(link).await.expect("a chain");
            malformed(peer).await;
            let _ = chain.closed().await;
        }
    }
}

/// Input that is wrong in every way, from a peer that then closes.
async fn malformed(mut peer: Local) {
    let whole = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": new_session() }).to_string();
    let cut = json!({ "jsonrpc": "2.0", "method": "m", "params": { "text": "hunter2-cut" } }).to_string();
    let mut lines = vec![
        "token=hunter2-noise".to_owned(),
        "\"hunter2-noise\"".to_owned(),
        "\u{1b}[1mWelcome, hunter2-noise".to_owned(),
        cut[..cut.len() - 1].to_owned(),
        format!("{cut}]"),
        whole[..whole.len() - 2].to_owned(),
        whole.replace("2.0", "hunter2-version"),
        whole.replace("\"id\":1", "\"id\":{\"a\":\"hunter2-id\"}"),
        whole.replace("\"method\":\"session/new\"", "\"method\":[\"hunter2-method\"]"),
        format!("[{whole},\"hunter2-entry\",{{\"a\":\"hunter2-entry\"}}]"),
    ];
    for message in [
        json!({ "jsonrpc": "2.0", "id": 2, "method": "session/new", "params": { "cwd": 7, "mcpServers": "hunter2-type" } }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "session/new", "params": ["hunter2-type"] }),
        json!({ "jsonrpc": "2.0", "id": 4, "method": "session/prompt", "params": { "prompt": "hunter2-type" } }),
        json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": ["hunter2-type"] } }),
        json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "a": "hunter2-type" } }),
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": { "sessionUpdate": "hunter2-variant" } } }),
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": "hunter2-type" }),
        json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": { "a": "hunter2-type" } } }),
        json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "a": "hunter2-type" } }),
        json!({ "jsonrpc": "2.0", "id": 99, "result": "hunter2-result" }),
        json!({ "jsonrpc": "2.0", "id": 99, "error": { "code": "hunter2-code", "message": "hunter2-message" } }),
        json!({ "jsonrpc": "2.0", "id": 99, "result": "hunter2-result", "error": { "code": 1, "message": "hunter2" } }),
        json!({ "jsonrpc": "2.0", "id": null, "error": { "code": 1, "message": "hunter2-message", "data": "hunter2-data" } }),
        json!({ "jsonrpc": "2.0", "id": 5, "method": "_proxy/successor", "params": { "a": "hunter2-wrapped" } }),
        json!({ "jsonrpc": "2.0", "method": "_proxy/successor", "params": { "method": ["hunter2-wrapped"] } }),
        json!({ "jsonrpc": "2.0", "method": "proxy/successor", "params": { "method": "m", "params": "hunter2-wrapped" } }),
        json!({ "jsonrpc": "2.0", "method": "initialize", "params": { "a": "hunter2-params" } }),
    ] {
        lines.push(message.to_string());
    }
    for line in lines {
        peer.write(format!("{line}\n")).await;
    }
    peer.close().await;
    // Whatever it answers, to the end.
    while peer.line().await.is_some() {}
}

async fn broken_transports() {
    // A line that is longer than the limit, full of secrets.
    let (mut peer, link) = pair(1 << 16);
    let serving = tokio::spawn(failing().connect_to(link.with_max_frame(1000)));
    peer.write("hunter2-noise ".repeat(200)).await;
    serving.await.expect("no panic").expect_err("an overflow");

    // A stream whose failure quotes what it was reading.
    let (near, _far) = tokio::io::duplex(64);
    let client = Client.connect_with(Link::bytes(Broken, near), async |cx: ConnectionTo<Agent>| {
        cx.send_request(UntypedMessage::new("m", json!({ "a": "hunter2-params" }))?).block_task().await
    });
    client.await.expect_err("a broken stream");

    // A component that ends with an error, and one that panics.
    let component = Link::component(|_link| async { Err(Error::new(-32001, "hunter2-message").data("hunter2-data")) });
    let talking = Client.connect_with(component, async |cx: ConnectionTo<Agent>| {
        cx.incoming_closed().await;
        Ok(())
    });
    let _ = talking.await;
    let component = Link::component(|_link| async { panic!("hunter2-panic") });
    let _ = Client.connect_with(component, async |cx: ConnectionTo<Agent>| Ok(cx.terminated().await)).await;
}

struct Broken;

impl tokio::io::AsyncRead for Broken {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _cx: &mut std::task::Context<'_>,
        _buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Err(std::io::Error::other("cannot decode hunter2-noise")))
    }
}
