//! Services made of closures, messages as JSON, and clients with a server over real byte streams.

use greenroom::mcp_server::{McpOutcome, McpRequest, McpRequestContext, McpServer, McpService};
use greenroom::role::Role;
use greenroom::schema::v1::NewSessionRequest;
use greenroom::{Agent, BoxFuture, Client, ConnectionTo, Error, NullRun, Result};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Duration, timeout};

pub(crate) const VERSION: &str = "2026-07-28";

pub(crate) type Answer = BoxFuture<'static, Result<McpOutcome>>;

/// A service that is a closure.
pub(crate) struct Asks<F>(pub(crate) F);

impl<C: Role, F> McpService<C> for Asks<F>
where
    F: Fn(McpRequest, McpRequestContext<C>) -> Answer + Send + Sync + 'static,
{
    fn execute(&self, request: McpRequest, context: McpRequestContext<C>) -> Answer {
        (self.0)(request, context)
    }
}

/// A server for sessions of a client.
pub(crate) fn server(
    answer: impl Fn(McpRequest, McpRequestContext<Agent>) -> Answer + Send + Sync + 'static,
) -> McpServer<Agent, NullRun> {
    McpServer::new_service("tools", Asks(answer), NullRun)
}

/// Answers `shout` in capitals, and everything else with what it was asked.
pub(crate) fn shouting<C: Role>(request: McpRequest, context: McpRequestContext<C>) -> Answer {
    Box::pin(async move {
        let params = Value::Object(request.params.unwrap_or_default());
        Ok(McpOutcome::Result(match params["name"].as_str() {
            Some("shout") => {
                let text = params["arguments"]["text"].as_str().unwrap_or_default().to_uppercase();
                json!({ "content": [{ "type": "text", "text": text }] })
            }
            _ => json!({ "method": request.method, "params": params, "id": context.request_id().0.to_string() }),
        }))
    })
}

/// An `mcp/message` request as it is on the wire.
pub(crate) fn call(id: impl Into<Value>, server: &str, logical: &str, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "serverId": server, "requestId": logical, "method": method, "params": params });
    request(id, "mcp/message", params)
}

pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

pub(crate) fn note(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

pub(crate) fn result(id: impl Into<Value>, value: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "result": value })
}

/// Long enough for anything that comes at all.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(20), work).await.expect("nothing hangs")
}

/// The next message, waited for.
pub(crate) async fn next(peer: &mut Local) -> Value {
    soon(peer.receive()).await
}

/// The code of the error that answers this id.
pub(crate) async fn refused(peer: &mut Local, id: impl Into<Value>) -> i64 {
    let answer = next(peer).await;
    assert_eq!(answer["id"], id.into(), "{answer}");
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("an error: {answer}"))
}

/// The id of the server that a setup request declares last, and its name.
pub(crate) fn declared(setup: &Value) -> (String, String) {
    let servers = setup["params"]["mcpServers"].as_array().expect("a list");
    let server = servers.last().expect("a server");
    assert_eq!(server["type"], "acp", "{setup}");
    let text = |name: &str| server[name].as_str().expect("a text").to_owned();
    (text("serverId"), text("name"))
}

/// A client with one session and its server, and the agent in the hands of a test.
pub(crate) struct Attached {
    pub(crate) agent: Local,
    pub(crate) cx: ConnectionTo<Agent>,
    /// The id of the server.
    pub(crate) id: String,
    /// Ends the foreground.
    pub(crate) foreground: oneshot::Sender<()>,
    pub(crate) done: tokio::task::JoinHandle<Result<()>>,
}

pub(crate) async fn attached<R>(server: McpServer<Agent, R>) -> Attached
where
    R: greenroom::RunWithConnectionTo<Agent> + 'static,
{
    let (mut agent, link) = pair(1 << 18);
    let (give, take) = oneshot::channel();
    let (foreground, end) = oneshot::channel::<()>();
    let done = tokio::spawn(Client.connect_with(link, async move |cx| {
        cx.build_session_from(NewSessionRequest::new("/")).with_mcp_server(server)?.on_session_start(
            async move |session| {
                // The session stays open.
                std::future::pending::<()>().await;
                drop(session);
                Ok(())
            },
        )?;
        give.send(cx).map_err(|_| Error::internal_error())?;
        let _ = end.await;
        Ok(())
    }));
    let setup = next(&mut agent).await;
    assert_eq!(setup["method"], "session/new");
    let (id, name) = declared(&setup);
    assert_eq!(name, "tools");
    agent.send(&result(setup["id"].clone(), json!({ "sessionId": "s" }))).await;
    Attached { agent, cx: soon(take).await.expect("a connection"), id, foreground, done }
}

/// A place where services say what they did.
pub(crate) fn log() -> (mpsc::UnboundedSender<&'static str>, Heard) {
    let (say, heard) = mpsc::unbounded_channel();
    (say, Heard(heard))
}

pub(crate) struct Heard(mpsc::UnboundedReceiver<&'static str>);

impl Heard {
    pub(crate) async fn expect(&mut self, what: &str) {
        assert_eq!(soon(self.0.recv()).await, Some(what));
    }

    /// Nothing was said since.
    pub(crate) fn expect_silence(&mut self) {
        assert_eq!(self.0.try_recv().ok(), None);
    }
}
