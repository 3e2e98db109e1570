//! Table R1: from every hop, in every shape; ids and bytes survive.

use greenroom_conductor::{
    Hop,
    ProxyDialect::{Legacy, Modern},
    dropped,
};

use crate::harness::*;

/// One row: who sends what, who gets what, and what the answer becomes.
fn row(bench: &mut Bench, from: Hop, sent: (&str, &str), to: (&str, Hop), seen: (&str, &str)) {
    let asked = bench.feed(from, &request("\"mine\"", sent.0, sent.1));
    let [message] = &asked[..] else { panic!("{asked:?}") };
    let (hop, text) = message.split_once(' ').expect("a message");
    let id = serde_json::from_str::<serde_json::Value>(text).expect("json")["id"].to_string();
    assert_eq!((hop, text), (to.0, &request(&id, seen.0, seen.1)[..]));
    let sender = match from {
        Hop::Client => "client".to_owned(),
        Hop::Component(component) => component.to_string(),
    };
    assert_eq!(bench.feed(to.1, &result(&id, "[1]")), [format!("{sender} {}", result("\"mine\"", "[1]"))]);
    let noted = bench.feed(from, &notice(sent.0, sent.1));
    assert_eq!(noted, [format!("{} {}", to.0, notice(seen.0, seen.1))]);
    assert!(bench.router.is_idle());
}

const PARAMS: &str = r#"{"sessionId":"s", "_meta":{"k":1.50}}"#;

#[test]
fn a_chain_with_an_agent_delivers_by_the_table() {
    let mut bench = Bench::running(&agent(&[Legacy, Modern]));
    let inside = inner("a/b", PARAMS);
    let (plain, legacy, modern) =
        (("a/b", PARAMS), ("_proxy/successor", &inside[..]), ("proxy/successor", &inside[..]));
    row(&mut bench, Client, plain, ("0", Component(0)), plain);
    row(&mut bench, Component(0), legacy, ("1", Component(1)), plain);
    row(&mut bench, Component(1), modern, ("2", Component(2)), plain);
    row(&mut bench, Component(2), plain, ("1", Component(1)), modern);
    row(&mut bench, Component(1), plain, ("0", Component(0)), legacy);
    row(&mut bench, Component(0), plain, ("client", Client), plain);
}

#[test]
fn a_nested_chain_delivers_by_the_table() {
    let mut bench = Bench::running(&nested(&[Legacy, Legacy]));
    let inside = inner("a/b", PARAMS);
    let (plain, legacy, modern) =
        (("a/b", PARAMS), ("_proxy/successor", &inside[..]), ("proxy/successor", &inside[..]));
    row(&mut bench, Client, plain, ("0", Component(0)), plain);
    row(&mut bench, Component(0), legacy, ("1", Component(1)), plain);
    row(&mut bench, Component(1), legacy, ("client", Client), modern);
    row(&mut bench, Client, modern, ("1", Component(1)), legacy);
    row(&mut bench, Component(1), plain, ("0", Component(0)), legacy);
    row(&mut bench, Component(0), plain, ("client", Client), plain);
}

#[test]
fn a_chain_without_proxies_is_transparent() {
    let mut bench = Bench::running(&agent(&[]));
    row(&mut bench, Client, ("a/b", PARAMS), ("0", Component(0)), ("a/b", PARAMS));
    row(&mut bench, Component(0), ("a/b", PARAMS), ("client", Client), ("a/b", PARAMS));
    let odd = r#" { "params":[1, 2] ,"extra":true, "method":"a\/b","jsonrpc":"2.0" } "#;
    assert_eq!(bench.feed(Client, odd), [format!("0 {odd}")]);
    let odd = r#"{"extra":{"id":5},"params":null,"id" : "7","method":"a\/b","jsonrpc":"2.0" }"#;
    assert_eq!(bench.feed(Client, odd), [format!("0 {}", odd.replace("\"7\"", "3"))]);
}

#[test]
fn an_empty_nested_chain_is_the_identity() {
    let mut bench = Bench::running(&nested(&[]));
    let inside = inner("a/b", PARAMS);
    row(&mut bench, Client, ("a/b", PARAMS), ("client", Client), ("proxy/successor", &inside));
    row(&mut bench, Client, ("_proxy/successor", &inside), ("client", Client), ("a/b", PARAMS));
}

#[test]
fn ids_return_exactly_as_they_were_spelled() {
    let mut bench = Bench::running(&agent(&[Legacy]));
    for (index, id) in [
        "0",
        "-1",
        "1",
        "9007199254740993",
        "9223372036854775807",
        "-9223372036854775808",
        "null",
        "\"\"",
        "\"1\"",
        "\"\\u0041\"",
        "\"ü\"",
        "\"0f8fad5b-d9cb-469f-a165-70867728950e\"",
    ]
    .into_iter()
    .enumerate()
    {
        let ours = (index + 2).to_string();
        assert_eq!(bench.feed(Client, &request(id, "a/b", "{}")), [format!("0 {}", request(&ours, "a/b", "{}"))]);
        let answer = format!(r#"{{"result":null,"id":{ours},"x":1,"jsonrpc":"2.0"}}"#);
        let back = format!(r#"client {{"result":null,"id":{id},"x":1,"jsonrpc":"2.0"}}"#);
        assert_eq!(bench.feed(Component(0), &answer), [back]);
    }
    assert!(bench.router.is_idle());
}

#[test]
fn answers_may_come_in_any_order_and_only_once() {
    let mut bench = Bench::running(&agent(&[]));
    for id in ["\"a\"", "1", "\"1\""] {
        bench.feed(Client, &request(id, "a/b", "{}"));
    }
    assert_eq!(bench.feed(Component(0), &result("4", "4")), [format!("client {}", result("\"1\"", "4"))]);
    assert_eq!(bench.feed(Component(0), &result("2", "2")), [format!("client {}", result("\"a\"", "2"))]);
    let again = [format!("drop: {}", dropped::UNKNOWN_RESPONSE)];
    assert_eq!(bench.feed(Component(0), &result("2", "2")), again, "answered twice");
    assert_eq!(bench.feed(Component(0), &refusal("3", 5)), [format!("client {}", refusal("1", 5))]);
    for id in ["0", "-1", "5", "99", "\"3\"", "null", "9223372036854775807", "-9223372036854775808"] {
        assert_eq!(bench.feed(Component(0), &result(id, "0")), again, "{id}");
        assert_eq!(bench.feed(Client, &result(id, "0")), again, "{id}");
    }
    assert!(bench.router.is_idle());
}

#[test]
fn an_id_that_is_used_twice_at_once_gets_two_answers() {
    let mut bench = Bench::running(&agent(&[]));
    bench.feed(Client, &request("7", "a/b", "{}"));
    bench.feed(Client, &request("7", "a/c", "{}"));
    assert_eq!(bench.feed(Component(0), &result("2", "1")), [format!("client {}", result("7", "1"))]);
    // The newer one can still be cancelled.
    let cancel = notice("$/cancel_request", r#"{"requestId":7}"#);
    assert_eq!(bench.feed(Client, &cancel), [format!("0 {}", notice("$/cancel_request", r#"{"requestId":3}"#))]);
    assert_eq!(bench.feed(Component(0), &result("3", "2")), [format!("client {}", result("7", "2"))]);
    assert!(bench.router.is_idle());
}

#[test]
fn errors_pass_unchanged() {
    let mut bench = Bench::running(&agent(&[Modern]));
    for error_object in [
        r#"{"code":-32042,"message":"","data":null,"x":[1e2]}"#,
        r#"{ "message":"m","code":7}"#,
        r#"{"code":-32600,"message":"no"}"#,
        r#"{"code":"text"}"#,
    ] {
        let asked = bench.feed(Component(1), &request("\"q\"", "ask/me", "{}"));
        let id = asked[0].split("\"id\":").nth(1).and_then(|rest| rest.split(',').next()).expect("an id").to_owned();
        assert_eq!(
            bench.feed(Component(0), &error(&id, error_object)),
            [format!("1 {}", error("\"q\"", error_object))]
        );
    }
}

#[test]
fn broken_input_is_answered_where_it_came_from() {
    let mut bench = Bench::running(&agent(&[Legacy]));
    for (hop, name) in [(Client, "client"), (Component(0), "0"), (Component(1), "1")] {
        refused(&bench.feed(hop, r#"{"jsonrpc":"2.0","method":"#), name, "null", -32700);
        refused(&bench.feed(hop, r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#), name, "null", -32600);
        refused(&bench.feed(hop, r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#), name, "null", -32600);
        refused(&bench.feed(hop, "[]"), name, "null", -32600);
        let response = format!("drop: {}", dropped::MALFORMED_RESPONSE);
        assert_eq!(bench.feed(hop, r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#), [&response[..]]);
        assert_eq!(bench.feed(hop, r#"{"jsonrpc":"2.0","result":1"#), [&response[..]]);
        assert_eq!(bench.feed(hop, "Welcome back"), [format!("drop: {}", dropped::NOISE)]);
    }
    assert_eq!(bench.feed(Component(2), &notice("a", "{}")), [format!("drop: {}", dropped::UNKNOWN_HOP)]);
}

#[test]
fn debug_shows_no_payload() {
    let mut bench = Bench::running(&agent(&[]));
    let mut out = Vec::new();
    let frame = greenroom_protocol::Frame::parse(request("1", "a/b", r#"{"secret":"hunter2"}"#).into());
    bench.router.handle(Client, &frame, &mut out);
    let text = format!("{out:?} {:?}", bench.router);
    assert!(text.contains("Send") && text.contains("Router"));
    assert!(!text.contains("hunter2"), "{text}");
}
