//! Lines on a byte stream: the limit, the credit, and who looks on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom_actors::link::{LineDirection, Link};
use greenroom_actors::{
    Agent, Client, ConnectionOptions, ConnectionTo, Error, Responder, UntypedMessage, on_receive_notification,
    on_receive_request,
};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, DuplexStream};
use tokio::sync::watch;
use tokio::time::timeout;

fn message(method: &str) -> UntypedMessage {
    UntypedMessage::new(method, Value::Null).expect("json")
}

fn link(stream: DuplexStream) -> Link {
    let (reader, writer) = tokio::io::split(stream);
    Link::bytes(reader, writer)
}

/// What a caller gets whose peer writes `line`.
async fn outcome(link: impl FnOnce(Link) -> Link, line: Vec<u8>) -> Result<Value, Error> {
    let (left, mut right) = tokio::io::duplex(1024 * 1024);
    let link = link(self::link(left));
    right.write_all(&line).await.unwrap();
    Client
        .builder()
        .connect_with(link, async move |cx: ConnectionTo<Agent>| {
            let outcome = timeout(Duration::from_secs(10), cx.send_request(message("wait")).block_task()).await;
            drop(right);
            Ok(outcome.expect("an outcome"))
        })
        .await
        .unwrap_or_else(Err)
}

/// An answer to the first request, as a line of this length.
fn answer(length: usize) -> Vec<u8> {
    let (head, tail) = (r#"{"jsonrpc":"2.0","id":0,"result":""#, "\"}\n");
    let filler = "x".repeat(length + 1 - head.len() - tail.len());
    format!("{head}{filler}{tail}").into_bytes()
}

#[tokio::test]
async fn the_limit_is_exact() {
    let limited = |link: Link| link.with_max_frame(2000);
    outcome(limited, answer(2000)).await.expect("as long as the limit");
    let error = outcome(limited, answer(2001)).await.unwrap_err();
    assert!(error.to_string().contains("overflow") && error.to_string().contains("2000"), "{error:?}");
}

#[tokio::test]
async fn a_link_that_opens_later_keeps_its_limit() {
    let opening = |link: Link| Link::opening(async { Ok(link) }).with_max_frame(2000);
    let error = outcome(opening, answer(5000)).await.unwrap_err();
    assert!(error.to_string().contains("overflow"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn an_overflow_survives_the_death_of_its_reader() {
    let (left, mut right) = tokio::io::duplex(64 * 1024);
    // A process whose end is awaited, for a while: that is when the reader dies.
    let (_process, exit) = watch::channel(None);
    let link = link(left).with_max_frame(1000).with_exit(exit);
    right.write_all(&[b'a'; 5000]).await.unwrap();
    let error = Client
        .builder()
        .connect_with(link, async |cx: ConnectionTo<Agent>| {
            let waiting = cx.send_request(message("wait"));
            tokio::time::sleep(Duration::from_millis(10)).await;
            let tree = cx.tree().flatten();
            assert!(tree.iter().find(|node| node.kind() == "reader").expect("a reader").kill());
            right.write_all(b"aaa\n").await.unwrap();
            waiting.block_task().await
        })
        .await
        .unwrap_err();
    assert!(error.to_string().contains("overflow"), "{error:?}");
}

#[tokio::test]
async fn a_tap_that_panics_costs_no_message() {
    let (left, right) = tokio::io::duplex(64);
    let tap = Arc::new(|_line: &str, _direction: LineDirection| panic!("expected by the test"));
    let agent = Agent.builder().on_receive_request(
        async |_: UntypedMessage, responder: Responder<Value>, _cx| responder.respond(json!("here")),
        on_receive_request!(),
    );
    let serving = tokio::spawn(agent.connect_to(link(right)));
    let answers = Client
        .builder()
        .connect_with(link(left).with_tap(tap), async |cx: ConnectionTo<Agent>| {
            let first = cx.send_request(message("first")).block_task().await?;
            Ok((first, cx.send_request(message("second")).block_task().await?))
        })
        .await
        .unwrap();
    assert_eq!(answers, (json!("here"), json!("here")));
    serving.await.unwrap().unwrap();
}

/// How many bytes go into a connection whose first handler does not end.
async fn accepted(line: &[u8]) -> usize {
    let (left, mut right) = tokio::io::duplex(256);
    let mut options = ConnectionOptions::default();
    options.incoming_credit = 4096;
    let handled: Arc<Mutex<usize>> = Arc::default();
    let seen = handled.clone();
    let agent = Agent.builder().options(options).on_receive_notification(
        async move |_: UntypedMessage, _cx| {
            *seen.lock().unwrap() += 1;
            std::future::pending::<Result<(), Error>>().await
        },
        on_receive_notification!(),
    );
    let serving = tokio::spawn(agent.connect_to(link(left)));
    let mut through = 0;
    while through < 4 * 1024 * 1024 {
        match timeout(Duration::from_secs(1), right.write_all(line)).await {
            Ok(written) => written.unwrap(),
            Err(_) => break,
        }
        through += line.len();
    }
    assert_eq!(*handled.lock().unwrap(), 1);
    serving.abort();
    through
}

#[tokio::test(start_paused = true)]
async fn a_slow_handler_keeps_the_reader_from_reading() {
    let through = accepted(b"{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":{}}\n").await;
    assert!((512..16 * 1024).contains(&through), "{through}");
}

#[tokio::test(start_paused = true)]
async fn a_batch_holds_its_credit_too() {
    let entry = r#"{"jsonrpc":"2.0","method":"note","params":{}}"#;
    let through = accepted(format!("[{}]\n", [entry; 10].join(",")).as_bytes()).await;
    assert!((512..16 * 1024).contains(&through), "{through}");
}
