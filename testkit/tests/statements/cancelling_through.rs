//! Statements 20 to 26: a cancellation passes from hop to hop.

use std::future::{Ready, ready};

use greenroom::{
    Agent, Client, Conductor, ConnectTo, ConnectionTo, Dispatch, DynConnectTo, Proxy, Responder, Result,
    UntypedMessage, on_receive_notification, on_receive_request,
};
use greenroom_conductor::{ConductorImpl, ProxiesAndAgent, ProxyDialect, RunningChain};
use greenroom_testkit::pass_through;
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::*;

/// What a proxy does with a request that it passes on.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Forwarding {
    /// `forward_response_to` of a prepared, or of a sent request.
    Prepared,
    Eager,
    /// A callback, with `forward_cancellation_from` on a prepared, or on a sent request.
    CustomPrepared,
    CustomEager,
    /// A callback and nothing else.
    Absorbing,
}

/// A proxy that passes every request of the client on in this way, when the test lets it.
fn forwarding(how: Forwarding, mut go: mpsc::UnboundedReceiver<()>) -> impl ConnectTo<Conductor> {
    Proxy.builder().on_receive_request_from(
        Client,
        async move |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Conductor>| {
            go.recv().await;
            let marker = responder.cancellation();
            match how {
                Forwarding::Prepared => cx.prepare_request_to(Agent, request).forward_response_to(responder),
                Forwarding::Eager => cx.send_request_to(Agent, request).forward_response_to(responder),
                Forwarding::CustomPrepared => cx
                    .prepare_request_to(Agent, request)
                    .forward_cancellation_from(marker)
                    .on_receiving_result(pass_back(responder)),
                Forwarding::CustomEager => cx
                    .send_request_to(Agent, request)
                    .forward_cancellation_from(marker)
                    .on_receiving_result(pass_back(responder)),
                Forwarding::Absorbing => {
                    cx.prepare_request_to(Agent, request).on_receiving_result(pass_back(responder))
                }
            }
        },
        on_receive_request!(),
    )
}

fn pass_back(responder: Responder<Value>) -> impl FnOnce(Result<Value>) -> Ready<Result<()>> + Send {
    move |outcome| ready(responder.respond_with_result(outcome))
}

/// A scripted conductor below which such a proxy runs, and what lets the proxy pass a request on.
fn below_conductor(how: Forwarding) -> (Local, mpsc::UnboundedSender<()>) {
    let (conductor, link) = pair(ROOM);
    let (let_go, go) = mpsc::unbounded_channel();
    tokio::spawn(forwarding(how, go).connect_to(link));
    (conductor, let_go)
}

/// The client's request is cancelled before the proxy passes it on, or afterwards. What the proxy
/// sends to the successor is one cancel with the id that the request has there.
async fn propagates(how: Forwarding) {
    for early in [false, true] {
        let (mut conductor, go) = below_conductor(how);
        conductor.send(&request("up", "_ask")).await;
        let cancelled = async |conductor: &mut Local| {
            conductor.send(&cancel("up")).await;
            settled().await;
        };
        if early {
            cancelled(&mut conductor).await;
        }
        go.send(()).expect("a proxy");
        let down = conductor.receive().await;
        assert_eq!((&down["method"], &down["params"]["method"]), (&json!("_proxy/successor"), &json!("_ask")));
        if !early {
            cancelled(&mut conductor).await;
        }
        // A second wish changes nothing.
        conductor.send(&cancel("up")).await;
        let expected = wrapped(note(""), CANCEL, json!({ "requestId": down["id"] }));
        assert_eq!(soon(conductor.receive()).await, expected, "{how:?}, early: {early}");
        // The answer of the successor is still what the client gets.
        conductor.send(&result(down["id"].clone(), "the answer")).await;
        conductor.expect(result("up", "the answer")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn statement_20_forward_response_to_passes_the_cancellation_on_once() {
    propagates(Forwarding::Prepared).await;
    propagates(Forwarding::Eager).await;
}

#[tokio::test(start_paused = true)]
async fn statement_21_forward_cancellation_from_does_the_same_and_without_it_nothing_passes() {
    propagates(Forwarding::CustomPrepared).await;
    propagates(Forwarding::CustomEager).await;
    let (mut conductor, go) = below_conductor(Forwarding::Absorbing);
    conductor.send(&request("up", "_ask")).await;
    go.send(()).expect("a proxy");
    let down = conductor.receive().await;
    conductor.send(&cancel("up")).await;
    conductor.send(&result(down["id"].clone(), "the answer")).await;
    conductor.expect(result("up", "the answer")).await;
}

/// A chain between two scripted ends, initialised.
async fn chain(proxies: usize) -> (Local, Local, RunningChain) {
    let (client, outer) = pair(ROOM);
    let (agent, inner) = pair(ROOM);
    let components = ProxiesAndAgent::new(inner).proxies((0..proxies).map(|_| pass_through()));
    let conductor = ConductorImpl::new_agent("statements", components).dialects(vec![ProxyDialect::Legacy; proxies]);
    let chain = conductor.start(outer).await.expect("a chain");
    (client, agent, chain)
}

const INITIALIZE: &str = "initialize";

fn version() -> Value {
    json!({ "protocolVersion": 1 })
}

async fn initialized(proxies: usize) -> (Local, Local, RunningChain) {
    let (mut client, mut agent, chain) = chain(proxies).await;
    client.send(&request_with(0, INITIALIZE, version())).await;
    assert_eq!(answer(&mut agent, version()).await["method"], INITIALIZE);
    client.expect(result(0, version())).await;
    (client, agent, chain)
}

#[tokio::test(start_paused = true)]
async fn statement_22_forwarding_never_tunnels_a_cancel() {
    for proxies in [0, 2] {
        let (mut client, mut agent, _chain) = initialized(proxies).await;
        for bad in [cancel(77), cancel("x"), note(CANCEL), wrapped(note(""), CANCEL, json!({ "requestId": 77 }))] {
            client.send(&bad).await;
            agent.send(&bad).await;
        }
        client.send(&note("_marker")).await;
        agent.send(&note("_marker")).await;
        soon(agent.expect(note("_marker"))).await;
        soon(client.expect(note("_marker"))).await;
    }
    // A proxy alone, in both forms: what it does by itself, and with the method for it.
    let by_hand = Proxy
        .builder()
        .on_receive_notification_from(
            Client,
            async |note: UntypedMessage, cx: ConnectionTo<Conductor>| {
                cx.send_proxied_message_to(Agent, Dispatch::<UntypedMessage, _>::Notification(note))
            },
            on_receive_notification!(),
        )
        .on_receive_notification_from(
            Agent,
            async |note: UntypedMessage, cx: ConnectionTo<Conductor>| {
                cx.send_proxied_message_to(Client, Dispatch::<UntypedMessage, _>::Notification(note))
            },
            on_receive_notification!(),
        );
    for proxy in [DynConnectTo::<Conductor>::new(pass_through()), DynConnectTo::new(by_hand)] {
        let (mut conductor, link) = pair(ROOM);
        tokio::spawn(proxy.connect_to(link));
        conductor.send(&cancel(77)).await;
        conductor.send(&wrapped(note(""), CANCEL, json!({ "requestId": 77 }))).await;
        conductor.send(&note("_marker")).await;
        soon(conductor.expect(wrapped(note(""), "_marker", Value::Null))).await;
    }
}

#[tokio::test(start_paused = true)]
async fn statement_23_every_hop_sees_one_cancel_with_its_own_id() {
    for proxies in [0, 1, 3] {
        let (mut client, mut agent, _chain) = initialized(proxies).await;
        cancelled_once(&mut client, &mut agent).await;
        cancelled_once(&mut agent, &mut client).await;
    }
}

async fn cancelled_once(asking: &mut Local, asked: &mut Local) {
    // Another request before it, so that the ids of the ends are not alike.
    asking.send(&request("other", "_other")).await;
    asked.receive().await;
    asking.send(&request("mine", "_ask")).await;
    let id = soon(asked.receive()).await["id"].clone();
    assert_ne!(id, "mine");
    asking.send(&cancel("mine")).await;
    asking.send(&cancel("mine")).await;
    asking.send(&note("_marker")).await;
    soon(asked.expect(cancel(id.clone()))).await;
    soon(asked.expect(note("_marker"))).await;
    asked.send(&refusal(id, -32800)).await;
    assert_eq!(soon(asking.receive()).await, refusal("mine", -32800));
}

#[tokio::test(start_paused = true)]
async fn statement_24_the_cancel_of_a_wrapped_request_is_wrapped_in_the_older_dialect() {
    // Newer peers send it plain (spec §1 and §3.4 X2, X3): each hop gets the form that its dialect
    // has, and both forms are understood.
    for (dialect, envelope) in [("_proxy", "_proxy/successor"), ("proxy", "proxy/successor")] {
        let (mut conductor, go) = below_conductor(Forwarding::Prepared);
        drop(go);
        // The first thing that the peer says in a dialect decides.
        let mut hello = request_with(1, &format!("{dialect}/initialize"), version());
        conductor.send(&hello).await;
        hello = conductor.receive().await;
        assert_eq!(hello["method"], envelope);
        conductor.send(&result(hello["id"].clone(), version())).await;
        conductor.receive().await;
        conductor.send(&request("up", "_ask")).await;
        let down = conductor.receive().await;
        conductor.send(&cancel("up")).await;
        let expected = match dialect {
            "_proxy" => wrapped(note(""), CANCEL, json!({ "requestId": down["id"] })),
            _ => cancel(down["id"].clone()),
        };
        conductor.expect(expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn statement_25_initialize_and_new_sessions_can_be_cancelled_through_a_chain() {
    for proxies in [0, 1, 2] {
        let (mut client, mut agent, _chain) = chain(proxies).await;
        for (method, params) in [(INITIALIZE, version()), ("session/new", json!({ "cwd": "/", "mcpServers": [] }))] {
            client.send(&request_with("mine", method, params.clone())).await;
            let passed = soon(agent.receive()).await;
            assert_eq!((&passed["method"], &passed["params"]), (&json!(method), &params));
            client.send(&cancel("mine")).await;
            soon(agent.expect(cancel(passed["id"].clone()))).await;
            // Whatever comes of it is the answer.
            agent.send(&refusal(passed["id"].clone(), -32800)).await;
            assert_eq!(soon(client.receive()).await, refusal("mine", -32800));
            if method == INITIALIZE {
                client.send(&request_with("again", method, version())).await;
                answer(&mut agent, version()).await;
                soon(client.expect(result("again", version()))).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn statement_26_a_wrapped_cancel_cancels_a_wrapped_request_of_its_connection() {
    let (log, mut said) = log();
    let proxy = Proxy.builder().on_receive_request_from(
        Agent,
        async move |_: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Conductor>| {
            let log = log.clone();
            cx.spawn(async move {
                responder.cancellation().cancelled().await;
                log.say("cancelled");
                responder.respond(json!("stopped"))
            })
        },
        on_receive_request!(),
    );
    let (mut conductor, link) = pair(ROOM);
    tokio::spawn(proxy.connect_to(link));
    for form in ["wrapped", "plain"] {
        conductor.send(&wrapped(request(form, ""), "_ask", json!({}))).await;
        if form == "wrapped" {
            conductor.send(&wrapped(note(""), CANCEL, json!({ "requestId": form }))).await;
        } else {
            conductor.send(&cancel(form)).await;
        }
        said.expect("cancelled").await;
        soon(conductor.expect(result(form, "stopped"))).await;
    }
}
