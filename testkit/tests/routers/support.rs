//! Messages, scripted implementations, and factories that tell what they made.

use std::time::Duration;

use greenroom::link::Link;
use greenroom::{Agent, Client, ConnectTo, Responder, Result, UntypedMessage, on_receive_request};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Room of each pipe, in bytes.
pub(crate) const ROOM: usize = 1 << 16;

/// Far more than anything here takes.
const SOON: Duration = Duration::from_secs(20);

/// Waits for something that must not hang.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(SOON, what).await.expect("it hangs")
}

pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

pub(crate) fn note(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

pub(crate) fn result(id: impl Into<Value>, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "result": result })
}

pub(crate) fn hello(version: impl Into<Value>) -> Value {
    json!({ "protocolVersion": version.into(), "info": { "name": "peer", "version": "1" } })
}

pub(crate) fn initialize(id: impl Into<Value>, version: impl Into<Value>) -> Value {
    request(id, "initialize", hello(version))
}

/// A component that runs, and the peer that it serves.
pub(crate) fn serve<R: greenroom::Role>(component: impl ConnectTo<R>) -> (Local, JoinHandle<Result<()>>)
where
    Link: ConnectTo<R::Counterpart>,
{
    let (peer, link) = pair(ROOM);
    (peer, tokio::spawn(component.connect_to(link)))
}

/// The code of the error that answers this id.
pub(crate) async fn refused(peer: &mut Local, id: impl Into<Value>) -> i64 {
    let answer = soon(peer.receive()).await;
    assert_eq!(answer["id"], id.into(), "{answer}");
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("an error: {answer}"))
}

/// Writes a line to one peer and expects exactly it from the other.
pub(crate) async fn passes(from: &mut Local, to: &mut Local, line: &str) {
    from.write(format!("{line}\n")).await;
    assert_eq!(soon(to.line()).await.as_deref(), Some(line));
}

/// What a relay must not touch.
pub(crate) const ODD_LINES: [&str; 8] = [
    r#"{"id":1.0e0,"jsonrpc":"2.0","result" : {"big":9007199254740993,"n":1.50e1}}"#,
    r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"a\u0041"}}"#,
    r#"{"jsonrpc":"2.0","id":"a\u0041","method":"session/\u006eew","params":{"x":[1.0, 2]}}"#,
    r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32800,"message":"","extra":null}}"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"a"}, {"jsonrpc":"2.0","method":"b"}]"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":7}}"#,
    r#"{"jsonrpc":"1.0"}"#,
    r#"{"jsonrpc":"#,
];

/// A factory of links, and the far end of each link that it makes.
pub(crate) fn factory() -> (impl FnMut() -> Link + Send + 'static, mpsc::UnboundedReceiver<Local>) {
    let (tell, made) = mpsc::unbounded_channel();
    let make = move || {
        let (peer, link) = pair(ROOM);
        let _ = tell.send(peer);
        link
    };
    (make, made)
}

/// The next end that a factory made.
pub(crate) async fn made(made: &mut mpsc::UnboundedReceiver<Local>) -> Local {
    soon(made.recv()).await.expect("the factory is called")
}

/// Nothing was made but what was taken.
pub(crate) fn made_no_more(made: &mut mpsc::UnboundedReceiver<Local>) {
    assert!(made.try_recv().is_err(), "the factory was called once more");
}

/// An agent of version 1 that answers `initialize` with its name, and everything else with its params.
pub(crate) fn echo(name: &'static str) -> impl ConnectTo<Client> {
    Agent.builder().on_receive_request(
        async move |request: UntypedMessage, responder: Responder<Value>, _client| match request.method.as_str() {
            "initialize" => responder.respond(json!({ "protocolVersion": 1, "name": name })),
            _ => responder.respond(request.params),
        },
        on_receive_request!(),
    )
}
