//! Statements 49 to 51 and 62: the foreground is done.

use greenroom::{
    Agent, Client, ConnectionTo, Error, UntypedMessage, is_connection_terminated, on_receive_notification,
};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::oneshot;
use tokio::time::{Duration, sleep};

use crate::support::*;

const NOTES: u64 = 100;

fn send_notes(cx: &ConnectionTo<Agent>) -> greenroom::Result<()> {
    (0..NOTES).try_for_each(|n| cx.send_notification(with_params("_note", json!({ "n": n }))))
}

async fn read_notes(peer: &mut Local) {
    for n in 0..NOTES {
        soon(peer.expect(note_with("_note", json!({ "n": n })))).await;
    }
}

/// Says what is delivered to it and when its input is closed.
macro_rules! noting {
    ($log:expr) => {{
        let (notes, closed) = ($log.clone(), $log.clone());
        Client
            .builder()
            .on_receive_notification(
                async move |note: UntypedMessage, _cx: ConnectionTo<Agent>| {
                    notes.say(note.method);
                    Ok(())
                },
                on_receive_notification!(),
            )
            .on_close(async move |_cx: ConnectionTo<Agent>| {
                closed.say("close callback");
                Ok(())
            })
    }};
}

#[tokio::test(start_paused = true)]
async fn statement_49_after_the_foreground_queued_output_leaves_and_nothing_new_begins() {
    // There are no requests that wait for the readiness of a session here: those of version 2
    // arrive with its sessions.
    let (log, mut said) = log();
    let (mut peer, link) = pair(64);
    let in_task = log.clone();
    let done = log.clone();
    let run = tokio::spawn(noting!(log).connect_with(link, async move |cx: ConnectionTo<Agent>| {
        send_notes(&cx)?;
        cx.spawn(async move {
            in_task.say("task");
            Ok(())
        })?;
        done.say("foreground");
        Ok("value")
    }));
    said.expect("foreground").await;
    // The drain hangs, because nothing is read. Meanwhile the peer goes on.
    peer.send(&note("_unwanted")).await;
    peer.close().await;
    settled().await;
    assert!(!run.is_finished());
    read_notes(&mut peer).await;
    soon(peer.expect_end()).await;
    assert_eq!(soon(run).await.expect("no panic").expect("its value"), "value");
    assert_eq!(said.so_far(), Vec::<String>::new(), "begun after the foreground");
}

#[tokio::test(start_paused = true)]
async fn statement_49_a_close_callback_underway_completes_before_the_output_is_sealed() {
    for fails in [false, true] {
        let (log, mut said) = log();
        let (go, gone) = oneshot::channel::<()>();
        let (mut peer, link) = pair(ROOM);
        let (first, second) = (log.clone(), log.clone());
        let client = Client
            .builder()
            .on_close(async move |cx: ConnectionTo<Agent>| {
                first.say("begins");
                gone.await.expect("the test goes on");
                cx.send_notification(message("_last_words"))?;
                if fails { Err(Error::invalid_params().data("mine")) } else { Ok(()) }
            })
            .on_close(async move |cx: ConnectionTo<Agent>| {
                second.say("second");
                cx.send_notification(message("_really_last"))
            });
        peer.close().await;
        let run = tokio::spawn(client.connect_with(link, async move |cx: ConnectionTo<Agent>| {
            said.expect("begins").await;
            cx.send_notification(message("_foreground_done"))?;
            Ok(said)
        }));
        peer.expect(note("_foreground_done")).await;
        settled().await;
        assert!(!run.is_finished(), "a callback runs");
        go.send(()).expect("a callback");
        soon(peer.expect(note("_last_words"))).await;
        soon(peer.expect(note("_really_last"))).await;
        soon(peer.expect_end()).await;
        match soon(run).await.expect("no panic") {
            Ok(mut said) => assert_eq!((fails, said.so_far()), (false, vec!["second".to_owned()])),
            Err(error) => assert_eq!((fails, error.data), (true, Some(json!("mine")))),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn statement_50_reading_goes_on_during_the_drain_and_its_errors_count() {
    /// More than a connection reads ahead.
    const FLOOD: usize = 1 << 20;
    let (log, mut said) = log();
    let (mut peer, link) = pair(1024);
    let handling = log.clone();
    // A handler hangs as well: what is behind it is read and discarded all the same.
    let client = Client.builder().on_receive_notification(
        async move |_: UntypedMessage, _cx: ConnectionTo<Agent>| {
            handling.say("handler");
            std::future::pending::<greenroom::Result<()>>().await
        },
        on_receive_notification!(),
    );
    let run = tokio::spawn(client.connect_with(link, async move |cx: ConnectionTo<Agent>| {
        said.expect("handler").await;
        send_notes(&cx)
    }));
    peer.send(&note("_first")).await;
    let line = format!("{}\n", note_with("_more", json!(["x".repeat(1000)])));
    // This peer writes everything before it reads.
    assert!(peer.flood(line.as_bytes(), FLOOD).await >= FLOOD);
    read_notes(&mut peer).await;
    soon(peer.expect_end()).await;
    soon(run).await.expect("no panic").expect("a clean end");

    for hangs in [false, true] {
        let (far, near) = tokio::io::duplex(64);
        let (log, mut said) = crate::support::log();
        let (reader, mut feed) = tokio::io::duplex(64);
        let (link, break_it) = breakable_after(reader, near);
        let client = Client.builder().on_receive_notification(
            async move |_: UntypedMessage, _cx: ConnectionTo<Agent>| {
                log.say("handler");
                if hangs { std::future::pending::<greenroom::Result<()>>().await } else { Ok(()) }
            },
            on_receive_notification!(),
        );
        let run = tokio::spawn(client.connect_with(link, async move |cx: ConnectionTo<Agent>| {
            said.expect("handler").await;
            send_notes(&cx)
        }));
        feed.write_all(format!("{}\n", note("_first")).as_bytes()).await.expect("a reader");
        settled().await;
        assert!(!run.is_finished(), "the drain hangs: nobody reads the other end");
        break_it.send(()).expect("a reader");
        let error = soon(run).await.expect("no panic").expect_err("reading failed during the drain");
        assert!(error.to_string().contains("the cable was cut"), "{error}");
        drop(far);
    }
}

#[tokio::test(start_paused = true)]
async fn statement_51_escaped_handles_cannot_send_and_keep_nothing_alive() {
    let (mut peer, link) = pair(64);
    let (tell, told) = oneshot::channel();
    let run = tokio::spawn(Client.builder().connect_with(link, async move |cx: ConnectionTo<Agent>| {
        send_notes(&cx)?;
        let _ = tell.send(cx);
        Ok(())
    }));
    let escaped = told.await.expect("a handle");
    settled().await;
    assert!(!run.is_finished(), "the drain hangs");
    let refused = async || {
        escaped.send_notification(message("_late")).expect_err("sealed");
        escaped.prepare_request(message("_late")).detach().expect_err("sealed");
        let error = soon(escaped.send_request(message("_late")).block_task()).await.expect_err("sealed");
        assert!(is_connection_terminated(&error), "{error:?}");
    };
    refused().await;
    read_notes(&mut peer).await;
    soon(peer.expect_end()).await;
    soon(run).await.expect("no panic").expect("a clean end");
    refused().await;
    escaped.spawn(async { Ok(()) }).expect_err("over");
    let callback =
        escaped.prepare_request(message("_late")).on_receiving_result(async |_: greenroom::Result<Value>| Ok(()));
    callback.expect_err("statement 77");
}

#[tokio::test(start_paused = true)]
async fn statement_62_a_transport_that_cannot_flush_keeps_the_connection_pending() {
    let (mut peer, link) = pair(64);
    let run = tokio::spawn(Client.builder().connect_with(link, async |cx: ConnectionTo<Agent>| send_notes(&cx)));
    sleep(Duration::from_secs(24 * 3600)).await;
    assert!(!run.is_finished(), "there is no implicit timeout");
    read_notes(&mut peer).await;
    soon(peer.expect_end()).await;
    soon(run).await.expect("no panic").expect("a clean end");

    // The same after the end of the input.
    let agent = Agent.builder().on_close(async |cx: ConnectionTo<Client>| {
        cx.send_notification(with_params("_long", json!(["x".repeat(1000)])))
    });
    let (mut peer, link) = pair(64);
    let run = tokio::spawn(agent.connect_to(link));
    peer.close().await;
    sleep(Duration::from_secs(24 * 3600)).await;
    assert!(!run.is_finished(), "there is no implicit timeout");
    assert_eq!(soon(peer.receive()).await["method"], "_long");
    soon(peer.expect_end()).await;
    soon(run).await.expect("no panic").expect("a clean end");
}
