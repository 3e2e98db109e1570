//! What the statements have in common: messages as JSON, and endpoints over real byte streams.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use greenroom::link::Link;
use greenroom::{Agent, Client, ConnectTo, ConnectionTo, Result, UntypedMessage};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Duration, timeout};

/// Room of a scripted stream, each way: more than a test writes without reading.
pub(crate) const ROOM: usize = 1 << 16;

pub(crate) const CANCEL: &str = "$/cancel_request";

// --- messages --------------------------------------------------------------------------------------

pub(crate) fn message(method: &str) -> UntypedMessage {
    with_params(method, Value::Null)
}

pub(crate) fn with_params(method: &str, params: Value) -> UntypedMessage {
    UntypedMessage::new(method, params).expect("JSON")
}

/// A request as it is on the wire.
pub(crate) fn request(id: impl Into<Value>, method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method })
}

/// A request with params as it is on the wire.
pub(crate) fn request_with(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

pub(crate) fn note(method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": method })
}

pub(crate) fn note_with(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

pub(crate) fn cancel(id: impl Into<Value>) -> Value {
    note_with(CANCEL, json!({ "requestId": id.into() }))
}

pub(crate) fn result(id: impl Into<Value>, value: impl Into<Value>) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "result": value.into() })
}

pub(crate) fn refusal(id: impl Into<Value>, code: i32) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "error": { "code": code, "message": "no" } })
}

/// The inner message inside the legacy envelope.
pub(crate) fn wrapped(mut outer: Value, method: &str, params: Value) -> Value {
    outer["method"] = json!("_proxy/successor");
    outer["params"] = json!({ "method": method, "params": params });
    outer
}

// --- endpoints -------------------------------------------------------------------------------------

/// Runs a client without handlers against a scripted agent; both are in the hands of `main`.
pub(crate) async fn as_client(main: impl AsyncFnOnce(ConnectionTo<Agent>, &mut Local) -> Result<()>) {
    let (mut peer, link) = pair(ROOM);
    let run = Client.builder().connect_with(link, async |cx| main(cx, &mut peer).await);
    soon(run).await.expect("the script");
    soon(peer.expect_end()).await;
}

/// Serves a scripted client.
pub(crate) fn serve(agent: impl ConnectTo<Client>) -> (Local, JoinHandle<Result<()>>) {
    let (peer, link) = pair(ROOM);
    (peer, tokio::spawn(agent.connect_to(link)))
}

/// Closes the peer's side and expects a clean end on the other, with nothing said before it.
pub(crate) async fn finish(mut peer: Local, serving: JoinHandle<Result<()>>) {
    peer.close().await;
    soon(peer.expect_end()).await;
    soon(serving).await.expect("no panic").expect("a clean end");
}

/// Shows that nothing was sent since the peer read last: the next thing it gets is this marker.
pub(crate) async fn expect_nothing_sent(cx: &ConnectionTo<Agent>, peer: &mut Local) {
    cx.send_notification(message("_marker")).expect("an open connection");
    peer.expect(note("_marker")).await;
}

/// Reads a request, answers it with a result and returns it.
pub(crate) async fn answer(peer: &mut Local, value: impl Into<Value>) -> Value {
    let request = peer.receive().await;
    peer.send(&result(request["id"].clone(), value)).await;
    request
}

/// Long enough for anything that comes at all; on a paused clock it costs nothing.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(20), work).await.expect("nothing hangs")
}

/// Lets every other task run until none has anything to do. Wants a paused clock: it moves on
/// only then.
pub(crate) async fn settled() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// A place where handlers and callbacks say what they did, in order.
#[derive(Clone)]
pub(crate) struct Log {
    say: mpsc::UnboundedSender<String>,
}

pub(crate) struct LogReader {
    heard: mpsc::UnboundedReceiver<String>,
}

pub(crate) fn log() -> (Log, LogReader) {
    let (say, heard) = mpsc::unbounded_channel();
    (Log { say }, LogReader { heard })
}

impl Log {
    pub(crate) fn say(&self, what: impl Into<String>) {
        // A test that is over reads no more.
        let _ = self.say.send(what.into());
    }
}

impl LogReader {
    /// The next entry, waited for.
    pub(crate) async fn next(&mut self) -> String {
        soon(self.heard.recv()).await.expect("an entry")
    }

    pub(crate) async fn expect(&mut self, what: &str) {
        assert_eq!(self.next().await, what);
    }

    /// What was said by now and not read yet.
    pub(crate) fn so_far(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.heard.try_recv().ok()).collect()
    }
}

// --- transports ------------------------------------------------------------------------------------

/// A reader that breaks when it is told to.
struct Breaking<R> {
    input: R,
    /// `None` when nobody is left to tell it.
    broken: Option<oneshot::Receiver<()>>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Breaking<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(broken) = &mut self.broken
            && let Poll::Ready(told) = Pin::new(broken).poll(cx)
        {
            self.broken = None;
            if told.is_ok() {
                return Poll::Ready(Err(io::Error::other("the cable was cut")));
            }
        }
        Pin::new(&mut self.input).poll_read(cx, buf)
    }
}

/// A reader without input and without an end.
struct Silent;

impl AsyncRead for Silent {
    fn poll_read(self: Pin<&mut Self>, _cx: &mut Context<'_>, _buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

/// A reader without input that breaks when it is told to.
pub(crate) fn breaking(broken: oneshot::Receiver<()>) -> impl AsyncRead + Send + Unpin + 'static {
    Breaking { input: Silent, broken: Some(broken) }
}

/// A link whose reading half breaks when the test wants it to, without input before that; its
/// output goes nowhere.
pub(crate) fn breakable() -> (Link, oneshot::Sender<()>) {
    breakable_after(Silent, tokio::io::sink())
}

/// As [`breakable`], with an input and an output.
pub(crate) fn breakable_after(
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> (Link, oneshot::Sender<()>) {
    let (break_it, broken) = oneshot::channel();
    (Link::bytes(Breaking { input, broken: Some(broken) }, output), break_it)
}
