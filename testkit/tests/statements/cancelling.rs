//! Statements 1 to 13: cancelling a request of one's own.

use greenroom::{ErrorCode, UntypedMessage};
use serde_json::{Value, json};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn statement_01_cancel_puts_one_notification_with_the_id_of_the_request() {
    as_client(async |cx, peer| {
        cx.send_request(message("_first")).detach();
        let second = cx.send_request(message("_second"));
        let (first_id, id) = (peer.receive().await["id"].clone(), peer.receive().await["id"].clone());
        assert_ne!(first_id, id);
        assert_eq!(json!(second.id()), id);
        second.cancel()?;
        peer.expect(cancel(id)).await;
        expect_nothing_sent(&cx, peer).await;
        second.detach();
        Ok(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statement_02_two_cancels_of_any_kind_are_one_notification() {
    as_client(async |cx, peer| {
        for kind in ["twice", "cancel and drop", "two handles", "handle and drop", "handle and dropped future"] {
            let sent = cx.send_request(message("_ask"));
            let id = peer.receive().await["id"].clone();
            let handle = sent.cancellation_handle();
            match kind {
                "twice" => {
                    sent.cancel()?;
                    sent.cancel()?;
                    sent.detach();
                }
                "cancel and drop" => {
                    sent.cancel()?;
                    drop(sent);
                }
                "two handles" => {
                    handle.clone().cancel()?;
                    handle.cancel()?;
                    sent.detach();
                }
                "handle and drop" => {
                    handle.cancel()?;
                    drop(sent);
                }
                _ => {
                    let waiting = sent.block_task();
                    handle.cancel()?;
                    drop(waiting);
                }
            }
            peer.expect(cancel(id)).await;
            expect_nothing_sent(&cx, peer).await;
        }
        Ok(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statement_03_after_a_cancel_the_answer_still_comes() {
    as_client(async |cx, peer| {
        for good in [true, false] {
            let sent = cx.send_request(message("_ask"));
            sent.cancel()?;
            let id = peer.receive().await["id"].clone();
            peer.expect(cancel(id.clone())).await;
            peer.send(&if good { result(id, "done anyway") } else { refusal(id, -32800) }).await;
            match soon(sent.block_task()).await {
                Ok(value) => assert_eq!((good, value), (true, json!("done anyway"))),
                Err(error) => assert_eq!((good, error.code), (false, ErrorCode::RequestCancelled)),
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statement_04_a_dropped_request_is_cancelled_until_its_answer_was_routed() {
    as_client(async |cx, peer| {
        drop(cx.send_request(message("_ask")));
        let id = peer.receive().await["id"].clone();
        peer.expect(cancel(id)).await;

        let answered = cx.send_request(message("_ask"));
        answer(peer, "early").await;
        settled().await;
        drop(answered);
        expect_nothing_sent(&cx, peer).await;
        Ok(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statement_05_a_dropped_response_future_cancels_an_outstanding_request() {
    as_client(async |cx, peer| {
        let waiting = cx.prepare_request(message("_ask")).block_task();
        let id = peer.receive().await["id"].clone();
        drop(waiting);
        peer.expect(cancel(id)).await;

        let answered = cx.prepare_request(message("_ask")).block_task();
        answer(peer, 1).await;
        settled().await;
        drop(answered);
        expect_nothing_sent(&cx, peer).await;
        Ok(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statement_06_a_dropped_prepared_request_sends_nothing() {
    as_client(async |cx, peer| {
        drop(cx.prepare_request(message("_ask")));
        drop(cx.prepare_request(message("_ask")).map(Ok));
        expect_nothing_sent(&cx, peer).await;
        Ok(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statement_07_a_detached_request_is_never_cancelled_by_itself() {
    as_client(async |cx, peer| {
        cx.send_request(message("_eager")).detach();
        assert_eq!(peer.receive().await["method"], "_eager");
        expect_nothing_sent(&cx, peer).await;
        cx.prepare_request(message("_prepared")).detach()?;
        assert_eq!(answer(peer, "nobody reads this").await["method"], "_prepared");
        settled().await;
        expect_nothing_sent(&cx, peer).await;
        Ok(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statement_08_a_handle_cancels_a_detached_request_while_it_is_pending() {
    as_client(async |cx, peer| {
        let sent = cx.send_request(message("_eager"));
        let handle = sent.cancellation_handle();
        sent.detach();
        let id = peer.receive().await["id"].clone();
        handle.cancel()?;
        peer.expect(cancel(id)).await;

        let prepared = cx.prepare_request(message("_prepared"));
        let handle = prepared.cancellation_handle();
        prepared.detach()?;
        let id = peer.receive().await["id"].clone();
        handle.cancel()?;
        peer.expect(cancel(id)).await;
        Ok(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statement_09_a_dropped_handle_changes_nothing() {
    as_client(async |cx, peer| {
        let sent = cx.send_request(message("_ask"));
        let id = peer.receive().await["id"].clone();
        drop(sent.cancellation_handle());
        expect_nothing_sent(&cx, peer).await;
        drop(sent);
        peer.expect(cancel(id)).await;
        Ok(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statement_10_a_cancel_before_publication_is_not_remembered() {
    as_client(async |cx, peer| {
        let prepared = cx.prepare_request(message("_ask"));
        let handle = prepared.cancellation_handle();
        handle.cancel()?;
        expect_nothing_sent(&cx, peer).await;
        let waiting = prepared.block_task();
        let id = peer.receive().await["id"].clone();
        expect_nothing_sent(&cx, peer).await;
        // Nor is it the one cancel that the request may have.
        handle.cancel()?;
        peer.expect(cancel(id.clone())).await;
        peer.send(&result(id, Value::Null)).await;
        waiting.await.map(drop)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statement_11_a_cancel_after_an_answer_or_a_local_failure_sends_nothing() {
    as_client(async |cx, peer| {
        let sent = cx.send_request(message("_ask"));
        let handle = sent.cancellation_handle();
        answer(peer, 1).await;
        settled().await;
        // Routed, although nobody took it yet.
        handle.cancel()?;
        assert_eq!(sent.block_task().await?, 1);
        handle.cancel()?;
        expect_nothing_sent(&cx, peer).await;

        for consume in ["block_task", "detach", "callback", "drop"] {
            let unwritable = cx.prepare_request(Unwritable);
            let handle = unwritable.cancellation_handle();
            match consume {
                "block_task" => drop(unwritable.block_task().await.unwrap_err()),
                "detach" => drop(unwritable.detach().unwrap_err()),
                "callback" => unwritable.on_receiving_result(async |_| Ok(()))?,
                _ => drop(cx.send_request(Unwritable)),
            }
            handle.cancel()?;
            expect_nothing_sent(&cx, peer).await;
        }
        Ok(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statement_12_ok_is_no_proof_that_anything_was_sent() {
    let mut kept = None;
    as_client(async |cx, peer| {
        let prepared = cx.prepare_request(message("_ask"));
        assert!(prepared.cancellation_handle().cancel().is_ok(), "not published");
        let sent = cx.send_request(message("_ask"));
        let handle = sent.cancellation_handle();
        answer(peer, 1).await;
        sent.block_task().await?;
        assert!(handle.cancel().is_ok(), "answered");
        expect_nothing_sent(&cx, peer).await;
        kept = Some(handle);
        Ok(())
    })
    .await;
    assert!(kept.expect("a handle").cancel().is_ok(), "the connection is gone");
}

#[tokio::test(start_paused = true)]
async fn statement_13_a_cancelled_request_gives_its_callback_and_its_future_the_answer() {
    as_client(async |cx, peer| {
        let (log, mut said) = log();
        let called = cx.prepare_request(message("_called"));
        let handle = called.cancellation_handle();
        called.on_receiving_result(async move |outcome| {
            log.say(format!("{:?}", outcome.map_err(|error| i32::from(error.code))));
            Ok(())
        })?;
        handle.cancel()?;
        let id = peer.receive().await["id"].clone();
        peer.expect(cancel(id.clone())).await;
        peer.send(&refusal(id, -32800)).await;
        said.expect("Err(-32800)").await;

        let awaited = cx.prepare_request(message("_awaited"));
        let handle = awaited.cancellation_handle();
        let waiting = awaited.block_task();
        handle.cancel()?;
        let id = peer.receive().await["id"].clone();
        peer.expect(cancel(id.clone())).await;
        peer.send(&result(id, "whole")).await;
        assert_eq!(soon(waiting).await?, "whole");
        Ok(())
    })
    .await;
}

/// A request whose params cannot be written.
#[derive(Clone, Debug)]
struct Unwritable;

impl greenroom::JsonRpcMessage for Unwritable {
    fn matches_method(_method: &str) -> bool {
        false
    }

    fn method(&self) -> &str {
        "_unwritable"
    }

    fn to_untyped_message(&self) -> greenroom::Result<UntypedMessage> {
        Err(greenroom::Error::internal_error().data("expected by the test"))
    }

    fn parse_message(_method: &str, _params: &impl serde::Serialize) -> greenroom::Result<Self> {
        Err(greenroom::Error::method_not_found())
    }
}

impl greenroom::JsonRpcRequest for Unwritable {
    type Response = Value;
}
