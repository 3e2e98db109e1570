//! Cancellation: X1 to X6.

use greenroom_conductor::{
    ProxyDialect::{Legacy, Modern},
    dropped,
};

use crate::harness::*;

fn cancel(id: &str) -> String {
    notice("$/cancel_request", &format!(r#"{{"requestId":{id}}}"#))
}

fn wrapped(spelling: &str, id: &str) -> String {
    notice(spelling, &inner("$/cancel_request", &format!(r#"{{"requestId":{id}}}"#)))
}

fn stale() -> Vec<String> {
    vec![format!("drop: {}", dropped::STALE_CANCEL)]
}

#[test]
fn each_hop_sees_one_cancel_with_its_own_id() {
    let mut bench = Bench::running(&agent(&[Legacy, Modern]));
    bench.feed(Client, &request("\"c\"", "session/prompt", "{}"));
    bench.feed(Component(0), &request("\"p0\"", "_proxy/successor", &inner("session/prompt", "{}")));
    bench.feed(Component(1), &request("\"p1\"", "proxy/successor", &inner("session/prompt", "{}")));
    assert_eq!(bench.feed(Client, &cancel("\"c\"")), [format!("0 {}", cancel("2"))]);
    assert_eq!(bench.feed(Client, &cancel("\"c\"")), stale(), "once a request");
    assert_eq!(bench.feed(Component(0), &wrapped("_proxy/successor", "\"p0\"")), [format!("1 {}", cancel("1"))]);
    assert_eq!(bench.feed(Component(1), &cancel("\"p1\"")), [format!("2 {}", cancel("1"))]);
    // The answer still travels, result or error.
    let answers = bench.feed(Component(2), &refusal("1", -32800));
    assert_eq!(answers, [format!("1 {}", refusal("\"p1\"", -32800))]);
    assert_eq!(bench.feed(Component(1), &result("1", "{}")), [format!("0 {}", result("\"p0\"", "{}"))]);
    assert_eq!(bench.feed(Component(0), &result("2", "{}")), [format!("client {}", result("\"c\"", "{}"))]);
    assert_eq!(bench.feed(Client, &cancel("\"c\"")), stale(), "too late");
    assert!(bench.router.is_idle());
}

#[test]
fn a_wrapped_request_is_cancelled_wrapped_on_a_legacy_hop_only() {
    for (dialect, spelling, form) in
        [(Legacy, "_proxy/successor", wrapped("_proxy/successor", "1")), (Modern, "proxy/successor", cancel("1"))]
    {
        // The first component answers the initialize as number 1 of its own hop.
        let mut bench = Bench::running(&agent(&[Legacy, dialect]));
        let asked = bench.feed(Component(2), &request("5", "fs/read", "{}"));
        assert_eq!(asked, [format!("1 {}", request("1", spelling, &inner("fs/read", "{}")))]);
        assert_eq!(bench.feed(Component(2), &cancel("5")), [format!("1 {form}")]);
    }
}

#[test]
fn both_forms_are_read_in_both_dialects() {
    for read in ["_proxy/successor", "proxy/successor", ""] {
        for dialect in [Legacy, Modern] {
            let mut bench = Bench::running(&agent(&[dialect, Legacy]));
            let read_as = |id: &str| if read.is_empty() { cancel(id) } else { wrapped(read, id) };
            // A request that came wrapped, and one that came plain.
            bench.feed(Component(0), &request("5", "proxy/successor", &inner("a/b", "{}")));
            bench.feed(Component(0), &request("6", "a/b", "{}"));
            assert_eq!(bench.feed(Component(0), &read_as("5")), [format!("1 {}", cancel("1"))], "{read}");
            assert_eq!(bench.feed(Component(0), &read_as("6")), [format!("client {}", cancel("1"))], "{read}");
        }
    }
}

#[test]
fn nested_chains_translate_cancels_both_ways() {
    let mut bench = Bench::running(&nested(&[Legacy]));
    bench.feed(Client, &request("5", "proxy/successor", &inner("a/b", "{}")));
    assert_eq!(bench.feed(Client, &cancel("5")), [format!("0 {}", wrapped("_proxy/successor", "2"))]);
    bench.feed(Component(0), &request("6", "_proxy/successor", &inner("a/b", "{}")));
    // The outer hop was opened with the modern name.
    assert_eq!(bench.feed(Component(0), &wrapped("_proxy/successor", "6")), [format!("client {}", cancel("1"))]);
}

#[test]
fn unknown_and_odd_cancels_go_nowhere() {
    let mut bench = Bench::running(&agent(&[Legacy]));
    bench.feed(Client, &request("5", "a/b", "{}"));
    bench.feed(Client, &request("null", "a/b", "{}"));
    for id in ["6", "\"5\"", "5.0", "true", "{}", "[5]", "-5"] {
        assert_eq!(bench.feed(Client, &cancel(id)), stale(), "{id}");
    }
    for params in ["{}", "[5]", "null", r#"{"requestid":5}"#, r#"{"requestId":5,"requestId":5}"#] {
        assert_eq!(bench.feed(Client, &notice("$/cancel_request", params)), stale(), "{params}");
    }
    assert_eq!(bench.feed(Client, r#"{"jsonrpc":"2.0","method":"$/cancel_request"}"#), stale());
    // Somebody else's request.
    assert_eq!(bench.feed(Component(0), &cancel("5")), stale());
    refused(&bench.feed(Client, &request("7", "$/cancel_request", r#"{"requestId":5}"#)), "client", "7", -32600);
    // Null is an id, and members may be escaped.
    assert_eq!(bench.feed(Client, &cancel("null")), [format!("0 {}", cancel("3"))]);
    let escaped = notice("$/cancel_request", r#"{"x":[{"requestId":6}],"request\u0049d":5}"#);
    assert_eq!(bench.feed(Client, &escaped), [format!("0 {}", cancel("2"))]);
}

#[test]
fn other_protocol_notifications_are_relayed() {
    let mut bench = Bench::running(&agent(&[Legacy]));
    assert_eq!(bench.feed(Client, &notice("$/progress", "{}")), [format!("0 {}", notice("$/progress", "{}"))]);
}

#[test]
fn initialize_is_cancelled_like_any_other_request() {
    let mut bench = Bench::opening(&agent(&[Legacy]));
    assert_eq!(bench.feed(Client, &cancel("\"init\"")), [format!("0 {}", cancel("1"))]);
    bench.feed(Component(0), &request("9", "_proxy/successor", &inner("initialize", V1)));
    assert_eq!(bench.feed(Component(0), &wrapped("_proxy/successor", "9")), [format!("1 {}", cancel("1"))]);
    assert_eq!(bench.feed(Component(1), &refusal("1", -32800)), [format!("0 {}", refusal("9", -32800))]);
    assert_eq!(bench.feed(Component(0), &refusal("1", -32800)), [format!("client {}", refusal("\"init\"", -32800))]);
    assert!(bench.router.is_idle());
}

#[test]
fn a_cancel_that_waits_for_the_components_follows_its_request() {
    let mut bench = Bench::new(&agent(&[]));
    bench.feed(Client, &request("1", "initialize", V1));
    assert_eq!(bench.feed(Client, &cancel("1")), [""; 0]);
    let sent = bench.instantiated(Ok(greenroom_conductor::Instantiated::default()));
    assert_eq!(sent, [format!("0 {}", request("1", "initialize", V1)), format!("0 {}", cancel("1"))]);
}
