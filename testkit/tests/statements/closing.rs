//! Statements 37 to 48: the peer closes its side.

use std::sync::Arc;

use futures_util::FutureExt as _;
use greenroom::{
    Agent, BoxFuture, Client, ConnectionTo, Dispatch, Error, ErrorCode, Handled, INCOMING_TRANSPORT_CLOSED_REASON,
    Responder, Result, UntypedMessage, is_incoming_transport_closed, on_receive_dispatch, on_receive_request,
};
use greenroom_testkit::scripted::pair;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::support::*;

fn assert_closed(error: &Error, method: &str) {
    assert_eq!(error.code, ErrorCode::InternalError);
    assert_eq!(error.data, Some(json!({ "reason": INCOMING_TRANSPORT_CLOSED_REASON, "method": method })));
    assert!(is_incoming_transport_closed(error));
}

#[tokio::test(start_paused = true)]
async fn statement_37_the_end_of_the_input_completes_every_pending_request() {
    as_client(async |cx, peer| {
        let eager = cx.send_request(message("_eager"));
        let prepared = cx.prepare_request(message("_prepared")).block_task();
        let (tell, told) = oneshot::channel();
        cx.prepare_request(message("_called")).on_receiving_result(async move |outcome| {
            let _ = tell.send(outcome);
            Ok(())
        })?;
        cx.prepare_request(message("_detached")).detach()?;
        for _ in 0..4 {
            peer.receive().await;
        }
        peer.close().await;
        assert_closed(&soon(eager.block_task()).await.unwrap_err(), "_eager");
        assert_closed(&soon(prepared).await.unwrap_err(), "_prepared");
        assert_closed(&soon(told).await.expect("called").unwrap_err(), "_called");
        Ok(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statement_38_only_the_end_of_the_input_is_called_so() {
    // A peer that imitates the error, and a handler that drops the right to route a response.
    let (mut peer, link) = pair(ROOM);
    let client = Client.builder().on_receive_dispatch(
        async |dispatch: Dispatch, _cx: ConnectionTo<Agent>| match dispatch {
            Dispatch::Response(_, router) if router.method() == "_dropped" => Ok(Handled::Yes),
            other => Ok(Handled::No { message: other, retry: false }),
        },
        on_receive_dispatch!(),
    );
    let run = client.connect_with(link, async |cx: ConnectionTo<Agent>| {
        let imitated = cx.send_request(message("_imitated"));
        let id = peer.receive().await["id"].clone();
        let data = json!({ "reason": INCOMING_TRANSPORT_CLOSED_REASON, "method": "_imitated" });
        let error = json!({ "code": -32603, "message": "Internal error", "data": data });
        peer.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error })).await;
        let error = soon(imitated.block_task()).await.unwrap_err();
        assert_eq!(error.data, Some(data));
        assert!(!is_incoming_transport_closed(&error), "the peer said so");

        let dropped = cx.send_request(message("_dropped"));
        answer(&mut peer, 1).await;
        let error = soon(dropped.block_task()).await.unwrap_err();
        assert!(!is_incoming_transport_closed(&error), "{error:?}");
        Ok(())
    });
    soon(run).await.expect("the script");

    let (link, break_it) = breakable();
    let (tell, told) = oneshot::channel();
    let run = Client.builder().connect_with(link, async move |cx: ConnectionTo<Agent>| {
        let pending = cx.send_request(message("_ask"));
        break_it.send(()).expect("a reader");
        let _ = tell.send(pending.block_task().await);
        std::future::pending::<Result<()>>().await
    });
    soon(run).await.expect_err("the transport broke");
    let error = soon(told).await.expect("an outcome").unwrap_err();
    assert!(!is_incoming_transport_closed(&error), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn statement_39_a_request_after_the_end_of_the_input_fails_at_once() {
    as_client(async |cx, peer| {
        peer.close().await;
        cx.incoming_closed().await;
        for error in [
            cx.send_request(message("_late")).block_task().now_or_never().expect("at once").unwrap_err(),
            cx.prepare_request(message("_late")).block_task().now_or_never().expect("at once").unwrap_err(),
        ] {
            assert_closed(&error, "_late");
        }
        let (tell, told) = oneshot::channel();
        cx.send_request(message("_called")).on_receiving_result(async move |outcome| {
            let _ = tell.send(outcome);
            Ok(())
        })?;
        assert_closed(&soon(told).await.expect("called").unwrap_err(), "_called");
        Ok(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statement_40_a_request_that_was_not_written_yet_fails_in_the_same_way() {
    let (mut peer, link) = pair(16);
    let run = Client.builder().connect_with(link, async move |cx: ConnectionTo<Agent>| {
        let begun = cx.send_request(with_params("_begun", json!(["x".repeat(1000)])));
        settled().await;
        let queued = cx.send_request(message("_queued"));
        settled().await;
        peer.close().await;
        assert_closed(&soon(begun.block_task()).await.unwrap_err(), "_begun");
        assert_closed(&soon(queued.block_task()).await.unwrap_err(), "_queued");
        Ok(())
    });
    soon(run).await.expect("the script");
}

#[tokio::test(start_paused = true)]
async fn statement_41_an_answer_before_the_end_of_the_input_is_delivered() {
    as_client(async |cx, peer| {
        let sent = cx.send_request(message("_answered"));
        let lost = cx.send_request(message("_lost"));
        answer(peer, "just in time").await;
        assert_eq!(peer.receive().await["method"], "_lost");
        peer.close().await;
        cx.incoming_closed().await;
        assert_eq!(soon(sent.block_task()).await?, "just in time");
        assert_closed(&soon(lost.block_task()).await.unwrap_err(), "_lost");
        Ok(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statement_42_pending_requests_fail_before_the_first_close_callback_starts() {
    let pending: Arc<Mutex<Option<BoxFuture<'static, Result<Value>>>>> = Arc::default();
    let (in_callback, (log, mut said)) = (pending.clone(), log());
    let (mut peer, link) = pair(ROOM);
    let client = Client.builder().on_close(async move |_cx: ConnectionTo<Agent>| {
        let waiting = in_callback.lock().take().expect("a request");
        match waiting.now_or_never() {
            Some(outcome) => assert_closed(&outcome.unwrap_err(), "_ask"),
            None => panic!("it is still pending"),
        }
        log.say("closed");
        Ok(())
    });
    let run = client.connect_with(link, async |cx: ConnectionTo<Agent>| {
        *pending.lock() = Some(Box::pin(cx.prepare_request(message("_ask")).block_task()));
        peer.close().await;
        cx.incoming_closed().await;
        Ok(())
    });
    soon(run).await.expect("the callback");
    said.expect("closed").await;
}

#[tokio::test(start_paused = true)]
async fn statement_43_close_callbacks_run_in_order_all_of_them_and_the_first_error_wins() {
    let (log, mut said) = log();
    let callback = |name: &'static str, fails: bool| {
        let log = log.clone();
        async move |cx: ConnectionTo<Client>| {
            assert!(!cx.is_incoming_closed(), "statement 46");
            log.say(format!("{name} begins"));
            tokio::task::yield_now().await;
            log.say(format!("{name} ends"));
            if fails { Err(Error::internal_error().data(name)) } else { Ok(()) }
        }
    };
    let merged = Agent.builder().on_close(callback("c", true)).on_close(callback("d", true));
    let agent = Agent
        .builder()
        .on_close(callback("a", false))
        .on_close(callback("b", true))
        .with_connection_builder(merged)
        .on_close(callback("e", false));
    let (mut peer, serving) = serve(agent);
    peer.close().await;
    let error = soon(serving).await.expect("no panic").expect_err("callbacks failed");
    assert_eq!(error.data, Some(json!("b")));
    let order: Vec<_> =
        ["a", "b", "c", "d", "e"].iter().flat_map(|n| [format!("{n} begins"), format!("{n} ends")]).collect();
    assert_eq!(said.so_far(), order);
}

#[tokio::test(start_paused = true)]
async fn statement_44_a_failed_close_callback_ends_the_foreground_and_a_good_one_does_not() {
    let foreground = async |cx: ConnectionTo<Agent>| {
        cx.incoming_closed().await;
        settled().await;
        settled().await;
        Ok("foreground")
    };
    let (mut peer, link) = pair(ROOM);
    peer.close().await;
    let good = Client.builder().on_close(async |_cx: ConnectionTo<Agent>| Ok(()));
    assert_eq!(soon(good.connect_with(link, foreground)).await.expect("its own end"), "foreground");

    let (mut peer, link) = pair(ROOM);
    peer.close().await;
    let bad = Client.builder().on_close(async |_cx: ConnectionTo<Agent>| Err(Error::invalid_params().data("mine")));
    let forever = async |_cx: ConnectionTo<Agent>| std::future::pending::<Result<()>>().await;
    let error = soon(bad.connect_with(link, forever)).await.expect_err("the callback's error");
    assert_eq!((error.code, error.data), (ErrorCode::InvalidParams, Some(json!("mine"))));
}

#[tokio::test(start_paused = true)]
async fn statement_45_inside_a_callback_the_input_is_not_closed_yet() {
    let (log, mut said) = log();
    let (mut peer, link) = pair(ROOM);
    let client = Client.builder().on_close(async move |cx: ConnectionTo<Agent>| {
        // Whoever awaited it here would wait for itself.
        log.say(format!("{:?}", cx.incoming_closed().now_or_never()));
        Ok(())
    });
    let run = client.connect_with(link, async |cx: ConnectionTo<Agent>| {
        peer.close().await;
        said.expect("None").await;
        cx.incoming_closed().await;
        Ok(())
    });
    soon(run).await.expect("the script");
}

#[tokio::test(start_paused = true)]
async fn statement_46_the_input_counts_as_closed_after_the_callbacks() {
    let (log, mut said) = log();
    let (go, gone) = oneshot::channel::<()>();
    let (mut peer, link) = pair(ROOM);
    let in_callback = log.clone();
    let client = Client.builder().on_close(async move |cx: ConnectionTo<Agent>| {
        in_callback.say(format!("begins {}", cx.is_incoming_closed()));
        gone.await.expect("the test goes on");
        in_callback.say(format!("ends {}", cx.is_incoming_closed()));
        Ok(())
    });
    let run = client.connect_with(link, async |cx: ConnectionTo<Agent>| {
        assert!(!cx.is_incoming_closed());
        peer.close().await;
        said.expect("begins false").await;
        assert_eq!((cx.incoming_closed().now_or_never(), cx.is_incoming_closed()), (None, false));
        go.send(()).expect("a callback");
        cx.incoming_closed().await;
        assert!(cx.is_incoming_closed());
        assert_eq!(said.so_far(), ["ends false"]);
        Ok(())
    });
    soon(run).await.expect("the script");
}

#[tokio::test(start_paused = true)]
async fn statement_47_connect_to_is_done_after_the_end_of_the_input_and_the_drain() {
    const NOTES: u64 = 200;
    let agent = Agent
        .builder()
        .on_receive_request(
            async |_: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
                for n in 0..NOTES {
                    cx.send_notification(with_params("_note", json!({ "n": n })))?;
                }
                responder.respond(json!("all"))
            },
            on_receive_request!(),
        )
        .with_spawned(async |_cx: ConnectionTo<Client>| std::future::pending().await);
    // Room for one message at most: the rest waits inside.
    let (mut peer, link) = pair(64);
    let serving = tokio::spawn(agent.connect_to(link));
    peer.send(&request(1, "_ask")).await;
    peer.close().await;
    settled().await;
    assert!(!serving.is_finished(), "its output is not written");
    for n in 0..NOTES {
        peer.expect(note_with("_note", json!({ "n": n }))).await;
    }
    peer.expect(result(1, "all")).await;
    peer.expect_end().await;
    soon(serving).await.expect("no panic").expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn statement_48_the_foreground_goes_on_after_the_end_of_the_input() {
    as_client(async |cx, peer| {
        peer.close().await;
        cx.incoming_closed().await;
        for _ in 0..10 {
            settled().await;
        }
        // The other direction is still open.
        cx.send_notification(message("_still_here"))?;
        peer.expect(note("_still_here")).await;
        Ok(())
    })
    .await;
}
