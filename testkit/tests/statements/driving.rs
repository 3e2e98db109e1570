//! Statements 57 to 61: channels, bridges and the transports that come with the library.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_channel::mpsc;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use greenroom::{
    Agent, ByteStreams, Channel, Client, ConnectTo, ConnectionDriver, ConnectionTo, DynConnectTo, Lines, Responder,
    Result, TransportFrame, UntypedMessage, UntypedRole, on_receive_notification, on_receive_request,
};
use greenroom_testkit::scripted::{Scripted, pair};
use serde_json::{Value, json};
use tokio::io::{AsyncRead as _, AsyncWrite as _, DuplexStream, ReadBuf};
use tokio::sync::oneshot;

use crate::support::*;

fn frame(message: &Value) -> TransportFrame {
    TransportFrame::parse_json(&message.to_string())
}

/// The next frame as JSON; `None` at the end.
async fn next(channel: &mut Channel) -> Option<Value> {
    let frame = soon(channel.rx.next()).await?;
    Some(serde_json::from_str(&frame.to_json().expect("JSON")).expect("JSON"))
}

fn send(channel: &Channel, message: &Value) {
    channel.tx.unbounded_send(frame(message)).expect("somebody listens");
}

#[tokio::test(start_paused = true)]
async fn statement_57_a_channel_has_no_driver_and_a_bridge_keeps_each_direction_to_its_end() {
    let (channel, _far) = Channel::duplex();
    assert!(ConnectTo::<Client>::into_channel_and_future(channel).1.is_none());
    let (channel, _far) = Channel::duplex();
    assert!(DynConnectTo::<Client>::new(channel).into_channel_and_future().1.is_none());

    // Two channels, and a channel and a byte stream; either side may be the one that closes first.
    for left_first in [true, false] {
        let (mut left, near) = Channel::duplex();
        let (mut right, other) = Channel::duplex();
        let bridge = tokio::spawn(ConnectTo::<UntypedRole>::connect_to(near, other));
        let (closing, open) = if left_first { (&mut left, &mut right) } else { (&mut right, &mut left) };
        send(closing, &request(1, "_last_question"));
        closing.tx.close_channel();
        assert_eq!(next(open).await, Some(request(1, "_last_question")));
        assert_eq!(next(open).await, None);
        settled().await;
        assert!(!bridge.is_finished(), "one direction is open");
        send(open, &result(1, "the answer"));
        assert_eq!(next(closing).await, Some(result(1, "the answer")));
        open.tx.close_channel();
        assert_eq!(next(closing).await, None);
        soon(bridge).await.expect("no panic").expect("a clean end");
    }
    for bytes_first in [true, false] {
        let (mut peer, link) = pair(ROOM);
        let (mut far, near) = Channel::duplex();
        let bridge = tokio::spawn(ConnectTo::<UntypedRole>::connect_to(near, link));
        if bytes_first {
            peer.send(&request(1, "_last_question")).await;
            peer.close().await;
            assert_eq!(next(&mut far).await, Some(request(1, "_last_question")));
            assert_eq!(next(&mut far).await, None);
            settled().await;
            send(&far, &result(1, "the answer"));
            soon(peer.expect(result(1, "the answer"))).await;
            far.tx.close_channel();
            soon(peer.expect_end()).await;
        } else {
            send(&far, &request(1, "_last_question"));
            far.tx.close_channel();
            soon(peer.expect(request(1, "_last_question"))).await;
            soon(peer.expect_end()).await;
            settled().await;
            peer.send(&result(1, "the answer")).await;
            assert_eq!(next(&mut far).await, Some(result(1, "the answer")));
            peer.close().await;
            assert_eq!(next(&mut far).await, None);
        }
        soon(bridge).await.expect("no panic").expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn statement_58_the_absence_of_a_driver_is_no_end() {
    let (mut far, near) = Channel::duplex();
    let echo = UntypedRole.builder().on_receive_request(
        async |request: UntypedMessage, responder: Responder<Value>, _cx| responder.respond(request.params),
        on_receive_request!(),
    );
    let serving = tokio::spawn(echo.connect_to(near));
    for id in 0..3 {
        tokio::time::sleep(tokio::time::Duration::from_secs(24 * 3600)).await;
        assert!(!serving.is_finished());
        send(&far, &request_with(id, "_ask", json!([id])));
        assert_eq!(next(&mut far).await, Some(result(id, json!([id]))));
    }
    far.tx.close_channel();
    soon(serving).await.expect("no panic").expect("a clean end");
}

/// A component that leaves its work behind in the channel: its driver is done, and somebody else
/// still holds a sender.
struct Done(Channel, ConnectionDriver);

impl ConnectTo<UntypedRole> for Done {
    async fn connect_to(self, _peer: impl ConnectTo<UntypedRole>) -> Result<()> {
        unreachable!("these tests use the other entry point")
    }

    fn into_channel_and_future(self) -> (Channel, Option<ConnectionDriver>) {
        (self.0, Some(self.1))
    }
}

const NOTES: u64 = 200;

fn done() -> (Done, Channel, oneshot::Sender<()>) {
    let (ours, far) = Channel::duplex();
    for n in 0..NOTES {
        send(&far, &note_with("_note", json!([n])));
    }
    let (finish, finished) = oneshot::channel();
    let driver = ConnectionDriver::new(async {
        let _ = finished.await;
        Ok(())
    });
    (Done(ours, driver), far, finish)
}

#[tokio::test(start_paused = true)]
async fn statement_59_owned_work_that_is_done_drains_what_was_accepted_and_waits_for_nothing_else() {
    // A connection.
    let (component, far, finish) = done();
    let (log, mut said) = log();
    finish.send(()).expect("a driver");
    let reading = UntypedRole.builder().on_receive_notification(
        async move |note: UntypedMessage, _cx| {
            log.say(note.params[0].to_string());
            Ok(())
        },
        on_receive_notification!(),
    );
    soon(reading.connect_to(component)).await.expect("a clean end");
    assert_eq!(said.so_far(), (0..NOTES).map(|n| n.to_string()).collect::<Vec<_>>());
    assert!(far.tx.unbounded_send(frame(&note("_late"))).is_err(), "no more is accepted");

    // A bridge: its other side stays open.
    let (component, held, finish) = done();
    let (mut far, near) = Channel::duplex();
    let bridge = tokio::spawn(ConnectTo::<UntypedRole>::connect_to(near, component));
    settled().await;
    assert!(!bridge.is_finished());
    finish.send(()).expect("a driver");
    soon(bridge).await.expect("no panic").expect("a clean end");
    for n in 0..NOTES {
        assert_eq!(next(&mut far).await, Some(note_with("_note", json!([n]))));
    }
    assert_eq!(next(&mut far).await, None);
    assert!(held.tx.unbounded_send(frame(&note("_late"))).is_err(), "no more is accepted");
    assert!(far.tx.is_closed());
}

/// A component that waits for the answer to its own request, and is done then.
struct Asking;

impl ConnectTo<Client> for Asking {
    async fn connect_to(self, client: impl ConnectTo<Agent>) -> Result<()> {
        let ask = async |cx: ConnectionTo<Client>| cx.send_request(message("_ask")).block_task().await;
        assert_eq!(Agent.builder().connect_with(client, ask).await?, json!("answer"));
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn statement_60_output_is_forwarded_while_owned_work_runs() {
    let answering = || {
        Client.builder().on_receive_request(
            async |_: UntypedMessage, responder: Responder<Value>, _cx| responder.respond(json!("answer")),
            on_receive_request!(),
        )
    };
    soon(answering().connect_to(Asking)).await.expect("no deadlock");
    soon(Asking.connect_to(answering())).await.expect("no deadlock");
    // Through a bridge, the other side of which is a channel.
    let (mut far, near) = Channel::duplex();
    let bridge = tokio::spawn(ConnectTo::<Agent>::connect_to(near, Asking));
    let asked = next(&mut far).await.expect("a request");
    send(&far, &result(asked["id"].clone(), "answer"));
    soon(bridge).await.expect("no panic").expect("no deadlock");
}

/// A stream of tokio as one of `futures`.
struct Futures(DuplexStream);

impl futures_util::io::AsyncRead for Futures {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        let read = Pin::new(&mut self.0).poll_read(cx, &mut buf);
        read.map_ok(|()| buf.filled().len())
    }
}

impl futures_util::io::AsyncWrite for Futures {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// A scripted peer, and the transport to it. The two directions are two pipes.
fn byte_streams(room: usize) -> (Scripted<DuplexStream, DuplexStream>, ByteStreams<Futures, Futures>) {
    let (our_output, their_input) = tokio::io::duplex(room);
    let (their_output, our_input) = tokio::io::duplex(room);
    let peer = Scripted::new(their_input, their_output);
    (peer, ByteStreams::new(Futures(our_output), Futures(our_input)))
}

fn late_answer() -> impl ConnectTo<Client> {
    Agent.builder().on_receive_request(
        async |_: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
            cx.spawn(async move {
                settled().await;
                responder.respond(json!("after your end"))
            })
        },
        on_receive_request!(),
    )
}

#[tokio::test(start_paused = true)]
async fn statement_61_the_built_in_transports_close_what_they_write_to_and_keep_half_closed_streams() {
    // Byte streams: the input ends, the answer still leaves, then the output is closed.
    let (mut peer, transport) = byte_streams(ROOM);
    let serving = tokio::spawn(late_answer().connect_to(transport));
    peer.send(&request(1, "_ask")).await;
    peer.close().await;
    soon(peer.expect(result(1, "after your end"))).await;
    soon(peer.expect_end()).await;
    soon(serving).await.expect("no panic").expect("a clean end");

    // Lines: the same.
    let (lines_out, mut out) = mpsc::unbounded::<String>();
    let (feed, lines_in) = mpsc::unbounded::<String>();
    let transport = Lines::new(lines_out.sink_map_err(io::Error::other), lines_in.map(Ok));
    let serving = tokio::spawn(late_answer().connect_to(transport));
    feed.unbounded_send(request(1, "_ask").to_string()).expect("a reader");
    drop(feed);
    let line = soon(out.next()).await.expect("a line");
    assert_eq!(serde_json::from_str::<Value>(&line).expect("JSON"), result(1, "after your end"));
    assert_eq!(soon(out.next()).await, None);
    soon(serving).await.expect("no panic").expect("a clean end");

    // The low-level entry: it can be asked to finish, flushes under back-pressure, and does not
    // wait for the end of an open input.
    let (mut peer, transport) = byte_streams(64);
    let (channel, driver) = ConnectTo::<Client>::into_channel_and_future(transport);
    let mut driver = driver.expect("it owns work");
    for n in 0..NOTES {
        send(&channel, &note_with("_note", json!([n])));
    }
    assert!((&mut driver).now_or_never().is_none());
    assert!(driver.request_finish());
    let driver = tokio::spawn(driver);
    settled().await;
    assert!(!driver.is_finished(), "not flushed");
    for n in 0..NOTES {
        soon(peer.expect(note_with("_note", json!([n])))).await;
    }
    soon(peer.expect_end()).await;
    soon(driver).await.expect("no panic").expect("flushed");

    // Not asked, it keeps a half-closed channel open for the other direction.
    let (mut peer, transport) = byte_streams(ROOM);
    let (mut channel, driver) = ConnectTo::<Client>::into_channel_and_future(transport);
    let driver = tokio::spawn(driver.expect("it owns work"));
    send(&channel, &request(1, "_ask"));
    channel.tx.close_channel();
    soon(peer.expect(request(1, "_ask"))).await;
    soon(peer.expect_end()).await;
    settled().await;
    peer.send(&result(1, "still heard")).await;
    assert_eq!(next(&mut channel).await, Some(result(1, "still heard")));
    peer.close().await;
    assert_eq!(next(&mut channel).await, None);
    soon(driver).await.expect("no panic").expect("a clean end");
}
