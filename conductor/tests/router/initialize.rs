//! Opening a chain: I1 to I16, and decisions 6 and 8.

use greenroom_conductor::{
    ChainShape, Instantiated,
    ProxyDialect::{Legacy, Modern},
    dropped,
};
use greenroom_protocol::Error;

use crate::harness::*;

const NAMES: [&str; 2] = ["_proxy/initialize", "proxy/initialize"];
const BOTH: [&str; 2] = ["_proxy/successor", "proxy/successor"];

#[test]
fn the_documented_order_of_a_chain_of_two() {
    let full = r#"{"protocolVersion":1,"xtra":{"a":1.0}}"#;
    let mut bench = Bench::new(&agent(&[Legacy, Modern]));
    assert_eq!(bench.feed(Client, &request("\"a\"", "initialize", full)), ["instantiate"]);
    let sent = bench.instantiated(Ok(Instantiated::default()));
    assert_eq!(sent, [format!("0 {}", request("1", "_proxy/initialize", full))]);
    let sent = bench.feed(Component(0), &request("\"c\"", "_proxy/successor", &inner("initialize", full)));
    assert_eq!(sent, [format!("1 {}", request("1", "proxy/initialize", full))]);
    let sent = bench.feed(Component(1), &request("\"e\"", "proxy/successor", &inner("initialize", full)));
    assert_eq!(sent, [format!("2 {}", request("1", "initialize", full))]);
    assert_eq!(bench.feed(Component(2), &result("1", full)), [format!("1 {}", result("\"e\"", full))]);
    assert_eq!(bench.feed(Component(1), &result("1", full)), [format!("0 {}", result("\"c\"", full))]);
    assert_eq!(bench.feed(Component(0), &result("1", full)), [format!("client {}", result("\"a\"", full))]);
    assert!(bench.router.is_idle());
}

#[test]
fn nothing_but_initialize_opens_a_chain() {
    let mut bench = Bench::new(&agent(&[Legacy]));
    refused(&bench.feed(Client, &request("1", "session/new", "{}")), "client", "1", -32600);
    for name in NAMES {
        refused(&bench.feed(Client, &request("2", name, V1)), "client", "2", -32600);
    }
    for name in BOTH {
        refused(&bench.feed(Client, &request("3", name, &inner("initialize", V1))), "client", "3", -32600);
    }
    for text in [notice("session/cancel", "{}"), notice("initialize", V1), notice("$/cancel_request", "{}")] {
        assert_eq!(bench.feed(Client, &text), [format!("drop: {}", dropped::UNINITIALIZED)]);
    }
    assert_eq!(bench.feed(Client, &request("4", "initialize", V1)), ["instantiate"], "a retry works");
}

#[test]
fn nothing_but_proxy_initialize_opens_a_nested_chain() {
    for (name, successor) in NAMES.into_iter().zip(BOTH) {
        let mut bench = Bench::new(&nested(&[Legacy]));
        refused(&bench.feed(Client, &request("1", "initialize", V1)), "client", "1", -32600);
        refused(&bench.feed(Client, &request("1", "session/new", "{}")), "client", "1", -32600);
        for envelope in BOTH {
            refused(&bench.feed(Client, &request("1", envelope, &inner("initialize", V1))), "client", "1", -32600);
        }
        assert_eq!(bench.feed(Client, &request("2", name, V1)), ["instantiate"]);
        let sent = bench.instantiated(Ok(Instantiated::default()));
        assert_eq!(sent, [format!("0 {}", request("1", "_proxy/initialize", V1))]);
        // The received name fixes the dialect of the outer hop.
        let sent = bench.feed(Component(0), &request("9", "_proxy/successor", &inner("initialize", V1)));
        assert_eq!(sent, [format!("client {}", request("1", successor, &inner("initialize", V1)))]);
        assert_eq!(bench.feed(Client, &result("1", "{}")), [format!("0 {}", result("9", "{}"))], "not checked here");
        assert_eq!(bench.feed(Component(0), &result("1", V1)), [format!("client {}", result("2", V1))]);
        assert!(bench.router.is_idle());
    }
}

#[test]
fn calls_wait_for_the_components_in_order() {
    let mut bench = Bench::new(&agent(&[]));
    assert_eq!(bench.feed(Client, &request("1", "initialize", V1)), ["instantiate"]);
    for text in [notice("a", "{}"), request("2", "b", "{}"), request("3", "initialize", V2), notice("c", "{}")] {
        assert_eq!(bench.feed(Client, &text), [""; 0], "asked once");
    }
    assert_eq!(bench.router.waiting(), 5);
    let sent = bench.instantiated(Ok(Instantiated::default()));
    assert_eq!(
        sent,
        [
            format!("0 {}", request("1", "initialize", V1)),
            format!("0 {}", notice("a", "{}")),
            format!("0 {}", request("2", "b", "{}")),
            format!("0 {}", request("3", "initialize", V2)),
            format!("0 {}", notice("c", "{}")),
        ]
    );
    assert_eq!(bench.router.waiting(), 0);
    assert_eq!(bench.instantiated(Err(Error::internal_error())), [""; 0], "a second outcome changes nothing");
    assert_eq!(bench.feed(Client, &notice("d", "{}")), [format!("0 {}", notice("d", "{}"))]);
}

#[test]
fn a_failed_start_answers_every_request() {
    let mut bench = Bench::new(&agent(&[Legacy]));
    bench.feed(Client, &request("1", "initialize", V1));
    bench.feed(Client, &request("2", "session/new", "{}"));
    bench.feed(Client, &notice("a", "{}"));
    let answers = bench.instantiated(Err(Error::new(-32055, "no such program").data("why")));
    let said = r#"{"code":-32055,"message":"no such program","data":"why"}"#;
    assert_eq!(
        answers,
        [
            format!("client {}", error("1", said)),
            format!("client {}", error("2", said)),
            format!("drop: {}", dropped::UNINITIALIZED),
        ]
    );
    for method in ["initialize", "session/new", "proxy/initialize"] {
        assert_eq!(bench.feed(Client, &request("\"x\"", method, V1)), [format!("client {}", error("\"x\"", said))]);
    }
    assert!(bench.router.is_idle());
}

#[test]
fn the_start_may_decide_over_proxies_and_params() {
    let mut bench = Bench::new(&agent(&[Legacy, Legacy]));
    bench.feed(Client, &request("1", "initialize", V2));
    let lowered = r#"{"protocolVersion":1,"clientInfo":{}}"#;
    let chain = Instantiated { proxies: Some(vec![Modern]), params: Some(lowered.into()) };
    assert_eq!(bench.instantiated(Ok(chain)), [format!("0 {}", request("1", "proxy/initialize", lowered))]);
    let sent = bench.feed(Component(0), &notice("proxy/successor", &inner("a", "{}")));
    assert_eq!(sent, [format!("1 {}", notice("a", "{}"))]);
    assert_eq!(bench.feed(Component(2), &notice("a", "{}")), [format!("drop: {}", dropped::UNKNOWN_HOP)]);

    let mut bench = Bench::new(&agent(&[]));
    bench.feed(Client, &request("1", "initialize", V1));
    let chain = Instantiated { proxies: None, params: Some(V2.into()) };
    refused(&bench.instantiated(Ok(chain)), "client", "1", -32600);

    let mut bench = Bench::new(&agent(&[]));
    bench.feed(Client, &request("1", "initialize", V1));
    let chain = Instantiated { proxies: None, params: Some("{}".into()) };
    refused(&bench.instantiated(Ok(chain)), "client", "1", -32602);
}

#[test]
fn a_version_must_be_a_small_integer() {
    for params in [
        "{}",
        "[1]",
        "null",
        r#"{"protocolVersion":"1"}"#,
        r#"{"protocolVersion":1.0}"#,
        r#"{"protocolVersion":-1}"#,
        r#"{"protocolVersion":65536}"#,
    ] {
        let mut bench = Bench::new(&agent(&[Legacy]));
        let data = refused(&bench.feed(Client, &request("1", "initialize", params)), "client", "1", -32602);
        assert_eq!(data, "initialize.protocolVersion must be a valid ACP protocol version");
        let mut bench = Bench::new(&nested(&[Legacy]));
        refused(&bench.feed(Client, &request("1", "proxy/initialize", params)), "client", "1", -32602);
        let mut bench = Bench::running(&agent(&[Legacy]));
        refused(&bench.feed(Client, &request("1", "initialize", params)), "client", "1", -32602);
        let sent = bench.feed(Component(0), &request("1", "_proxy/successor", &inner("initialize", params)));
        refused(&sent, "0", "1", -32602);
        assert!(bench.router.is_idle());
    }
    let mut bench = Bench::new(&agent(&[]));
    refused(&bench.feed(Client, r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#), "client", "1", -32602);
}

#[test]
fn version_zero_counts_as_one_where_one_is_served() {
    let zero = r#"{"x":0,"protocolVersion":0,"y":0}"#;
    let one = r#"{"x":0,"protocolVersion":1,"y":0}"#;
    for shape in [agent(&[]), agent(&[Legacy])] {
        let mut bench = Bench::new(&shape);
        bench.feed(Client, &request("1", "initialize", zero));
        let method = if shape.proxies.is_empty() { "initialize" } else { "_proxy/initialize" };
        let sent = bench.instantiated(Ok(Instantiated::default()));
        assert_eq!(sent, [format!("0 {}", request("1", method, one))]);
    }
    let mut bench = Bench::new(&ChainShape { lowest_version: 2, ..agent(&[]) });
    for (params, requested) in [(zero, 0), (V1, 1)] {
        let data = refused(&bench.feed(Client, &request("1", "initialize", params)), "client", "1", -32022);
        assert_eq!(data, serde_json::json!({ "requested": requested, "supported": [2] }));
    }
    assert_eq!(bench.feed(Client, &request("2", "initialize", V2)), ["instantiate"]);
}

#[test]
fn the_final_agent_may_not_select_a_higher_version() {
    for (asked, answered, fine) in [
        (V1, V1, true),
        (V2, V1, true),
        (V2, r#"{"protocolVersion":0}"#, true),
        (r#"{"protocolVersion":7}"#, r#"{"protocolVersion":7}"#, true),
        (V1, V2, false),
        (V2, "{}", false),
        (V2, "null", false),
        (V2, r#"{"protocolVersion":"2"}"#, false),
        (V2, r#"[2]"#, false),
    ] {
        let mut bench = Bench::new(&agent(&[Legacy]));
        bench.feed(Client, &request("1", "initialize", asked));
        bench.instantiated(Ok(Instantiated::default()));
        bench.feed(Component(0), &request("5", "_proxy/successor", &inner("initialize", asked)));
        let back = bench.feed(Component(1), &result("1", answered));
        if fine {
            assert_eq!(back, [format!("0 {}", result("5", answered))], "{asked} {answered}");
        } else {
            refused(&back, "0", "5", -32603);
        }
        // What a proxy says is passed on unseen.
        let back = bench.feed(Component(0), &result("1", answered));
        assert_eq!(back, [format!("client {}", result("1", answered))]);
        assert!(bench.router.is_idle());
    }
    let mut bench = Bench::opening(&agent(&[]));
    let error = r#"{"code":-32022,"message":"Unsupported protocol version","data":{"requested":1,"supported":[2]}}"#;
    let back = bench.feed(Component(0), &crate::harness::error("1", error));
    assert_eq!(back, [format!("client {}", crate::harness::error("\"init\"", error))]);
}

#[test]
fn initialize_from_the_wrong_side_is_refused() {
    let mut bench = Bench::running(&agent(&[Legacy, Modern]));
    for name in NAMES {
        refused(&bench.feed(Client, &request("1", name, V1)), "client", "1", -32600);
        assert_eq!(bench.feed(Client, &notice(name, V1)), [format!("drop: {}", dropped::MISPLACED)]);
        for envelope in BOTH {
            for (hop, to) in [(Component(0), "0"), (Component(1), "1")] {
                refused(&bench.feed(hop, &request("1", envelope, &inner(name, V1))), to, "1", -32600);
                let noted = bench.feed(hop, &notice(envelope, &inner(name, V1)));
                assert_eq!(noted, [format!("drop: {}", dropped::MISPLACED)]);
            }
        }
    }
    for name in ["initialize", "_proxy/initialize", "proxy/initialize"] {
        for (hop, to) in [(Component(0), "0"), (Component(1), "1"), (Component(2), "2")] {
            refused(&bench.feed(hop, &request("1", name, V1)), to, "1", -32600);
            assert_eq!(bench.feed(hop, &notice(name, V1)), [format!("drop: {}", dropped::MISPLACED)]);
        }
    }
    let noted = bench.feed(Component(0), &notice("_proxy/successor", &inner("initialize", V1)));
    assert_eq!(noted, [format!("drop: {}", dropped::MISPLACED)]);
    assert!(bench.router.is_idle());

    let mut bench = Bench::running(&nested(&[Legacy]));
    refused(&bench.feed(Client, &request("1", "initialize", V1)), "client", "1", -32600);
    for name in ["initialize", "_proxy/initialize", "proxy/initialize"] {
        for envelope in BOTH {
            refused(&bench.feed(Client, &request("1", envelope, &inner(name, V1))), "client", "1", -32600);
        }
    }
    assert!(bench.router.is_idle());
}

#[test]
fn a_repeated_initialize_goes_through_the_running_chain() {
    let mut bench = Bench::running(&agent(&[Modern]));
    assert_eq!(
        bench.feed(Client, &request("3", "initialize", V2)),
        [format!("0 {}", request("2", "proxy/initialize", V2))]
    );
    let mut bench = Bench::running(&nested(&[Legacy]));
    assert_eq!(
        bench.feed(Client, &request("3", "_proxy/initialize", V2)),
        [format!("0 {}", request("2", "_proxy/initialize", V2))]
    );
    let mut bench = Bench::running(&nested(&[]));
    let sent = bench.feed(Client, &request("3", "proxy/initialize", V2));
    assert_eq!(sent, [format!("client {}", request("2", "proxy/successor", &inner("initialize", V2)))]);
}

#[test]
fn traffic_before_the_answer_is_forwarded_as_it_comes() {
    let mut bench = Bench::opening(&agent(&[Legacy]));
    assert_eq!(bench.feed(Client, &request("1", "foo/bar", "{}")), [format!("0 {}", request("2", "foo/bar", "{}"))]);
    let sent = bench.feed(Component(1), &notice("early", "{}"));
    assert_eq!(sent, [format!("0 {}", notice("_proxy/successor", &inner("early", "{}")))]);
}
