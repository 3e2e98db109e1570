//! A client that goes away in the middle of a call: whatever works on the call is told.
//!
//! The end of the connection is no cancellation that a peer asked for. Handlers and tasks of the
//! agent are dropped, which ends them at their next `.await`.

use super::client::{INITIALIZE, Socket, connect, post, request, say};
use super::ws_client::Ws;
use greenroom_actors::{Agent, Client, ConnectTo, ConnectionTo, Responder, UntypedMessage, on_receive_request};
use greenroom_transports::{AcpHttpServer, RunningServer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// What the work on a call tells the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Begun,
    /// It was dropped before its end.
    Dropped,
}

/// Tells when it is dropped.
struct Work(mpsc::UnboundedSender<Told>);

impl Work {
    fn begin(tell: &mpsc::UnboundedSender<Told>) -> Self {
        let _ = tell.send(Told::Begun);
        Self(tell.clone())
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = self.0.send(Told::Dropped);
    }
}

/// Works for ever: in the handler, or in a task when the method says so.
fn busy(tell: mpsc::UnboundedSender<Told>, initializes: bool) -> impl ConnectTo<Client> {
    Agent.builder().on_receive_request(
        async move |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
            if initializes && request.method == "initialize" {
                return responder.respond(json!({"protocolVersion":1}));
            }
            let work = Work::begin(&tell);
            let forever = async move {
                let _work = work;
                std::future::pending::<()>().await;
                responder.respond(json!("never"))
            };
            if request.method == "spawned" { cx.spawn(forever) } else { forever.await }
        },
        on_receive_request!(),
    )
}

async fn busy_server(initializes: bool) -> (RunningServer, mpsc::UnboundedReceiver<Told>) {
    let (tell, told) = mpsc::unbounded_channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let server = AcpHttpServer::new(move || busy(tell.clone(), initializes)).start(listener).await.expect("a server");
    (server, told)
}

fn call(method: &str) -> String {
    json!({"jsonrpc":"2.0","id":1,"method":method,"params":{}}).to_string()
}

#[tokio::test]
async fn the_handler_of_initialize_ends_with_its_post() {
    let (server, mut told) = busy_server(false).await;
    let mut socket = Socket::open(server.local_addr()).await;
    socket.send(post(INITIALIZE).bytes()).await;
    assert_eq!(told.recv().await, Some(Told::Begun));
    drop(socket);
    assert_eq!(told.recv().await, Some(Told::Dropped));
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn handlers_and_tasks_end_with_the_websocket() {
    for method in ["handled", "spawned"] {
        let (server, mut told) = busy_server(true).await;
        let mut socket = Ws::open(server.local_addr()).await;
        socket.send(call(method)).await;
        assert_eq!(told.recv().await, Some(Told::Begun), "{method}");
        drop(socket);
        assert_eq!(told.recv().await, Some(Told::Dropped), "{method}");
    }
}

#[tokio::test]
async fn handlers_and_tasks_end_with_a_deleted_connection() {
    for method in ["handled", "spawned"] {
        let (server, mut told) = busy_server(true).await;
        let address = server.local_addr();
        let id = connect(address).await;
        say(address, &id, &call(method)).await;
        assert_eq!(told.recv().await, Some(Told::Begun), "{method}");
        request("DELETE").connection(&id).send(address).await.is(202, "");
        assert_eq!(told.recv().await, Some(Told::Dropped), "{method}");
    }
}
