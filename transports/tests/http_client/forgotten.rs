//! A server that has forgotten the connection.
//!
//! The documented client never opens a connection again by itself: any POST that is refused, 404
//! included, and any end of a stream is the end of the transport (wire rules, "Client rules"; the
//! chapter on the HTTP transport says that the client starts every connection with an `initialize`
//! of the application, and names no second one). A client that initialised again behind the
//! application's back would also lie to it: its sessions, the agent's capabilities and what was
//! asked for are gone with the old connection. So every open call fails at once, with the status,
//! and the application connects again, which a clone of the same `HttpClient` does.

use std::sync::atomic::{AtomicBool, Ordering};

use greenroom_actors::{Agent, Client, ConnectionTo, Error, UntypedMessage, is_connection_terminated};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::local::direct;
use crate::server::{PATIENCE, Server};

fn ask(cx: &ConnectionTo<Agent>, method: &str, params: Value) -> impl Future<Output = Result<Value, Error>> + use<> {
    cx.send_request(UntypedMessage::new(method, params).unwrap()).block_task()
}

/// A call fails by the end of the connection, and the end has this cause.
fn assert_ended(error: &Error, words: &str) {
    assert!(is_connection_terminated(error), "{error:?}");
    assert_eq!(error.data.as_ref().map(|data| &data["termination"]), Some(&json!("transport_error")), "{error:?}");
    let cause = std::error::Error::source(error).expect("a cause").to_string();
    assert!(cause.contains(words), "{cause}");
}

/// What the cause says of a connection that the server does not know.
const FORGOTTEN: &str = "has forgotten the connection; check the URL, or connect again";

#[tokio::test]
async fn a_404_fails_every_open_call_at_once_and_the_application_connects_again() {
    let mut server = Server::start().await;
    let client = direct(&server.url());
    let again = client.clone();
    let talking = Client.builder().connect_with(client, async |cx: ConnectionTo<Agent>| {
        ask(&cx, "initialize", json!({ "protocolVersion": 1 })).await?;
        let orphans = [ask(&cx, "_one", json!({})), ask(&cx, "_two", json!({}))];
        for orphan in orphans {
            assert_ended(&orphan.await.unwrap_err(), FORGOTTEN);
        }
        // Whoever comes later does not wait either.
        assert_ended(&ask(&cx, "_late", json!({})).await.unwrap_err(), FORGOTTEN);
        Ok(())
    });
    let forgetting = async {
        server.expect("POST").await.initialized().await;
        let _events = server.expect("GET").await.events().await;
        server.expect("POST").await.accepted().await;
        server.expect("POST").await.answer(404, &[], "").await;
        // The old id is named once more, to say goodbye, and never again.
        let goodbye = server.expect("DELETE").await;
        assert_eq!(goodbye.header("acp-connection-id"), Some("c-1"));
        goodbye.answer(404, &[], "").await;
        server.stays_quiet().await;
    };
    let (ended, ()) = timeout(PATIENCE, async { tokio::join!(talking, forgetting) }).await.unwrap();
    // The foreground ended in order; the connection under it did not.
    drop(ended);

    let talking = Client.builder().connect_with(again, async |cx: ConnectionTo<Agent>| {
        ask(&cx, "initialize", json!({ "protocolVersion": 1 })).await?;
        ask(&cx, "_again", json!({})).await
    });
    let serving = async {
        let post = server.expect("POST").await;
        assert_eq!((post.call().as_str(), post.header("acp-connection-id")), ("initialize", None));
        post.initialized().await;
        let mut events = server.expect("GET").await.events().await;
        let post = server.expect("POST").await;
        let answer = json!({ "jsonrpc": "2.0", "id": post.json()["id"], "result": post.call() });
        post.accepted().await;
        events.send(answer).await;
        server.expect("DELETE").await.accepted().await;
    };
    let (answer, ()) = timeout(PATIENCE, async { tokio::join!(talking, serving) }).await.unwrap();
    assert_eq!(answer.unwrap(), "_again");
}

/// The same with our server, whose connection is killed: its streams end with it.
#[cfg(feature = "service")]
#[tokio::test]
async fn a_connection_that_dies_at_the_server_fails_every_open_call_and_the_next_one_works() {
    use greenroom_actors::{ConnectTo, Responder, on_receive_request};
    use greenroom_transports::AcpHttpServer;

    fn agent() -> impl ConnectTo<Client> {
        Agent.builder().on_receive_request(
            async |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
                match request.method.as_str() {
                    // Answered never, and not in the way of others.
                    "_stuck" => cx.spawn(async move {
                        let _responder = responder;
                        std::future::pending().await
                    }),
                    _ => responder.respond(json!({ "protocolVersion": 1 })),
                }
            },
            on_receive_request!(),
        )
    }

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = AcpHttpServer::new(agent).start(listener).await.unwrap();
    for scheme in ["http", "ws"] {
        let client = direct(&format!("{scheme}://{}", server.local_addr()));
        for _ in 0..2 {
            let failed = AtomicBool::new(false);
            let talking = Client.builder().connect_with(client.clone(), async |cx: ConnectionTo<Agent>| {
                ask(&cx, "initialize", json!({ "protocolVersion": 1 })).await?;
                let orphans = [ask(&cx, "_stuck", json!({})), ask(&cx, "_stuck", json!({}))];
                // Behind them, so they have arrived.
                ask(&cx, "_plain", json!({})).await?;
                let connections = server.tree().children();
                let connection = connections.iter().find(|node| node.kind() == "http-connection");
                assert!(connection.is_some_and(|connection| connection.kill()));
                for orphan in orphans {
                    assert_ended(&orphan.await.unwrap_err(), "connect again");
                }
                failed.store(true, Ordering::Relaxed);
                Ok(())
            });
            // The connection itself may end with the error that its calls got.
            let _ = timeout(PATIENCE, talking).await.unwrap();
            assert!(failed.load(Ordering::Relaxed), "{scheme}: every call was told");
            while server.connections() > 0 {
                tokio::task::yield_now().await;
            }
        }
    }
}
