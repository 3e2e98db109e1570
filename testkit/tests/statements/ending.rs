//! Statements 63 to 66: how a connection ends, and what does not end it.

use greenroom::{
    Agent, CONNECTION_TERMINATED_REASON, Channel, Client, ConnectTo, ConnectionTermination, ConnectionTo, Dispatch,
    DynConnectTo, Error, ErrorCode, Handled, Responder, Result, UntypedMessage, is_connection_terminated,
    is_incoming_transport_closed, on_receive_dispatch, on_receive_notification, on_receive_request,
};
use greenroom_testkit::scripted::pair;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::support::*;

/// A connection that was told how to end: two watchers of its end, and a request that waits.
struct Ended {
    watching: [JoinHandle<ConnectionTermination>; 2],
    waiting: JoinHandle<Result<Value>>,
    connection: ConnectionTo<Agent>,
}

/// Watches a connection from outside of it.
fn watch(cx: &ConnectionTo<Agent>) -> Ended {
    let watch = || {
        let cx = cx.clone();
        tokio::spawn(async move { cx.terminated().await })
    };
    let waiting = cx.send_request(message("_ask")).block_task();
    Ended { watching: [watch(), watch()], waiting: tokio::spawn(waiting), connection: cx.clone() }
}

impl Ended {
    async fn expect(self, is_expected: impl Fn(&ConnectionTermination) -> bool, kind: &str) {
        for watching in self.watching {
            let termination = soon(watching).await.expect("no panic");
            assert!(is_expected(&termination), "{kind}: {termination:?}");
        }
        // Asked later, it is the same end.
        assert!(is_expected(&soon(self.connection.terminated()).await));
        assert!(is_expected(&self.connection.termination().expect("it is over")));
        let error = soon(self.waiting).await.expect("no panic").expect_err("nobody answered");
        if kind == "incoming_closed" {
            return assert!(is_incoming_transport_closed(&error), "{error:?}");
        }
        let data = error.data.clone().expect("data");
        assert!(is_connection_terminated(&error), "{error:?}");
        assert_eq!(data["reason"], CONNECTION_TERMINATED_REASON);
        assert_eq!((&data["termination"], &data["method"]), (&json!(kind), &json!("_ask")));
    }
}

async fn forever(_cx: ConnectionTo<Agent>) -> Result<()> {
    std::future::pending().await
}

#[tokio::test(start_paused = true)]
async fn statement_63_every_connection_has_one_end_and_its_requests_name_it() {
    // The peer closed its side.
    let (mut peer, link) = pair(ROOM);
    let (tell, told) = oneshot::channel();
    let client = Client.builder().with_spawned(async |cx: ConnectionTo<Agent>| {
        let _ = tell.send(watch(&cx));
        Ok(())
    });
    let serving = tokio::spawn(client.connect_to(link));
    let ended = told.await.expect("watched");
    peer.close().await;
    soon(serving).await.expect("no panic").expect("a clean end");
    ended.expect(|end| matches!(end, ConnectionTermination::IncomingClosed), "incoming_closed").await;

    // The foreground was done.
    let (_peer, link) = pair(ROOM);
    let ended = soon(Client.builder().connect_with(link, async |cx: ConnectionTo<Agent>| Ok(watch(&cx)))).await;
    let is_expected = |end: &ConnectionTermination| matches!(end, ConnectionTermination::LocalShutdown);
    ended.expect("a clean end").expect(is_expected, "local_shutdown").await;

    // The foreground failed.
    let (_peer, link) = pair(ROOM);
    let (tell, told) = oneshot::channel();
    let run = Client.builder().connect_with(link, async |cx: ConnectionTo<Agent>| {
        let _ = tell.send(watch(&cx));
        Result::<()>::Err(Error::invalid_params().data("mine"))
    });
    assert_eq!(soon(run).await.unwrap_err().data, Some(json!("mine")));
    let is_expected = |end: &ConnectionTermination| matches!(end, ConnectionTermination::ForegroundError(error) if error.data == Some(json!("mine")));
    told.await.expect("watched").expect(is_expected, "foreground_error").await;

    // The transport broke.
    let (link, break_it) = breakable();
    let (tell, told) = oneshot::channel();
    let run = Client.builder().connect_with(link, async |cx: ConnectionTo<Agent>| {
        let _ = tell.send(watch(&cx));
        break_it.send(()).expect("a reader");
        forever(cx).await
    });
    assert!(soon(run).await.unwrap_err().to_string().contains("the cable was cut"));
    let is_expected = |end: &ConnectionTermination| matches!(end, ConnectionTermination::TransportError(_));
    told.await.expect("watched").expect(is_expected, "transport_error").await;

    // A runner failed.
    let (_peer, link) = pair(ROOM);
    let (tell, told) = oneshot::channel();
    let client = Client.builder().with_spawned(async |cx: ConnectionTo<Agent>| {
        let _ = tell.send(watch(&cx));
        Err(Error::invalid_params().data("mine"))
    });
    assert_eq!(soon(client.connect_with(link, forever)).await.unwrap_err().data, Some(json!("mine")));
    let is_expected = |end: &ConnectionTermination| matches!(end, ConnectionTermination::HandlerError(error) if error.data == Some(json!("mine")));
    told.await.expect("watched").expect(is_expected, "handler_error").await;

    // The whole was dropped.
    let (_peer, link) = pair(ROOM);
    let (tell, told) = oneshot::channel();
    let run = tokio::spawn(Client.builder().connect_with(link, async |cx: ConnectionTo<Agent>| {
        let _ = tell.send(watch(&cx));
        forever(cx).await
    }));
    let ended = told.await.expect("watched");
    run.abort();
    ended.expect(|end| matches!(end, ConnectionTermination::Dropped), "dropped").await;
}

#[tokio::test(start_paused = true)]
async fn statement_64_a_broken_transport_is_an_error_of_the_future_that_drives_it() {
    // A connection of its own.
    let (link, break_it) = breakable();
    let run = tokio::spawn(Agent.builder().connect_to(link));
    break_it.send(()).expect("a reader");
    let error = soon(run).await.expect("no panic").expect_err("it broke");
    assert!(error.to_string().contains("the cable was cut"), "{error}");

    // The low-level boundary: the channel ends, the driver says why.
    let (link, break_it) = breakable();
    let (mut channel, driver) = DynConnectTo::<Client>::new(link).into_channel_and_future();
    let driver = tokio::spawn(driver.expect("it owns work"));
    break_it.send(()).expect("a reader");
    use futures_util::StreamExt as _;
    assert!(soon(channel.rx.next()).await.is_none(), "an I/O error is no item");
    let error = soon(driver).await.expect("no panic").expect_err("it broke");
    assert!(error.to_string().contains("the cable was cut"), "{error}");

    // A bridge.
    let (link, break_it) = breakable();
    let (_far, near) = Channel::duplex();
    let bridge = tokio::spawn(ConnectTo::<Client>::connect_to(near, link));
    break_it.send(()).expect("a reader");
    let error = soon(bridge).await.expect("no panic").expect_err("it broke");
    assert!(error.to_string().contains("the cable was cut"), "{error}");
}

/// Runs a client whose ordered callback fails, or panics, and says what became of the connection.
async fn failing_callback(end_on_failure: bool, panics: bool) -> Result<&'static str> {
    let (mut peer, link) = pair(ROOM);
    let builder = Client.builder();
    let builder = if end_on_failure { builder.end_on_failure() } else { builder };
    soon(builder.connect_with(link, async |cx: ConnectionTo<Agent>| {
        cx.prepare_request(message("_ask")).on_receiving_result(async move |_: Result<Value>| {
            if panics { panic!("expected by the test") } else { Err(Error::invalid_params().data("mine")) }
        })?;
        crate::support::answer(&mut peer, 1).await;
        if end_on_failure {
            return std::future::pending().await;
        }
        // The next answer is dispatched behind the callback.
        let next = cx.send_request(message("_next"));
        crate::support::answer(&mut peer, 2).await;
        next.block_task().await.map(|_| "goes on")
    }))
    .await
}

#[tokio::test(start_paused = true)]
async fn statement_65_a_failed_ordered_callback_ends_the_connection_where_that_is_wanted() {
    // Where that is not chosen, a failure harms only itself.
    for panics in [false, true] {
        assert_eq!(failing_callback(false, panics).await.expect("it lives"), "goes on");
    }
    let error = failing_callback(true, false).await.expect_err("it ends");
    assert_eq!((error.code, error.data), (ErrorCode::InvalidParams, Some(json!("mine"))));
    failing_callback(true, true).await.expect_err("it ends");
}

#[tokio::test(start_paused = true)]
async fn statement_66_a_failed_handler_answers_its_request_and_keeps_the_connection() {
    let agent = Agent
        .builder()
        .on_receive_request(
            async |request: UntypedMessage, responder: Responder<Value>, _cx| match request.method.as_str() {
                "_fail" => Err(Error::invalid_params().data("mine")),
                _ => responder.respond(json!("fine")),
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async |_: UntypedMessage, _cx| Result::<()>::Err(Error::internal_error().data("only logged")),
            on_receive_notification!(),
        );
    let (mut peer, serving) = serve(agent);
    peer.send(&request(1, "_fail")).await;
    let answer = peer.receive().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32602)));
    assert_eq!(answer["error"]["data"], "mine");
    peer.send(&note("_fail")).await;
    peer.send(&request(2, "_ask")).await;
    peer.expect(result(2, "fine")).await;
    finish(peer, serving).await;

    // A handler that looks at a response: its error is what the caller gets.
    let (mut peer, link) = pair(ROOM);
    let client = Client.builder().on_receive_dispatch(
        async |dispatch: Dispatch, _cx: ConnectionTo<Agent>| match dispatch {
            Dispatch::Response(..) => Err(Error::invalid_params().data("mine")),
            other => Ok(Handled::No { message: other, retry: false }),
        },
        on_receive_dispatch!(),
    );
    let run = client.connect_with(link, async |cx: ConnectionTo<Agent>| {
        for _ in 0..2 {
            let sent = cx.send_request(message("_ask"));
            crate::support::answer(&mut peer, 1).await;
            let error = soon(sent.block_task()).await.expect_err("the handler's");
            assert_eq!((error.code, error.data), (ErrorCode::InvalidParams, Some(json!("mine"))));
        }
        Ok(())
    });
    soon(run).await.expect("the script");
}
