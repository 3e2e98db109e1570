//! What fails harms only itself; a builder option ends the connection instead.

use greenroom::{
    Agent, Batches, Client, ConnectTo, ConnectionOptions, ConnectionTo, Error, Responder, ResponderDropPolicy, Result,
    UntypedMessage, on_receive_request,
};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::sync::oneshot;

fn message(method: &str) -> UntypedMessage {
    UntypedMessage::new(method, json!({})).expect("JSON")
}

/// What breaks beside the handlers.
#[derive(Clone, Copy, Debug)]
enum What {
    CallbackFails,
    CallbackPanics,
    TaskFails,
    TaskPanics,
}

/// Breaks it on request `break`; the request goes along and is dropped by what breaks.
fn agent(what: What, ends: bool) -> impl ConnectTo<Client> {
    let builder = Agent.builder();
    let builder = if ends { builder.end_on_failure() } else { builder };
    builder.on_receive_request(
        async move |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
            if request.method != "break" {
                return responder.respond(json!("fine"));
            }
            let broken = |panics: bool| {
                if panics {
                    panic!("expected by the test");
                }
                Err(Error::internal_error().data("broken"))
            };
            match what {
                What::CallbackFails | What::CallbackPanics => {
                    cx.prepare_request(message("ours")).on_receiving_result(async move |_| {
                        let _responder = responder;
                        broken(matches!(what, What::CallbackPanics))
                    })
                }
                What::TaskFails | What::TaskPanics => cx.spawn(async move {
                    let _responder = responder;
                    broken(matches!(what, What::TaskPanics))
                }),
            }
        },
        on_receive_request!(),
    )
}

async fn break_it(peer: &mut Local, what: What) {
    peer.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "break" })).await;
    if let What::CallbackFails | What::CallbackPanics = what {
        let asked = peer.receive().await;
        peer.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": 1 })).await;
    }
    let answer = peer.receive().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)), "{what:?}");
    assert!(!answer.to_string().contains("expected by"), "the text of a panic stays here: {answer}");
}

const EVERYTHING: [What; 4] = [What::CallbackFails, What::CallbackPanics, What::TaskFails, What::TaskPanics];

#[tokio::test]
async fn a_failure_harms_only_its_own_request() {
    for what in EVERYTHING {
        let (mut peer, link) = pair(64 * 1024);
        let ours = tokio::spawn(agent(what, false).connect_to(link));
        break_it(&mut peer, what).await;
        peer.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "next" })).await;
        peer.expect(json!({ "jsonrpc": "2.0", "id": 2, "result": "fine" })).await;
        peer.close().await;
        ours.await.expect("no panic").expect("a clean end");
    }
}

#[tokio::test]
async fn the_option_ends_the_connection_with_the_error() {
    for what in EVERYTHING {
        let (mut peer, link) = pair(64 * 1024);
        let ours = tokio::spawn(agent(what, true).connect_to(link));
        break_it(&mut peer, what).await;
        let error = ours.await.expect("no panic").expect_err("the failure ends the connection");
        if let What::CallbackFails | What::TaskFails = what {
            assert_eq!(error.data, Some(json!("broken")), "{what:?}");
        }
    }
}

/// Drops the responder of every request.
fn forgetful(policy: ResponderDropPolicy) -> impl ConnectTo<Client> {
    let mut options = ConnectionOptions::default();
    options.dropped_responder = policy;
    Agent.builder().options(options).on_receive_request(
        async |request: UntypedMessage, responder: Responder<Value>, _cx| {
            if request.method == "answer" {
                return responder.respond(json!("yes"));
            }
            Ok(())
        },
        on_receive_request!(),
    )
}

#[tokio::test]
async fn a_dropped_responder_is_silent_only_if_that_is_asked_for() {
    let (mut peer, link) = pair(64 * 1024);
    tokio::spawn(forgetful(ResponderDropPolicy::Answer).connect_to(link));
    peer.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "forget" })).await;
    assert_eq!(peer.receive().await["error"]["code"], -32603);

    let (mut peer, link) = pair(64 * 1024);
    let ours = tokio::spawn(forgetful(ResponderDropPolicy::Silent).connect_to(link));
    peer.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "forget" })).await;
    peer.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "answer" })).await;
    peer.expect(json!({ "jsonrpc": "2.0", "id": 2, "result": "yes" })).await;
    // The others of a batch wait for it, so there it is answered.
    let entry = |id: i64, method: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method });
    peer.send(&json!([entry(3, "forget"), entry(4, "answer")])).await;
    let array = peer.receive().await;
    assert_eq!((&array[0]["error"]["code"], &array[1]["result"]), (&json!(-32603), &json!("yes")));
    // And nobody waits for it at the end.
    peer.close().await;
    peer.expect_end().await;
    ours.await.expect("no panic").expect("a clean end");
}

async fn refused(peer: &mut Local) {
    let entry = json!({ "jsonrpc": "2.0", "id": 1, "method": "answer" });
    for batch in [json!([entry, entry]), json!([{ "jsonrpc": "2.0", "method": "note" }])] {
        peer.send(&batch).await;
        let answer = peer.receive().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32600)), "{answer}");
    }
    peer.send(&entry).await;
    peer.expect(json!({ "jsonrpc": "2.0", "id": 1, "result": "fine" })).await;
}

#[tokio::test]
async fn batches_are_refused_as_a_whole_where_the_switch_says_so() {
    let plain = || {
        Agent.builder().on_receive_request(
            async |_: UntypedMessage, responder: Responder<Value>, _cx| responder.respond(json!("fine")),
            on_receive_request!(),
        )
    };
    // On the builder.
    let (mut peer, link) = pair(64 * 1024);
    tokio::spawn(plain().batches(Batches::Reject).connect_to(link));
    refused(&mut peer).await;
    // On the transport, in front of an endpoint and in front of a relay.
    let (mut peer, link) = pair(64 * 1024);
    tokio::spawn(plain().connect_to(link.with_batches(Batches::Reject)));
    refused(&mut peer).await;
    let (mut peer, link) = pair(64 * 1024);
    let chain = greenroom_conductor::ConductorImpl::new_agent("chain", greenroom_conductor::AgentOnly(plain()));
    let (done, end) = oneshot::channel::<Result<()>>();
    tokio::spawn(async move { done.send(chain.run(link.with_batches(Batches::Reject)).await) });
    peer.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": 1 } })).await;
    assert_eq!(peer.receive().await["id"], 0);
    refused(&mut peer).await;
    drop(end);
}
