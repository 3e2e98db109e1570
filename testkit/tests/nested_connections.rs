//! Connections that run as tasks of another one.

use greenroom::{
    Agent, Client, ConnectionTo, Responder, Result, UntypedMessage, is_connection_terminated, on_receive_request,
};
use greenroom_testkit::scripted::pair;
use serde_json::{Value, json};
use tokio::sync::oneshot;

fn message(method: &str) -> UntypedMessage {
    UntypedMessage::new(method, json!({})).expect("JSON")
}

/// An agent that answers with its name.
fn named(name: &'static str) -> impl greenroom::ConnectTo<Client> {
    Agent.builder().name(name).on_receive_request(
        async move |_: UntypedMessage, responder: Responder<Value>, _cx| responder.respond(json!(name)),
        on_receive_request!(),
    )
}

#[tokio::test]
async fn a_nested_connection_can_be_used_at_once_and_ends_with_its_parent() {
    let nested = Client
        .builder()
        .connect_with(named("outer"), async |cx: ConnectionTo<Agent>| {
            let nested = cx.spawn_connection(Client.builder(), named("inner"))?;
            // Sent before its tree is up.
            let inner = nested.send_request(message("who")).block_task().await?;
            let outer = cx.send_request(message("who")).block_task().await?;
            assert_eq!((inner, outer), (json!("inner"), json!("outer")));
            let again = cx.spawn_connection_with_context(Client.builder(), named("again"))?;
            assert_eq!(again.send_request(message("who")).block_task().await?, json!("again"));
            Ok(nested)
        })
        .await
        .expect("no error");
    nested.terminated().await;
    let error = nested.send_request(message("who")).block_task().await.expect_err("it ended with its parent");
    assert!(is_connection_terminated(&error), "{error:?}");
}

#[tokio::test]
async fn a_handler_may_wait_for_a_nested_connection() {
    let (told, hear) = oneshot::channel();
    let mut told = Some(told);
    let client = Client.builder().on_receive_request(
        async move |_: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Agent>| {
            // Its answer waits behind no handler of this connection.
            let nested = cx.spawn_connection(Client.builder(), named("inner"))?;
            let answer = nested.send_request(message("who")).block_task().await?;
            if let Some(told) = told.take() {
                let _ = told.send(answer.clone());
            }
            responder.respond(answer)
        },
        on_receive_request!(),
    );
    let (mut peer, link) = pair(4096);
    tokio::spawn(client.connect_to(link));
    peer.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ask", "params": {} })).await;
    peer.expect(json!({ "jsonrpc": "2.0", "id": 1, "result": "inner" })).await;
    assert_eq!(hear.await, Ok(json!("inner")));
}

#[tokio::test]
async fn a_transport_that_does_not_open_fails_what_was_sent() {
    let broken =
        greenroom::link::Link::opening(async { Err(greenroom::Error::internal_error().data("no such program")) });
    Client
        .builder()
        .connect_with(named("outer"), async |cx: ConnectionTo<Agent>| -> Result<()> {
            let nested = cx.spawn_connection(Client.builder(), broken)?;
            let error = nested.send_request(message("who")).block_task().await.expect_err("it never opened");
            assert!(is_connection_terminated(&error), "{error:?}");
            // The transport's own words are for the caller: behind the error, not in what travels.
            assert!(format!("{error:?}").contains("no such program"), "{error:?}");
            assert!(!error.to_wire().get().contains("no such program"), "{error}");
            // Only the nested connection failed.
            assert_eq!(cx.send_request(message("who")).block_task().await?, json!("outer"));
            Ok(())
        })
        .await
        .expect("no error");
}
