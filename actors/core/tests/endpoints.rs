//! Two endpoints of this crate talk to each other, over every kind of link.

use greenroom_actors::link::Link;
use greenroom_actors::{
    Agent, Channel, Client, ConnectTo, ConnectionTo, Error, ErrorCode, Responder, UntypedMessage,
    is_incoming_transport_closed, on_receive_notification, on_receive_request,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

fn message(method: &str, params: Value) -> UntypedMessage {
    UntypedMessage::new(method, params).expect("json")
}

/// Echoes every request; notes every notification.
fn agent(notes: Arc<Mutex<Vec<Value>>>) -> impl ConnectTo<Client> {
    Agent
        .builder()
        .on_receive_request(
            async |request: UntypedMessage, responder: Responder<Value>, _cx| match request.method.as_str() {
                "fail" => Err(Error::invalid_params().data("no")),
                "panic" => panic!("expected by the test"),
                "forget" => {
                    drop(responder);
                    Ok(())
                }
                _ => responder.respond(json!({ "echo": request.params })),
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, _cx| {
                notes.lock().unwrap().push(note.params);
                Ok(())
            },
            on_receive_notification!(),
        )
}

async fn converse(agent_link: impl ConnectTo<Client>, notes: Arc<Mutex<Vec<Value>>>) {
    let result = Client
        .builder()
        .connect_with(agent_link, async |cx: ConnectionTo<Agent>| {
            for index in 0..100 {
                cx.send_notification(message("note", json!({ "n": index })))?;
            }
            let answer = cx.send_request(message("hello", json!({ "a": 1 }))).block_task().await?;
            assert_eq!(answer, json!({ "echo": { "a": 1 } }));
            let error = cx.send_request(message("fail", Value::Null)).block_task().await.unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidParams);
            let error = cx.send_request(message("panic", Value::Null)).block_task().await.unwrap_err();
            assert_eq!(error.data, Some(json!({ "reason": "interrupted", "method": "panic" })));
            let error = cx.send_request(message("forget", Value::Null)).block_task().await.unwrap_err();
            assert_eq!(error.code, ErrorCode::InternalError);
            let answer = cx.send_request(message("still there", Value::Null)).block_task().await?;
            assert_eq!(answer, json!({ "echo": null }));
            Ok("done")
        })
        .await;
    assert_eq!(result.unwrap(), "done");
    let expected: Vec<Value> = (0..100).map(|index| json!({ "n": index })).collect();
    assert_eq!(*notes.lock().unwrap(), expected);
}

#[tokio::test]
async fn in_process_by_value() {
    let notes = Arc::default();
    converse(agent(Arc::clone(&notes)), notes).await;
}

#[tokio::test]
async fn over_a_byte_stream() {
    let notes: Arc<Mutex<Vec<Value>>> = Arc::default();
    let (left, right) = tokio::io::duplex(100);
    let serving = tokio::spawn({
        let (reader, writer) = tokio::io::split(right);
        let agent = agent(notes.clone());
        async move { agent.connect_to(Link::bytes(reader, writer)).await }
    });
    let (reader, writer) = tokio::io::split(left);
    converse(Link::bytes(reader, writer), notes).await;
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn over_the_documented_channel() {
    let notes: Arc<Mutex<Vec<Value>>> = Arc::default();
    let (left, right) = Channel::duplex();
    let serving = tokio::spawn(agent(notes.clone()).connect_to(right));
    converse(left, notes).await;
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn handlers_may_borrow() {
    let mut seen = Vec::new();
    Client
        .builder()
        .on_receive_notification(
            async |note: UntypedMessage, _cx| {
                seen.push(note.method);
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_with(
            Agent.builder().on_receive_request(
                async |_: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
                    cx.send_notification(message("one", Value::Null))?;
                    cx.send_notification(message("two", Value::Null))?;
                    responder.respond(Value::Null)
                },
                on_receive_request!(),
            ),
            async |cx: ConnectionTo<Agent>| cx.send_request(message("go", Value::Null)).block_task().await,
        )
        .await
        .unwrap();
    assert_eq!(seen, ["one", "two"]);
}

#[tokio::test]
async fn the_end_of_the_peer_fails_what_waits() {
    let (left, right) = tokio::io::duplex(100);
    let (reader, writer) = tokio::io::split(left);
    let result = Client
        .builder()
        .connect_with(Link::bytes(reader, writer), async move |cx: ConnectionTo<Agent>| {
            let waiting = cx.send_request(message("never", Value::Null));
            drop(right);
            let error = waiting.block_task().await.unwrap_err();
            assert!(is_incoming_transport_closed(&error), "{error:?}");
            let late = cx.send_request(message("late", Value::Null)).block_task().await.unwrap_err();
            assert!(is_incoming_transport_closed(&late), "{late:?}");
            cx.incoming_closed().await;
            Ok(())
        })
        .await;
    result.unwrap();
}

#[tokio::test]
async fn waiting_inside_a_handler_fails_at_once() {
    let (told, mut hear) = tokio::sync::mpsc::unbounded_channel();
    Client
        .builder()
        .on_receive_notification(
            async move |_: UntypedMessage, cx: ConnectionTo<Agent>| {
                let outcome = cx.send_request(message("self", Value::Null)).block_task().await;
                told.send(outcome).unwrap();
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_with(
            Agent.builder().on_receive_request(
                async |_: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
                    cx.send_notification(message("poke", Value::Null))?;
                    responder.respond(Value::Null)
                },
                on_receive_request!(),
            ),
            async move |cx: ConnectionTo<Agent>| {
                cx.send_request(message("go", Value::Null)).block_task().await?;
                let error = hear.recv().await.unwrap().unwrap_err();
                assert!(error.to_string().contains("would deadlock"), "{error}");
                Ok(())
            },
        )
        .await
        .unwrap();
}
