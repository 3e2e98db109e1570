//! "Request Cancellation".

use agent_client_protocol::{
    Agent, Client, Conductor, ConnectionTo, Error, ErrorCode, Handled, Proxy, Responder, Result, UntypedMessage,
    on_receive_request,
};
use greenroom_conductor::{ConductorImpl, ProxiesAndAgent};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};

fn waiting_agent() -> impl agent_client_protocol::ConnectTo<Client> {
    Agent.builder().on_receive_request(
        async |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| match request
            .method
            .as_str()
        {
            "ignores" | "initialize" => responder.respond(json!({ "protocolVersion": 1 })),
            "partial" => cx.spawn(async move {
                responder.cancellation().cancelled().await;
                responder.respond(json!("what there was"))
            }),
            _ => cx.spawn(async move {
                let marker = responder.cancellation();
                responder.respond_with_result(marker.run_until_cancelled(std::future::pending()).await)
            }),
        },
        on_receive_request!(),
    )
}

fn serve() -> Local {
    let (peer, link) = pair(4096);
    tokio::spawn(agent_client_protocol::ConnectTo::connect_to(waiting_agent(), link));
    peer
}

fn request(id: &Value, method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} })
}

/// The notification as it stands in the chapter, for ids of all kinds.
#[tokio::test]
async fn the_notification_cancels_one_request() {
    let mut peer = serve();
    for id in [json!("70b9f1c9-c2a3-4bd2-b6b9-65a06d96b675"), json!(7), Value::Null] {
        peer.send(&request(&id, "waits")).await;
        peer.send(&json!({
            "jsonrpc": "2.0",
            "method": "$/cancel_request",
            "params": {
                "requestId": id
            }
        }))
        .await;
        let answer = peer.receive().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32800)), "{answer}");
    }
}

/// Cooperative: the peer may ignore it, or finish with what it has; unknown and malformed ones are
/// ignored without a reply.
#[tokio::test]
async fn cancellation_is_cooperative() {
    let mut peer = serve();
    let cancel = |id: Value| json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": id } });
    peer.send(&request(&json!(1), "ignores")).await;
    peer.send(&cancel(json!(1))).await;
    assert_eq!(peer.receive().await["result"], json!({ "protocolVersion": 1 }));
    peer.send(&request(&json!(2), "partial")).await;
    for ignored in [json!(99), json!({ "a": 1 }), json!([2]), json!(true)] {
        peer.send(&cancel(ignored)).await;
    }
    peer.send(&cancel(json!(2))).await;
    peer.expect(json!({ "jsonrpc": "2.0", "id": 2, "result": "what there was" })).await;
}

#[tokio::test]
async fn sent_requests_are_cancelled_by_hand_by_handle_and_by_dropping() {
    let ask = |cx: &ConnectionTo<Agent>| cx.send_request(UntypedMessage::new("waits", json!({})).expect("params"));
    Client
        .connect_with(waiting_agent(), async |cx| {
            let sent = ask(&cx);
            sent.cancel()?;
            assert_eq!(sent.block_task().await.expect_err("cancelled").code, ErrorCode::RequestCancelled);
            let sent = ask(&cx);
            let handle = sent.cancellation_handle();
            let again = handle.clone();
            let answer = sent.block_task();
            handle.cancel()?;
            again.cancel()?;
            assert_eq!(answer.await.expect_err("cancelled").code, ErrorCode::RequestCancelled);
            again.cancel()?; // After the response: does nothing.
            drop(ask(&cx)); // Asks the peer to cancel it.
            ask(&cx).detach(); // Runs on.
            Ok(())
        })
        .await
        .expect("a conversation");
}

/// Hop by hop: a proxy that forwards re-issues the cancellation with its own id.
#[tokio::test]
async fn cancellation_propagates_through_a_chain() {
    let proxy = || {
        Proxy.builder().on_receive_request_from(
            Client,
            async |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Conductor>| {
                if request.method.ends_with("initialize") {
                    return Ok(Handled::No { message: (request, responder), retry: false });
                }
                cx.send_request_to(Agent, request).forward_response_to(responder)?;
                Ok(Handled::Yes)
            },
            on_receive_request!(),
        )
    };
    let chain = ProxiesAndAgent::new(waiting_agent()).proxy(proxy()).proxy(proxy());
    let error = Client
        .connect_with(ConductorImpl::new_agent("chain", chain), async |cx| {
            let initialize = UntypedMessage::new("initialize", json!({ "protocolVersion": 1 }))?;
            cx.send_request(initialize).block_task().await?;
            let sent = cx.send_request(UntypedMessage::new("waits", json!({}))?);
            let handle = sent.cancellation_handle();
            let answer = sent.block_task();
            handle.cancel()?;
            Ok(answer.await)
        })
        .await
        .expect("a conversation")
        .expect_err("cancelled");
    assert_eq!(error.code, ErrorCode::RequestCancelled);
}

/// Custom logic between the hops: the request's marker is the decision point.
#[tokio::test]
async fn a_forwarded_request_follows_the_marker_of_its_origin() {
    let proxy = Proxy.builder().on_receive_request_from(
        Client,
        async |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Conductor>| {
            if request.method.ends_with("initialize") {
                return Ok(Handled::No { message: (request, responder), retry: false });
            }
            let marker = responder.cancellation();
            cx.send_request_to(Agent, request).forward_cancellation_from(marker).on_receiving_result(
                async move |result: Result<Value>| {
                    let changed = result.map_err(|error| Error::new(error.code.into(), "cancelled behind the proxy"));
                    responder.respond_with_result(changed)
                },
            )?;
            Ok(Handled::Yes)
        },
        on_receive_request!(),
    );
    let chain = ProxiesAndAgent::new(waiting_agent()).proxy(proxy);
    let error = Client
        .connect_with(ConductorImpl::new_agent("chain", chain), async |cx| {
            let initialize = UntypedMessage::new("initialize", json!({ "protocolVersion": 1 }))?;
            cx.send_request(initialize).block_task().await?;
            let sent = cx.send_request(UntypedMessage::new("waits", json!({}))?);
            sent.cancel()?;
            Ok(sent.block_task().await)
        })
        .await
        .expect("a conversation")
        .expect_err("cancelled");
    assert_eq!(error.message, "cancelled behind the proxy");
}
