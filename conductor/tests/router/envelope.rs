//! The successor envelope: E1 to E8.

use greenroom_conductor::{
    ProxyDialect::{Legacy, Modern},
    dropped,
};

use crate::harness::*;

const BOTH: [&str; 2] = ["_proxy/successor", "proxy/successor"];

#[test]
fn an_envelope_without_a_method_is_invalid() {
    let mut bench = Bench::running(&agent(&[Legacy]));
    for name in BOTH {
        for params in ["{}", r#"{"method":5,"params":{}}"#, r#"{"params":{}}"#, "[]", "null"] {
            refused(&bench.feed(Component(0), &request("5", name, params)), "0", "5", -32602);
            let noted = bench.feed(Component(0), &notice(name, params));
            assert_eq!(noted, [format!("drop: {}", dropped::MISPLACED)]);
        }
        let bare = format!(r#"{{"jsonrpc":"2.0","id":5,"method":"{name}"}}"#);
        let data = refused(&bench.feed(Component(0), &bare), "0", "5", -32602);
        assert_eq!(data["phase"], "deserialization");
    }
    assert!(bench.router.is_idle());
}

#[test]
fn absent_and_null_params_both_mean_none() {
    let mut bench = Bench::running(&agent(&[Legacy]));
    for params in [r#"{"method":"a/b"}"#, r#"{"method":"a/b","params":null}"#, r#"{"method":"a/b","params" : null }"#] {
        let noted = bench.feed(Component(0), &notice("_proxy/successor", params));
        assert_eq!(noted, [r#"1 {"jsonrpc":"2.0","method":"a/b"}"#]);
    }
    // Released readers lose an envelope without the member, so it is always written.
    for text in [r#"{"jsonrpc":"2.0","method":"a/b"}"#, r#"{"jsonrpc":"2.0","method":"a/b","params":null}"#] {
        let noted = bench.feed(Component(1), text);
        assert_eq!(noted, [format!("0 {}", notice("_proxy/successor", &inner("a/b", "null")))]);
    }
}

#[test]
fn metadata_of_the_envelope_stays_on_its_hop() {
    let mut bench = Bench::running(&nested(&[Modern]));
    for meta in [r#""_meta":{"hop":1}"#, r#""meta":{"hop":1}"#, r#""_meta":7"#] {
        let params = format!(r#"{{{meta},"method":"a/b","params":[1,{{"_meta":{{"k":1}}}}]}}"#);
        let noted = bench.feed(Component(0), &notice("proxy/successor", &params));
        let kept = inner("a/b", r#"[1,{"_meta":{"k":1}}]"#);
        assert_eq!(noted, [format!("client {}", notice("proxy/successor", &kept))]);
        let noted = bench.feed(Client, &notice("_proxy/successor", &params));
        assert_eq!(noted, [format!("0 {}", notice("proxy/successor", &kept))]);
    }
}

#[test]
fn both_spellings_are_envelopes_on_every_proxy_hop() {
    let mut bench = Bench::running(&agent(&[Legacy, Modern]));
    for name in BOTH {
        for (from, to) in [(0, 1), (1, 2)] {
            let noted = bench.feed(Component(from), &notice(name, &inner("a/b", "{}")));
            assert_eq!(noted, [format!("{to} {}", notice("a/b", "{}"))]);
        }
    }
}

#[test]
fn envelopes_do_not_nest() {
    for (shape, hop, to) in [
        (agent(&[Legacy]), Component(0), "0"),
        (nested(&[Legacy]), Component(0), "0"),
        (nested(&[Legacy]), Client, "client"),
    ] {
        let mut bench = Bench::running(&shape);
        for (outer, name) in BOTH.iter().flat_map(|outer| BOTH.map(|name| (outer, name))) {
            let nested = inner(name, &inner("a/b", "{}"));
            refused(&bench.feed(hop, &request("5", outer, &nested)), to, "5", -32600);
            assert_eq!(bench.feed(hop, &notice(outer, &nested)), [format!("drop: {}", dropped::MISPLACED)]);
        }
        assert!(bench.router.is_idle());
    }
}

#[test]
fn peers_without_a_successor_may_not_use_envelopes() {
    let mut bench = Bench::running(&agent(&[Legacy]));
    for name in BOTH {
        for (hop, to) in [(Client, "client"), (Component(1), "1")] {
            for params in [inner("a/b", "{}"), "{}".into(), inner("initialize", V1)] {
                refused(&bench.feed(hop, &request("5", name, &params)), to, "5", -32600);
                assert_eq!(bench.feed(hop, &notice(name, &params)), [format!("drop: {}", dropped::MISPLACED)]);
            }
        }
    }
    assert!(bench.router.is_idle());
}

#[test]
fn params_of_three_hops_are_the_same_bytes() {
    let params = r#"{ "b":1.0e+2,"a":"\u00e9\/é","a2":[ null , true,{}],"n":9007199254740993,"_meta":{"x" : 0.10} }"#;
    let mut bench = Bench::running(&agent(&[Legacy, Modern]));
    assert_eq!(bench.feed(Client, &request("5", "a/b", params)), [format!("0 {}", request("2", "a/b", params))]);
    let forwarded = request("\"p\"", "_proxy/successor", &inner("a/b", params));
    assert_eq!(bench.feed(Component(0), &forwarded), [format!("1 {}", request("1", "a/b", params))]);
    let forwarded = request("77", "proxy/successor", &inner("a/b", params));
    assert_eq!(bench.feed(Component(1), &forwarded), [format!("2 {}", request("1", "a/b", params))]);
    assert_eq!(bench.feed(Component(2), &result("1", params)), [format!("1 {}", result("77", params))]);
    assert_eq!(bench.feed(Component(1), &result("1", params)), [format!("0 {}", result("\"p\"", params))]);
    assert_eq!(bench.feed(Component(0), &result("2", params)), [format!("client {}", result("5", params))]);
    assert!(bench.router.is_idle());
}

#[test]
fn escapes_and_depth_are_valid_inside_an_envelope() {
    let deep = format!("{}1.0{}", "[".repeat(300), "]".repeat(300));
    for (params, method, forwarded) in [
        (r#"{"method":"session\/new","params":{"a":1.0}}"#.to_owned(), r"session\/new", r#"{"a":1.0}"#),
        (r#"{"\u006dethod":"a/b","params":[1e2]}"#.to_owned(), "a/b", "[1e2]"),
        (r#"{"_\u006deta":{},"params":{},"method":"a/b"}"#.to_owned(), "a/b", "{}"),
        (inner("a/b", &deep), "a/b", &deep[..]),
    ] {
        let mut bench = Bench::running(&agent(&[Legacy]));
        let sent = bench.feed(Component(0), &request("5", "_proxy/successor", &params));
        assert_eq!(sent, [format!("1 {}", request("1", method, forwarded))]);
    }
    // What an escaped name means is the same, too.
    let mut bench = Bench::running(&agent(&[Legacy]));
    bench.feed(Component(0), &request("5", "_proxy/successor", &inner("a/b", "{}")));
    let cancel = notice(r"_proxy\/successor", &inner(r"$\/cancel_request", r#"{"requestId":5}"#));
    let sent = bench.feed(Component(0), &cancel);
    assert_eq!(sent, [format!("1 {}", notice("$/cancel_request", r#"{"requestId":1}"#))]);
    refused(
        &bench.feed(Component(0), &request("6", "_proxy/successor", &inner(r"proxy\/initialize", V1))),
        "0",
        "6",
        -32600,
    );
    let sent = bench.feed(
        Component(0),
        r#"{"jsonrpc":"2.0","method":"_proxy/successor","params":{"\u006dethod":"n","params":null}}"#,
    );
    assert_eq!(sent, [r#"1 {"jsonrpc":"2.0","method":"n"}"#]);
}
