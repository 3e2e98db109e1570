//! Memory stays bounded, whatever the server sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{SinkExt as _, StreamExt as _};
use greenroom_actors::{Agent, Client, ConnectionTo, UntypedMessage, on_receive_notification};
use greenroom_protocol::Origin;
use greenroom_transports::HttpClientOptions;
use serde_json::json;
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::local::{Local, direct, initialize, note, reason, result};
use crate::server::{PATIENCE, QUIET, Server};

const LIMIT: usize = 64 * 1024;

fn small() -> HttpClientOptions {
    HttpClientOptions::default().with_max_message(LIMIT)
}

#[tokio::test]
async fn an_event_without_end_is_a_typed_overflow_and_no_reason_to_connect_again() {
    for line in ["data: x", "data: 1\n", "id: 1\n", ": comment\n"] {
        let mut server = Server::start().await;
        let (local, mut events) = Local::connect(direct(&server.url()).with_options(small()), &mut server).await;
        let chunk = if line.ends_with('\n') { line.repeat(16 * 1024 / line.len()) } else { "x".repeat(16 * 1024) };
        events.write(line).await;
        // The event, and what may stand around it.
        for _ in 0..24 {
            if events.try_write(&chunk).await.is_err() {
                break;
            }
        }
        let error = local.outcome().await.unwrap_err();
        if line.starts_with("id") {
            // Said twice in one event: no event at all.
            assert!(reason(&error).contains("no server-sent event"), "{error}");
        } else {
            assert_eq!(error.origin(), Origin::Overflow, "{line:?}: {error}");
            assert!(reason(&error).contains("longer than 65536 bytes"), "{error}");
        }
        assert_eq!(server.next().await.method, "DELETE");
        server.stays_quiet().await;
    }
}

#[tokio::test]
async fn comments_for_ever_are_no_overflow() {
    let mut server = Server::start().await;
    let (mut local, mut events) = Local::connect(direct(&server.url()).with_options(small()), &mut server).await;
    let comment = format!(":{}\n\n", " ".repeat(16 * 1024));
    for _ in 0..32 {
        events.write(&comment).await;
    }
    events.send(note("_n", json!({}))).await;
    assert_eq!(local.recv().await["method"], "_n");
}

#[tokio::test]
async fn an_event_as_long_as_the_limit_is_taken_and_a_longer_one_is_not() {
    let mut server = Server::start().await;
    let (mut local, mut events) = Local::connect(direct(&server.url()).with_options(small()), &mut server).await;
    let frame = note("_n", json!({ "x": "" })).to_string().len();
    let text = "x".repeat(LIMIT - frame);
    events.send(note("_n", json!({ "x": text }))).await;
    assert_eq!(local.recv().await["params"]["x"], text);
    events.send(note("_n", json!({ "x": text + "x" }))).await;
    assert_eq!(local.outcome().await.unwrap_err().origin(), Origin::Overflow);
}

#[tokio::test]
async fn an_answer_to_initialize_beyond_the_limit_is_an_overflow() {
    let mut server = Server::start().await;
    let local = Local::start(direct(&server.url()).with_options(small()));
    local.send(initialize(0));
    let body = result(0, json!({ "x": "x".repeat(LIMIT) })).to_string();
    server.expect("POST").await.answer(200, &[("acp-connection-id", "c")], &body).await;
    assert_eq!(local.outcome().await.unwrap_err().origin(), Origin::Overflow);
}

#[tokio::test]
async fn a_web_socket_message_beyond_the_limit_is_an_overflow() {
    let mut server = Server::start().await;
    let mut local = Local::start(direct(&server.ws_url()).with_options(small()));
    let mut socket = server.expect("GET").await.upgraded().await;
    socket.send(Message::text(note("_n", json!({})).to_string())).await.unwrap();
    assert_eq!(local.recv().await["method"], "_n");
    let _ = socket.send(Message::text("x".repeat(LIMIT + 1))).await;
    assert_eq!(local.outcome().await.unwrap_err().origin(), Origin::Overflow);
}

/// A slow application slows the server: with a credit of 64 KiB, a flood of 64 MiB does not come
/// in, and all of it that was sent arrives once the application goes on.
#[tokio::test]
async fn a_slow_application_slows_the_server_over_sse() {
    let mut server = Server::start().await;
    let client = direct(&server.url()).with_options(HttpClientOptions::default().with_incoming_credit(64 * 1024));
    let (gate, seen) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let handler = (gate.clone(), seen.clone());
    let talking = Client
        .builder()
        .on_receive_notification(
            async move |_: UntypedMessage, _cx| {
                let (gate, seen) = &handler;
                if seen.fetch_add(1, Ordering::SeqCst) == 0 {
                    gate.notified().await;
                }
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_with(client, async |cx: ConnectionTo<Agent>| {
            cx.send_request(UntypedMessage::new("initialize", json!({}))?).block_task().await?;
            cx.incoming_closed().await;
            Ok(())
        });
    let flooding = async {
        server.expect("POST").await.initialized().await;
        let mut events = server.expect("GET").await.events().await;
        let message = format!("data: {}\n\n", note("_n", json!({ "x": "x".repeat(64 * 1024) })));
        let mut sent = 0;
        while sent < 1024 && timeout(QUIET, events.write(&message)).await.is_ok() {
            sent += 1;
        }
        assert!(sent < 700, "{sent} messages of 64 KiB went into a credit of 64 KiB and the sockets");
        gate.notify_one();
        // The message that was cut short is not repeated, so the stream cannot go on.
        drop(events);
        sent
    };
    let (_, sent) = timeout(PATIENCE, async { tokio::join!(talking, flooding) }).await.unwrap();
    assert!(seen.load(Ordering::SeqCst) >= sent, "{} of {sent}", seen.load(Ordering::SeqCst));
}

#[tokio::test]
async fn answers_pass_while_the_credit_is_used_up() {
    let mut server = Server::start().await;
    let client = direct(&server.ws_url()).with_options(HttpClientOptions::default().with_incoming_credit(1));
    let gate = Arc::new(Semaphore::new(0));
    let handler = gate.clone();
    let talking = Client
        .builder()
        .on_receive_notification(
            async move |_: UntypedMessage, _cx| {
                handler.acquire().await.unwrap().forget();
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_with(client, async |cx: ConnectionTo<Agent>| {
            for index in 0..50 {
                cx.send_notification(UntypedMessage::new("_out", json!({ "n": index }))?)?;
            }
            cx.incoming_closed().await;
            Ok(())
        });
    let serving = async {
        let mut socket = server.expect("GET").await.upgraded().await;
        for _ in 0..3 {
            socket.send(Message::text(note("_in", json!({})).to_string())).await.unwrap();
        }
        for index in 0..50 {
            let heard = socket.next().await.unwrap().unwrap().into_text().unwrap();
            assert!(heard.contains(&format!("\"n\":{index}")), "{heard}");
        }
        gate.add_permits(3);
        socket.close(None).await.unwrap();
    };
    let (_, ()) = timeout(PATIENCE, async { tokio::join!(talking, serving) }).await.unwrap();
}
