//! The client and the server of this crate, with each other.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use greenroom_actors::{
    Agent, Client, ConnectTo, ConnectionTo, Responder, UntypedMessage, on_receive_notification, on_receive_request,
};
use greenroom_transports::{AcpHttpServer, HttpClient};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::local::direct;

fn message(method: &str, params: Value) -> UntypedMessage {
    UntypedMessage::new(method, params).unwrap()
}

/// Asks for a permission in every turn, and streams as many updates as it is told.
fn agent() -> impl ConnectTo<Client> {
    Agent.builder().on_receive_request(
        async |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| match request
            .method
            .as_str()
        {
            "initialize" => responder.respond(json!({ "protocolVersion": 1 })),
            "session/new" => responder.respond(json!({ "sessionId": "s" })),
            "session/prompt" => {
                let asking = cx.clone();
                cx.spawn(async move {
                    let session = request.params["sessionId"].clone();
                    let question = message("session/request_permission", json!({ "sessionId": session }));
                    let answer: Value = asking.send_request(question).block_task().await?;
                    for index in 0..request.params["updates"].as_u64().unwrap() {
                        let update = json!({ "sessionId": session, "n": index, "answer": answer });
                        asking.send_notification(message("session/update", update))?;
                    }
                    responder.respond(json!({ "stopReason": "end_turn" }))
                })
            }
            _ => responder.respond_with_error(greenroom_actors::Error::method_not_found()),
        },
        on_receive_request!(),
    )
}

/// One turn with this many updates; they arrive in order, before its end.
async fn turn(client: HttpClient, updates: usize) {
    let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
    let noted = seen.clone();
    Client
        .builder()
        .on_receive_request(
            async |_: UntypedMessage, responder: Responder<Value>, _cx| responder.respond(json!("yes")),
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, cx: ConnectionTo<Agent>| {
                assert_eq!(note.params["answer"], "yes");
                let index = note.params["n"].as_u64().unwrap();
                noted.lock().unwrap().push(index);
                if matches!(index, 100 | 200 | 300) {
                    // What moves the bytes goes on where it was: it is leased, not owned.
                    let drivers =
                        cx.tree().flatten().into_iter().filter(|node| matches!(node.kind(), "http" | "web-socket"));
                    assert_eq!(drivers.filter(|node| node.kill()).count(), 1);
                }
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_with(client, async |cx: ConnectionTo<Agent>| {
            cx.send_request(message("initialize", json!({ "protocolVersion": 1 }))).block_task().await?;
            let opened: Value = cx.send_request(message("session/new", json!({}))).block_task().await?;
            let prompt = json!({ "sessionId": opened["sessionId"], "updates": updates });
            let begun = Instant::now();
            cx.send_request(message("session/prompt", prompt)).block_task().await?;
            eprintln!("{updates} updates in {:?}", begun.elapsed());
            assert_eq!(*seen.lock().unwrap(), (0..updates as u64).collect::<Vec<_>>());
            Ok(())
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn turns_pass_over_both_shapes_also_while_the_transports_actor_dies() {
    for scheme in ["http", "ws"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let server = AcpHttpServer::new(agent).start(listener).await.unwrap();
        turn(direct(&url), 0).await;
        turn(direct(&url), 5000).await;
        server.shutdown().await;
    }
}
