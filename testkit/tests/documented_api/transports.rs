//! "Transport Architecture".

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use agent_client_protocol::{
    Agent, ByteStreams, Channel, Client, ConnectTo, Lines, RawJsonRpcMessage, Responder, TransportFrame,
    UntypedMessage, on_receive_notification, on_receive_request,
};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::ReadBuf;

fn echo() -> impl ConnectTo<Client> {
    Agent
        .builder()
        .on_receive_request(
            async |request: UntypedMessage, responder: Responder<Value>, _cx| match request.method.as_str() {
                "drop" => {
                    drop(responder);
                    Ok(())
                }
                _ => responder.respond(request.params),
            },
            on_receive_request!(),
        )
        .on_receive_notification(async |_: UntypedMessage, _cx| Ok(()), on_receive_notification!())
}

/// A frame holds one message, backed by the envelope types of the schema.
#[test]
fn the_frame_boundary() {
    let kind = |text: &str| match TransportFrame::parse_json(text) {
        TransportFrame::Single(RawJsonRpcMessage::Request(request)) => format!("request {}", request.method),
        TransportFrame::Single(RawJsonRpcMessage::Notification(notification)) => {
            format!("notification {}", notification.method)
        }
        TransportFrame::Single(RawJsonRpcMessage::Response(_)) => "response".to_owned(),
        TransportFrame::Batch(batch) => format!("batch of {}", batch.len()),
        TransportFrame::Malformed { raw, .. } => format!("malformed {raw}"),
    };
    for (text, expected) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, "request m"),
        (r#"{"jsonrpc":"2.0","method":"m","params":{}}"#, "notification m"),
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "response"),
        (r#"[{"jsonrpc":"2.0","method":"m"}]"#, "batch of 1"),
        ("[]", "malformed []"),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#,
            r#"malformed {"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#,
        ),
        ("{ not json", "malformed { not json"),
    ] {
        assert_eq!(kind(text), expected);
    }
}

/// A mock transport: frames are injected and inspected without I/O. The rules for batches.
#[tokio::test]
async fn testing_with_a_mock_transport() {
    let (mut peer, transport) = Channel::duplex();
    let serving = tokio::spawn(echo().connect_to(transport));
    let send = |text: &str| peer.tx.unbounded_send(TransportFrame::parse_json(text)).expect("open");
    send(r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":[1]}"#);
    send(
        r#"[{"jsonrpc":"2.0","id":2,"method":"echo","params":[2]},{"jsonrpc":"2.0","method":"tell"},{"id":9},{"jsonrpc":"2.0","id":3,"method":"drop"}]"#,
    );
    send(r#"[{"jsonrpc":"2.0","method":"tell"}]"#);
    send("[]");
    send(r#"[{"jsonrpc":"2.0","id":"unknown","result":1}]"#);
    send(r#"{"jsonrpc":"2.0","id":4,"method":"echo","params":[4]}"#);
    let mut answers = Vec::new();
    for _ in 0..4 {
        let frame = peer.rx.next().await.expect("a frame");
        answers.push(serde_json::from_str::<Value>(&frame.to_json().expect("text")).expect("json"));
    }
    let (batches, mut singles): (Vec<Value>, Vec<Value>) = answers.into_iter().partition(Value::is_array);
    // A refusal of what is no message need not wait for handlers.
    let refused = singles.iter().position(|answer| answer["id"].is_null()).expect("an answer to the empty array");
    assert_eq!(singles.remove(refused)["error"]["code"], -32600);
    let echoed = |id: i64| json!({ "jsonrpc": "2.0", "id": id, "result": [id] });
    assert_eq!(singles, [echoed(1), echoed(4)]);
    let entries = batches[0].as_array().expect("one response array");
    let mut found: Vec<_> = entries.iter().map(|entry| (entry["id"].clone(), entry["error"]["code"].clone())).collect();
    found.sort_by_key(|(id, _)| id.to_string());
    assert_eq!(found, [(json!(2), Value::Null), (json!(3), json!(-32603)), (Value::Null, json!(-32600))]);
    drop(peer);
    serving.await.expect("no panic").expect("a clean end");
}

async fn asks(transport: impl ConnectTo<Client>) -> Value {
    Client
        .connect_with(transport, async |cx| {
            cx.send_request(UntypedMessage::new("echo", json!({ "a": [1] }))?).block_task().await
        })
        .await
        .expect("an answer")
}

/// Newline-delimited JSON through any sink and stream of strings.
#[tokio::test]
async fn lines_over_any_sink_and_stream() {
    let (to_agent, from_client) = futures::channel::mpsc::unbounded::<String>();
    let (to_client, from_agent) = futures::channel::mpsc::unbounded::<String>();
    let broken = |_| std::io::Error::from(std::io::ErrorKind::BrokenPipe);
    let agent_side = Lines::new(to_client.sink_map_err(broken), from_client.map(Ok));
    let serving = tokio::spawn(echo().connect_to(agent_side));
    let client_side = Lines::new(to_agent.sink_map_err(broken), from_agent.map(Ok));
    assert_eq!(asks(client_side).await, json!({ "a": [1] }));
    serving.await.expect("no panic").expect("a clean end");
}

/// What a runtime's halves need to be compatible.
struct Compat<T>(T);

impl<T: tokio::io::AsyncRead + Unpin> futures::io::AsyncRead for Compat<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(room);
        ready!(Pin::new(&mut self.0).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

impl<T: tokio::io::AsyncWrite + Unpin> futures::io::AsyncWrite for Compat<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Split a socket, and pass the halves on.
#[tokio::test]
async fn byte_streams_over_the_halves_of_a_socket() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = tokio::spawn(async move {
        let (read, write) = listener.accept().await.expect("a client").0.into_split();
        echo().connect_to(ByteStreams::new(Compat(write), Compat(read))).await
    });
    let (read, write) = tokio::net::TcpStream::connect(address).await.expect("the agent").into_split();
    assert_eq!(asks(ByteStreams::new(Compat(write), Compat(read))).await, json!({ "a": [1] }));
    serving.await.expect("no panic").expect("a clean end");
}
