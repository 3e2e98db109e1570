//! Statements 67 to 74: handlers and ordered callbacks run one at a time, in the order of the wire.

use std::sync::Arc;

use greenroom::{
    Agent, Client, Conductor, ConnectionTo, Dispatch, HandleDispatchFrom, Handled, Proxy, Responder, ResponseRouter,
    Result, UntypedMessage, on_receive_dispatch, on_receive_notification, on_receive_request,
};
use greenroom_testkit::scripted::{Local, pair};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn statement_67_a_handler_finishes_before_the_next_message_is_dispatched() {
    let (log, mut said) = log();
    let (requests, notes) = (log.clone(), log);
    let agent = Agent
        .builder()
        .on_receive_request(
            async move |request: UntypedMessage, responder: Responder<Value>, _cx| {
                requests.say(format!("{} begins", request.method));
                settled().await;
                requests.say(format!("{} ends", request.method));
                responder.respond(Value::Null)
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, _cx| {
                notes.say(format!("{} begins", note.method));
                settled().await;
                notes.say(format!("{} ends", note.method));
                Ok(())
            },
            on_receive_notification!(),
        );
    let (mut peer, serving) = serve(agent);
    peer.send(&note("_a")).await;
    peer.send(&request(1, "_b")).await;
    peer.send(&request(2, "_c")).await;
    peer.send(&note("_d")).await;
    for name in ["_a", "_b", "_c", "_d"] {
        said.expect(&format!("{name} begins")).await;
        said.expect(&format!("{name} ends")).await;
    }
    peer.expect(result(1, Value::Null)).await;
    peer.expect(result(2, Value::Null)).await;
    finish(peer, serving).await;
}

/// Takes notifications of one method and says so; says of all others that it saw them.
struct Takes(&'static str, &'static str, Log);

impl HandleDispatchFrom<Conductor> for Takes {
    async fn handle_dispatch_from(
        &mut self,
        message: Dispatch,
        _cx: ConnectionTo<Conductor>,
    ) -> Result<Handled<Dispatch>> {
        let takes = message.method() == self.1;
        self.2.say(format!("{} {}", self.0, if takes { "takes" } else { "passes" }));
        Ok(if takes { Handled::Yes } else { Handled::No { message, retry: false } })
    }
}

#[tokio::test(start_paused = true)]
async fn statement_68_registered_handlers_then_dynamic_ones_then_the_role() {
    let (log, mut said) = log();
    let (mut conductor, link) = pair(ROOM);
    let proxy = Proxy.builder().with_handler(Takes("first", "_one", log.clone())).with_handler(Takes(
        "second",
        "_two",
        log.clone(),
    ));
    tokio::spawn(proxy.connect_with(link, async move |cx: ConnectionTo<Conductor>| {
        let _dynamic = [
            cx.add_dynamic_handler(Takes("third", "_three", log.clone()))?,
            cx.add_dynamic_handler(Takes("fourth", "_two", log))?,
        ];
        std::future::pending::<Result<()>>().await
    }));
    settled().await;
    let passes = ["first passes", "second passes", "third passes", "fourth passes"];
    for (method, expected) in [
        ("_one", &["first takes"][..]),
        ("_two", &["first passes", "second takes"]),
        ("_three", &["first passes", "second passes", "third takes"]),
        ("_four", &passes),
    ] {
        conductor.send(&note(method)).await;
        for entry in expected {
            said.expect(entry).await;
        }
        settled().await;
        assert_eq!(said.so_far(), Vec::<String>::new());
    }
    // The role of the peer: a proxy passes on what nobody took.
    soon(conductor.expect(wrapped(note(""), "_four", Value::Null))).await;
}

#[tokio::test(start_paused = true)]
async fn statement_69_spawned_tasks_run_beside_dispatch() {
    let arrived = Arc::new(Notify::new());
    let arrives = arrived.clone();
    let agent = Agent
        .builder()
        .on_receive_request(
            async move |_: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
                let arrived = arrived.clone();
                // Waits for something that is dispatched later.
                cx.spawn(async move {
                    arrived.notified().await;
                    responder.respond(json!("seen"))
                })
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |_: UntypedMessage, _cx| {
                arrives.notify_one();
                Ok(())
            },
            on_receive_notification!(),
        );
    let (mut peer, serving) = serve(agent);
    peer.send(&request(1, "_ask")).await;
    peer.send(&note("_later")).await;
    soon(peer.expect(result(1, "seen"))).await;
    finish(peer, serving).await;
}

/// A client that says which notifications are dispatched.
async fn as_noting_client(main: impl AsyncFnOnce(ConnectionTo<Agent>, &mut Local, Log, LogReader) -> Result<()>) {
    let (log, said) = log();
    let notes = log.clone();
    let (mut peer, link) = pair(ROOM);
    let client = Client.builder().on_receive_notification(
        async move |note: UntypedMessage, _cx: ConnectionTo<Agent>| {
            notes.say(note.method);
            Ok(())
        },
        on_receive_notification!(),
    );
    soon(client.connect_with(link, async |cx| main(cx, &mut peer, log, said).await)).await.expect("the script");
}

/// Registers an ordered callback in each of the documented ways. It says when it begins, and when
/// it ends, which is when it is let go.
async fn ordered(prepared: bool) {
    for good in [true, false] {
        as_noting_client(async |cx, peer, log, mut said| {
            let (go, gone) = oneshot::channel::<()>();
            let callback = async move |outcome: Result<Value>| {
                log.say(format!("begins {}", outcome.is_ok()));
                gone.await.expect("the test goes on");
                log.say("ends");
                Ok(())
            };
            if prepared {
                cx.prepare_request(message("_ask")).on_receiving_result(callback)?;
            } else {
                cx.send_request(message("_ask")).on_receiving_result(callback)?;
            }
            let id = peer.receive().await["id"].clone();
            peer.send(&if good { result(id, 1) } else { refusal(id, -32000) }).await;
            peer.send(&note("_later")).await;
            said.expect(&format!("begins {good}")).await;
            settled().await;
            assert_eq!(said.so_far(), Vec::<String>::new(), "dispatch waits for the callback");
            go.send(()).expect("a callback");
            said.expect("ends").await;
            said.expect("_later").await;
            Ok(())
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn statement_70_a_callback_registered_in_time_holds_dispatch() {
    ordered(false).await;
    // `on_receiving_ok_result` is one as well.
    let (mut conductor, link) = pair(ROOM);
    let (log, mut said) = log();
    let (go, gone) = oneshot::channel::<()>();
    let (callbacks, notes, gone) = (log.clone(), log, Mutex::new(Some(gone)));
    let proxy = Proxy
        .builder()
        .on_receive_request_from(
            Client,
            async move |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Conductor>| {
                let (log, gone) = (callbacks.clone(), gone.lock().take().expect("one request"));
                cx.send_request_to(Agent, request).on_receiving_ok_result(responder, async move |value, responder| {
                    log.say("begins");
                    gone.await.expect("the test goes on");
                    log.say("ends");
                    responder.respond(value)
                })
            },
            on_receive_request!(),
        )
        .on_receive_notification_from(
            Agent,
            async move |note: UntypedMessage, _cx: ConnectionTo<Conductor>| {
                notes.say(note.method);
                Ok(())
            },
            on_receive_notification!(),
        );
    tokio::spawn(proxy.connect_to(link));
    conductor.send(&request("up", "_ask")).await;
    answer(&mut conductor, "value").await;
    conductor.send(&wrapped(note(""), "_later", json!({}))).await;
    said.expect("begins").await;
    settled().await;
    assert_eq!(said.so_far(), Vec::<String>::new(), "dispatch waits for the callback");
    go.send(()).expect("a callback");
    said.expect("ends").await;
    said.expect("_later").await;
    soon(conductor.expect(result("up", "value"))).await;
}

#[tokio::test(start_paused = true)]
async fn statement_71_a_prepared_request_has_its_callback_before_it_is_sent() {
    ordered(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statement_71_it_holds_from_any_task() {
    const ROUNDS: u64 = 200;
    as_noting_client(async |cx, peer, log, mut said| {
        // A task of its own that knows nothing of the connection's.
        let asking = tokio::spawn(async move {
            for _ in 0..ROUNDS {
                let log = log.clone();
                cx.prepare_request(message("_ask")).on_receiving_result(async move |_: Result<Value>| {
                    tokio::task::yield_now().await;
                    log.say("callback");
                    Ok(())
                })?;
            }
            Result::Ok(())
        });
        for _ in 0..ROUNDS {
            let id = peer.receive().await["id"].clone();
            // The answer and what comes after it, in one write.
            peer.write(format!("{}\n{}\n", result(id, 1), note("_later"))).await;
            said.expect("callback").await;
            said.expect("_later").await;
        }
        asking.await.expect("no panic")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statement_72_a_callback_that_comes_too_late_holds_nothing() {
    as_noting_client(async |cx, peer, log, mut said| {
        let eager = cx.send_request(message("_ask"));
        answer(peer, 1).await;
        settled().await;
        let (go, gone) = oneshot::channel::<()>();
        eager.on_receiving_result(async move |outcome| {
            log.say(format!("begins {}", outcome.is_ok()));
            gone.await.expect("the test goes on");
            log.say("ends");
            Ok(())
        })?;
        said.expect("begins true").await;
        peer.send(&note("_later")).await;
        said.expect("_later").await;
        go.send(()).expect("a callback");
        said.expect("ends").await;
        Ok(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn statement_73_failures_of_the_end_and_late_routing_hold_nothing() {
    // The end of the input: the close callback does not wait for the callback of a request.
    let (log, mut said) = log();
    let (closing, calling) = (log.clone(), log);
    let (mut peer, link) = pair(ROOM);
    let client = Client.builder().on_close(async move |_cx: ConnectionTo<Agent>| {
        closing.say("closed");
        Ok(())
    });
    let run = client.connect_with(link, async |cx: ConnectionTo<Agent>| {
        let (go, gone) = oneshot::channel::<()>();
        cx.prepare_request(message("_ask")).on_receiving_result(async move |_: Result<Value>| {
            gone.await.expect("the test goes on");
            calling.say("callback");
            Ok(())
        })?;
        peer.close().await;
        said.expect("closed").await;
        cx.incoming_closed().await;
        go.send(()).expect("a callback");
        said.expect("callback").await;
        Ok(())
    });
    soon(run).await.expect("the script");

    // A response that a handler keeps, and routes when its dispatch is long over.
    let (log, mut said) = crate::support::log();
    let (calling, kept) = (log.clone(), Arc::new(Mutex::new(None::<ResponseRouter>)));
    let keeps = kept.clone();
    let (mut peer, link) = pair(ROOM);
    let client = Client.builder().on_receive_dispatch(
        async move |dispatch: Dispatch, _cx: ConnectionTo<Agent>| {
            match dispatch {
                Dispatch::Response(_, router) => {
                    *keeps.lock() = Some(router);
                    log.say("kept");
                }
                other => log.say(other.method()),
            }
            Ok(Handled::Yes)
        },
        on_receive_dispatch!(),
    );
    let run = client.connect_with(link, async |cx: ConnectionTo<Agent>| {
        let (go, gone) = oneshot::channel::<()>();
        cx.prepare_request(message("_ask")).on_receiving_result(async move |outcome: Result<Value>| {
            calling.say(format!("begins {outcome:?}"));
            gone.await.expect("the test goes on");
            calling.say("ends");
            Ok(())
        })?;
        answer(&mut peer, 1).await;
        said.expect("kept").await;
        kept.lock().take().expect("a router").route(json!("mine"))?;
        said.expect("begins Ok(String(\"mine\"))").await;
        peer.send(&note("_later")).await;
        said.expect("_later").await;
        go.send(()).expect("a callback");
        said.expect("ends").await;
        Ok(())
    });
    soon(run).await.expect("the script");
}

#[tokio::test(start_paused = true)]
async fn statement_74_an_awaited_response_holds_nothing() {
    as_noting_client(async |cx, peer, _log, mut said| {
        let awaited = cx.send_request(message("_ask")).block_task();
        answer(peer, 1).await;
        peer.send(&note("_later")).await;
        // Nobody polls the future, and what comes after its answer is dispatched.
        said.expect("_later").await;
        assert_eq!(awaited.await?, 1);
        Ok(())
    })
    .await;
}
