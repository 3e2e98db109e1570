//! Matching messages by type: `MatchDispatch`, `MatchDispatchFrom`, `TypeNotification`.

use greenroom::util::{MatchDispatch, MatchDispatchFrom, TypeNotification};
use greenroom::{
    Agent, Client, Conductor, ConnectTo, ConnectionTo, Dispatch, Error, HandleDispatchFrom, Handled,
    JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, Proxy, Result, Role, UntypedMessage, on_receive_dispatch,
};
use greenroom_testkit::scripted::{Local, pair};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Clone, Debug, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "add", response = Sum)]
struct Add {
    left: i64,
    right: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonRpcResponse)]
struct Sum {
    sum: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonRpcNotification)]
#[notification(method = "tick")]
struct Tick {
    count: i64,
}

/// Answers `add` unless `left` is negative; fails on tick 13; passes the rest on.
struct Matching;

impl HandleDispatchFrom<Client> for Matching {
    async fn handle_dispatch_from(&mut self, message: Dispatch, cx: ConnectionTo<Client>) -> Result<Handled<Dispatch>> {
        MatchDispatch::new(message)
            .if_request(async |add: Add, responder| {
                if add.left < 0 {
                    return Ok(Handled::No { message: (add, responder), retry: false });
                }
                responder.respond(Sum { sum: add.left + add.right })?;
                Ok(Handled::Yes)
            })
            .await
            .if_notification(async |tick: Tick| {
                if tick.count == 13 {
                    return Err(Error::internal_error().data("unlucky"));
                }
                cx.send_notification(Tick { count: tick.count + 1 })
            })
            .await
            .if_ok_response_to::<Add, _>(async |sum, router| router.route(Sum { sum: sum.sum * 100 }))
            .await
            .if_response_to::<Add, _>(async |result, router| {
                assert!(result.is_err(), "good ones were taken before");
                router.route(Sum { sum: -1 })
            })
            .await
            .done()
    }
}

fn serve(agent: impl ConnectTo<Client>) -> Local {
    let (peer, link) = pair(64 * 1024);
    tokio::spawn(agent.connect_to(link));
    peer
}

fn request(id: i64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn result(id: i64, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

#[tokio::test]
async fn the_first_type_that_fits_takes_the_message() {
    let mut peer = serve(Agent.builder().with_handler(Matching));
    peer.send(&request(1, "add", json!({ "left": 1, "right": 2 }))).await;
    peer.expect(result(1, json!({ "sum": 3 }))).await;
    peer.send(&json!({ "jsonrpc": "2.0", "method": "tick", "params": { "count": 1 } })).await;
    peer.expect(json!({ "jsonrpc": "2.0", "method": "tick", "params": { "count": 2 } })).await;
    // Passed on by the handler, by the chain and by the connection.
    peer.send(&request(2, "add", json!({ "left": -1, "right": 2 }))).await;
    assert_eq!(peer.receive().await["error"]["code"], -32601);
    peer.send(&request(3, "subtract", json!({ "left": 1, "right": 2 }))).await;
    assert_eq!(peer.receive().await["error"]["code"], -32601);
}

#[tokio::test]
async fn what_does_not_fit_its_type_is_settled() {
    let mut peer = serve(Agent.builder().with_handler(Matching));
    peer.send(&request(1, "add", json!({ "left": "one" }))).await;
    assert_eq!(peer.receive().await["error"]["code"], -32602);
    for note in [json!({ "count": "one" }), json!({ "count": 13 })] {
        peer.send(&json!({ "jsonrpc": "2.0", "method": "tick", "params": note })).await;
    }
    // Neither is answered, and the connection goes on.
    peer.send(&request(2, "add", json!({ "left": 2, "right": 2 }))).await;
    peer.expect(result(2, json!({ "sum": 4 }))).await;
}

#[tokio::test]
async fn responses_are_matched_by_their_request() {
    let (mut peer, link) = pair(64 * 1024);
    let agent = Agent.builder().with_handler(Matching);
    let ours = tokio::spawn(agent.connect_with(link, async |cx: ConnectionTo<Client>| {
        let good = cx.send_request(Add { left: 1, right: 1 }).block_task().await?;
        let bad = cx.send_request(Add { left: 2, right: 2 }).block_task().await?;
        Ok((good.sum, bad.sum))
    }));
    let asked = peer.receive().await;
    peer.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "sum": 2 } })).await;
    let asked = peer.receive().await;
    let error = json!({ "code": -32603, "message": "no" });
    peer.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })).await;
    assert_eq!(ours.await.expect("no panic").expect("no error"), (200, -1));
}

/// Takes `add` from its client, and `tick` from its agent.
struct Between;

impl HandleDispatchFrom<Conductor> for Between {
    async fn handle_dispatch_from(
        &mut self,
        message: Dispatch,
        cx: ConnectionTo<Conductor>,
    ) -> Result<Handled<Dispatch>> {
        MatchDispatchFrom::new(message, &cx)
            .if_request_from(Client, async |add: Add, responder| responder.respond(Sum { sum: add.left }))
            .await
            .if_notification_from(Agent, async |tick: Tick| {
                if tick.count < 0 {
                    // Changed, and passed on to whoever comes next.
                    return Ok(Handled::No { message: Tick { count: -tick.count }, retry: false });
                }
                cx.send_notification_to(Client, Tick { count: tick.count * 10 })?;
                Ok(Handled::Yes)
            })
            .await
            .otherwise_delegate(Rest)
            .await
    }
}

/// Sees what is left as it came, and passes it on.
struct Rest;

impl<C: Role> HandleDispatchFrom<C> for Rest {
    async fn handle_dispatch_from(&mut self, message: Dispatch, _: ConnectionTo<C>) -> Result<Handled<Dispatch>> {
        if let Dispatch::Notification(note) = &message
            && note.method == "_proxy/successor"
        {
            assert_eq!(note.params["method"], "tick", "in its envelope again");
        }
        Ok(Handled::No { message, retry: false })
    }
}

#[tokio::test]
async fn a_proxy_tells_its_two_peers_apart() {
    let (mut conductor, link) = pair(64 * 1024);
    tokio::spawn(Proxy.builder().with_handler(Between).connect_to(link));
    let tick = |count: i64| json!({ "jsonrpc": "2.0", "method": "tick", "params": { "count": count } });
    let beyond = |mut message: Value| {
        let inner = json!({ "method": message["method"], "params": message["params"] });
        message["method"] = json!("_proxy/successor");
        message["params"] = inner;
        message
    };
    // From the client: taken.
    conductor.send(&request(1, "add", json!({ "left": 7, "right": 0 }))).await;
    conductor.expect(result(1, json!({ "sum": 7 }))).await;
    // From the agent: taken, and told to the client.
    conductor.send(&beyond(tick(4))).await;
    conductor.expect(tick(40)).await;
    // Changed and passed on: it goes to the client by default.
    conductor.send(&beyond(tick(-4))).await;
    conductor.expect(tick(4)).await;
    // The same type from the other peer is not matched: it goes to the agent by default.
    conductor.send(&tick(5)).await;
    conductor.expect(beyond(tick(5))).await;
    // A request of the agent goes to the client.
    conductor.send(&beyond(request(9, "add", json!({ "left": 1, "right": 1 })))).await;
    let passed = conductor.receive().await;
    assert_eq!((&passed["method"], &passed["params"]), (&json!("add"), &json!({ "left": 1, "right": 1 })));
}

#[tokio::test]
async fn messages_are_passed_on_without_their_cancellation() {
    let (mut conductor, link) = pair(64 * 1024);
    let proxy = Proxy.builder().on_receive_dispatch_from(
        Client,
        async |message: Dispatch, cx: ConnectionTo<Conductor>| cx.send_proxied_message_to(Agent, message),
        on_receive_dispatch!(),
    );
    tokio::spawn(proxy.connect_to(link));
    conductor.send(&request(1, "slow", json!({ "k": 1 }))).await;
    let passed = conductor.receive().await;
    assert_eq!(passed["params"], json!({ "method": "slow", "params": { "k": 1 } }));
    // The cancellation arrives with the id of this hop, not of the other.
    conductor.send(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 1 } })).await;
    let cancel = conductor.receive().await;
    assert_eq!(cancel["params"], json!({ "method": "$/cancel_request", "params": { "requestId": passed["id"] } }));
    let error = json!({ "code": -32800, "message": "gone", "data": null, "extra": 1 });
    conductor.send(&json!({ "jsonrpc": "2.0", "id": passed["id"], "error": error })).await;
    conductor.expect(json!({ "jsonrpc": "2.0", "id": 1, "error": error })).await;
    conductor.send(&json!({ "jsonrpc": "2.0", "method": "note", "params": [1] })).await;
    conductor
        .expect(
            json!({ "jsonrpc": "2.0", "method": "_proxy/successor", "params": { "method": "note", "params": [1] } }),
        )
        .await;
}

#[tokio::test]
async fn notifications_are_matched_by_type() {
    let note = |method: &str, params: Value| UntypedMessage::new(method, params).expect("JSON");
    let sort = async |message: UntypedMessage| -> Result<String> {
        let mut seen = String::new();
        let mut rest = String::new();
        TypeNotification::new(message)
            .handle_if(async |tick: Tick| {
                seen = format!("tick {}", tick.count);
                if tick.count == 13 { Err(Error::internal_error()) } else { Ok(()) }
            })
            .await
            .otherwise(async |left| {
                rest = format!("left {}", left.method);
                Ok(())
            })
            .await?;
        Ok(seen + &rest)
    };
    assert_eq!(sort(note("tick", json!({ "count": 1 }))).await.expect("fits"), "tick 1");
    assert_eq!(sort(note("tock", json!({ "count": 1 }))).await.expect("fits"), "left tock");
    assert_eq!(sort(note("tick", json!({ "count": "x" }))).await.expect("ignored"), "");
    assert!(sort(note("tick", json!({ "count": 13 }))).await.is_err());
}
