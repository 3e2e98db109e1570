//! Statements 87 to 92: odd input, and what a relay keeps.

use std::io;

use futures_channel::mpsc;
use futures_util::{SinkExt as _, StreamExt as _};
use greenroom::{
    Agent, Channel, ConnectTo, Error, JsonRpcMessage, JsonRpcRequest, JsonRpcResponse, Lines, Responder, Result,
    UntypedMessage, UntypedRole, on_receive_request,
};
use greenroom_conductor::{ConductorImpl, ProxiesAndAgent};
use greenroom_testkit::pass_through;
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn statement_87_malformed_input_is_refused_once_and_the_connection_stays_usable() {
    let agent = Agent.builder().on_receive_request(
        async |_: UntypedMessage, responder: Responder<Value>, _cx| responder.respond(json!("fine")),
        on_receive_request!(),
    );
    let (mut peer, serving) = serve(agent);
    for (line, code) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"#, Some(-32700)),
        (r#"["#, Some(-32700)),
        (r#"{"no":"envelope"}"#, Some(-32600)),
        (r#"{"jsonrpc":"1.0","id":1,"method":"_ask"}"#, Some(-32600)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"_ask","params":"text"}"#, Some(-32600)),
        (r#"{"jsonrpc":"2.0","id":{},"method":"_ask"}"#, Some(-32600)),
        // Shaped like an answer: never answered.
        (r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"both"}}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"error":"text"}"#, None),
        // Decision 23: what does not start like JSON is noise, and never answered.
        ("Welcome to the machine", None),
        ("42", None),
        ("null", None),
        ("\"text\"", None),
        ("", None),
    ] {
        peer.write(format!("{line}\n")).await;
        peer.send(&request(7, "_ask")).await;
        if let Some(code) = code {
            let refused = soon(peer.receive()).await;
            assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(code)), "{line}");
        }
        assert_eq!(soon(peer.receive()).await, result(7, "fine"), "{line}");
    }
    finish(peer, serving).await;
}

/// Text that nobody but a relay would pass on, and ordinary text with its odd white space.
const LINES: [&str; 7] = [
    r#"{"no":"envelope",  "n":1e2}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"#,
    "Welcome to the machine",
    r#"{ "jsonrpc" : "2.0", "method" : "_a", "params" : [ 1.0, 1e400, "\u00e9" ] }"#,
    r#"{"method":"_b","jsonrpc":"2.0","extra":true}"#,
    r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"_twice"}"#,
    r#"[{"jsonrpc":"2.0","method":"_c"},{"odd":1}]"#,
];

#[tokio::test(start_paused = true)]
async fn statement_88_relays_keep_malformed_text_and_the_values_of_batches() {
    // Bytes to bytes: every line as it is.
    let ((mut left, near), (mut right, far)) = (pair(ROOM), pair(ROOM));
    let relay = tokio::spawn(ConnectTo::<UntypedRole>::connect_to(near, far));
    for line in LINES {
        left.write(format!("{line}\n")).await;
        assert_eq!(soon(right.line()).await.as_deref(), Some(line));
        right.write(format!("{line}\n")).await;
        assert_eq!(soon(left.line()).await.as_deref(), Some(line));
    }
    left.close().await;
    right.close().await;
    soon(relay).await.expect("no panic").expect("a clean end");

    // Through the documented channel, which holds values: malformed text is still exact, and a
    // batch keeps its values and their order.
    let ((mut left, near), (mut right, far)) = (pair(ROOM), pair(ROOM));
    let (one, other) = Channel::duplex();
    let relays = [
        tokio::spawn(ConnectTo::<UntypedRole>::connect_to(one, near)),
        tokio::spawn(ConnectTo::<UntypedRole>::connect_to(other, far)),
    ];
    for line in [LINES[0], LINES[1], r#"{"b":1,"a":[]}"#] {
        left.write(format!("{line}\n")).await;
        assert_eq!(soon(right.line()).await.as_deref(), Some(line));
    }
    left.write(format!("{}\n", LINES[6])).await;
    soon(right.expect(json!([note("_c"), { "odd": 1 }]))).await;
    left.close().await;
    right.close().await;
    for relay in relays {
        soon(relay).await.expect("no panic").expect("a clean end");
    }

    // An item with line ends in it leaves as one line.
    let (lines_out, _out) = mpsc::unbounded::<String>();
    let (feed, lines_in) = mpsc::unbounded::<String>();
    let (mut peer, link) = pair(ROOM);
    let lines = Lines::new(lines_out.sink_map_err(io::Error::other), lines_in.map(Ok));
    let relay = tokio::spawn(ConnectTo::<UntypedRole>::connect_to(lines, link));
    feed.unbounded_send("{\"no\":\r\n\"envelope\"}".to_owned()).expect("a reader");
    soon(peer.expect(json!({ "no": "envelope" }))).await;
    drop(feed);
    peer.close().await;
    soon(relay).await.expect("no panic").expect("a clean end");
}

/// A chain between a scripted client and a scripted agent, initialised.
async fn chain(proxies: usize) -> (Local, Local, greenroom_conductor::RunningChain) {
    let ((mut client, outer), (mut agent, inner)) = (pair(ROOM), pair(ROOM));
    let components = ProxiesAndAgent::new(inner).proxies((0..proxies).map(|_| pass_through()));
    let chain = ConductorImpl::new_agent("statements", components).start(outer).await.expect("a chain");
    client.send(&request_with(0, "initialize", json!({ "protocolVersion": 1 }))).await;
    answer(&mut agent, json!({ "protocolVersion": 1 })).await;
    soon(client.receive()).await;
    (client, agent, chain)
}

#[tokio::test(start_paused = true)]
async fn statement_89_a_conductor_forwards_in_the_order_of_arrival() {
    const COUNT: u64 = 200;
    for proxies in [0, 2] {
        let (mut client, mut agent, _chain) = chain(proxies).await;
        for from_client in [true, false] {
            let (sender, receiver) = if from_client { (&mut client, &mut agent) } else { (&mut agent, &mut client) };
            for n in 0..COUNT {
                let message = if n % 3 == 0 {
                    request_with(n, "_ask", json!({ "n": n }))
                } else {
                    note_with("_note", json!({ "n": n }))
                };
                sender.send(&message).await;
            }
            let mut ids = Vec::new();
            for n in 0..COUNT {
                let message = soon(receiver.receive()).await;
                assert_eq!(message["params"]["n"], n, "{proxies} proxies");
                ids.extend(message.get("id").cloned());
            }
            // Answers in any order find their requests, and may pass others.
            for (at, id) in ids.iter().enumerate().rev() {
                receiver.send(&result(id.clone(), json!(at))).await;
            }
            for at in (0..ids.len()).rev() {
                assert_eq!(soon(sender.receive()).await, result(3 * at as u64, json!(at)));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn statement_90_relayed_answers_keep_code_data_and_unknown_members() {
    for proxies in [0, 2] {
        let (mut client, mut agent, _chain) = chain(proxies).await;
        for body in [
            r#""error":{"code":4242,"message":"foreign"}"#,
            r#""error":{"code":-32000,"message":"null is not nothing","data":null}"#,
            r#""error":{"code":-1,"message":"more","data":{"b":1.0,"a":[1e400]},"hint":"x","more":{"k":null}}"#,
            r#""result":null"#,
            r#""result":{"b":1.0,"a":12345678901234567890123,"c":"\u00e9"}"#,
        ] {
            client.send(&request("mine", "_ask")).await;
            let id = soon(agent.receive()).await["id"].clone();
            agent.write(format!(r#"{{"jsonrpc":"2.0","id":{id},{body}}}"#)).await;
            agent.write("\n").await;
            let line = soon(client.line()).await.expect("an answer");
            assert_eq!(line, format!(r#"{{"jsonrpc":"2.0","id":"mine",{body}}}"#), "{proxies} proxies");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn statement_91_an_answer_to_nothing_is_ignored() {
    as_client(async |cx, peer| {
        let sent = cx.send_request(message("_ask"));
        let id = peer.receive().await["id"].clone();
        peer.send(&result(404, 1)).await;
        peer.send(&result("a text", 1)).await;
        peer.send(&result(Value::Null, 1)).await;
        peer.send(&refusal(404, -32603)).await;
        peer.send(&result(id.clone(), "mine")).await;
        assert_eq!(soon(sent.block_task()).await?, "mine");
        // Answered once: the second one is for nobody.
        peer.send(&result(id, "again")).await;
        let next = cx.send_request(message("_ask"));
        answer(peer, 2).await;
        assert_eq!(soon(next.block_task()).await?, 2);
        expect_nothing_sent(&cx, peer).await;
        Ok(())
    })
    .await;
}

/// A request whose response cannot be written.
#[derive(Clone, Debug)]
struct Ask;

impl JsonRpcMessage for Ask {
    fn matches_method(method: &str) -> bool {
        method == "_unwritable"
    }

    fn method(&self) -> &str {
        "_unwritable"
    }

    fn to_untyped_message(&self) -> Result<UntypedMessage> {
        UntypedMessage::new(self.method(), Value::Null)
    }

    fn parse_message(_method: &str, _params: &impl serde::Serialize) -> Result<Self> {
        Ok(Self)
    }
}

impl JsonRpcRequest for Ask {
    type Response = Unwritable;
}

#[derive(Clone, Debug)]
struct Unwritable;

impl JsonRpcResponse for Unwritable {
    fn into_json(self, _method: &str) -> Result<Value> {
        Err(Error::invalid_params().data("expected by the test"))
    }

    fn from_value(_method: &str, _value: Value) -> Result<Self> {
        Ok(Self)
    }
}

#[tokio::test(start_paused = true)]
async fn statement_92_a_response_that_cannot_be_written_is_an_internal_error_for_its_id() {
    let agent = Agent.builder().on_receive_request(
        async |_: Ask, responder: Responder<Unwritable>, _cx| {
            let error = responder.respond(Unwritable).expect_err("the handler is told why");
            assert_eq!(error.data, Some(json!("expected by the test")));
            Ok(())
        },
        on_receive_request!(),
    );
    let (mut peer, serving) = serve(agent);
    for id in [1, 2] {
        peer.send(&request(id, "_unwritable")).await;
        let answer = soon(peer.receive()).await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32603)));
    }
    finish(peer, serving).await;
}
