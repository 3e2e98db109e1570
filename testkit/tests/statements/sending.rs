//! Statements 75 to 78: when a request is sent, and when it is not.

use futures_util::FutureExt as _;
use greenroom::{ConnectionTo, Result, is_connection_terminated};
use serde_json::{Value, json};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn statement_75_the_order_on_the_wire_is_the_order_of_publication() {
    as_client(async |cx, peer| {
        let prepared = cx.prepare_request(message("_prepared_first"));
        cx.send_notification(message("_note"))?;
        let eager = cx.send_request(message("_eager"));
        prepared.detach()?;
        cx.send_notification(message("_last"))?;
        for method in ["_note", "_eager", "_prepared_first", "_last"] {
            assert_eq!(peer.receive().await["method"], method);
        }
        eager.detach();
        Ok(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statement_76_block_task_sends_during_the_call() {
    as_client(async |cx, peer| {
        let response = cx.prepare_request(message("_ask")).block_task();
        cx.send_notification(message("_note"))?;
        // The future was not polled.
        let id = soon(peer.receive()).await["id"].clone();
        peer.expect(note("_note")).await;
        peer.send(&result(id, json!([1]))).await;
        assert_eq!(soon(response).await?, json!([1]));
        Ok(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statement_77_a_callback_that_cannot_be_registered_is_an_error_and_nothing_is_sent() {
    let mut escaped = None;
    as_client(async |cx, _peer| {
        escaped = Some(cx.prepare_request(message("_late")));
        Ok(())
    })
    .await;
    // `as_client` has seen the end of the stream: whatever is sent now would be too late anyway,
    // but it is not even counted as pending.
    let (log, mut said) = log();
    let error = escaped
        .expect("a request")
        .on_receiving_result(async move |_: Result<Value>| {
            log.say("called");
            Ok(())
        })
        .expect_err("nobody would run it");
    assert!(is_connection_terminated(&error), "{error:?}");
    settled().await;
    assert_eq!(said.so_far(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn statement_78_detach_of_a_prepared_request_returns_what_fails_at_once() {
    let mut escaped: Option<ConnectionTo<greenroom::Agent>> = None;
    as_client(async |cx, peer| {
        // Params must be an object, an array or nothing.
        let error = cx.prepare_request(with_params("_bad", json!("text"))).detach().expect_err("not sendable");
        assert_eq!(i32::from(error.code), -32603);
        expect_nothing_sent(&cx, peer).await;
        cx.prepare_request(message("_good")).detach()?;
        assert_eq!(peer.receive().await["method"], "_good");
        // The same failure reaches whoever else consumes the request.
        let bad = || cx.prepare_request(with_params("_bad", json!("text")));
        let error = bad().block_task().now_or_never().expect("at once").expect_err("not sendable");
        assert_eq!(i32::from(error.code), -32603);
        let (log, mut said) = log();
        bad().on_receiving_result(async move |outcome: Result<Value>| {
            log.say(i32::from(outcome.expect_err("not sendable").code).to_string());
            Ok(())
        })?;
        said.expect("-32603").await;
        escaped = Some(cx);
        Ok(())
    })
    .await;
    let error = escaped.expect("a handle").prepare_request(message("_late")).detach().expect_err("over");
    assert!(is_connection_terminated(&error), "{error:?}");
}
