//! The table of spec §5.6, row by row. Its first two rows, in which nothing is tried, are for the
//! connector itself.

use serde_json::json;

use super::*;

fn frame(message: &Value) -> Frame {
    Frame::parse(message.to_string().into())
}

fn initialize(params: Value) -> Frame {
    frame(&json!({ "jsonrpc": "2.0", "id": "two", "method": "initialize", "params": params }))
}

fn plain() -> Value {
    json!({ "protocolVersion": 2, "info": { "name": "n", "version": "v" }, "capabilities": {} })
}

fn selects(version: Value) -> Frame {
    frame(&json!({ "jsonrpc": "2.0", "id": "two", "result": { "protocolVersion": version, "x": 1.5 } }))
}

/// What a client of version 1 sends that says the same.
fn as_v1(params: &Value) -> Frame {
    let told: Value = serde_json::from_slice(&to_v1(params.to_string().as_bytes())).expect("JSON");
    frame(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": told }))
}

fn falls_back(heard: &Heard) -> Option<bool> {
    match heard {
        Heard::FallBack { reuse } => Some(*reuse),
        Heard::Deliver => None,
        other => panic!("an answer, not {other:?}"),
    }
}

#[test]
fn the_first_message_is_an_initialize() {
    for first in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": plain() }),
        json!({ "jsonrpc": "2.0", "method": "initialize", "params": plain() }),
        json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
        json!([{ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": plain() }]),
        json!({}),
        json!(1),
    ] {
        let error = Attempt::begin(&frame(&first), true).expect_err("no initialize");
        assert_eq!(i32::from(error.code), -32600, "{first}");
    }
    assert!(Attempt::begin(&initialize(plain()), true).is_ok());
}

#[test]
fn the_answer_says_who_goes_on() {
    let error = frame(&json!({ "jsonrpc": "2.0", "id": "two", "error": { "code": -32022, "message": "" } }));
    for (answer, with_v1, without) in [
        (selects(json!(1)), Some(true), None),
        (selects(json!(2)), None, None),
        (selects(json!(0)), None, None),
        (selects(json!(3)), None, None),
        (selects(json!("1")), None, None),
        (selects(json!(null)), None, None),
        // A refusal is no permission to try again with version 1.
        (error, None, None),
        (frame(&json!({ "jsonrpc": "2.0", "id": "two", "result": {}, "error": {} })), None, None),
    ] {
        for (v1, leads) in [(true, with_v1), (false, without)] {
            let attempt = Attempt::begin(&initialize(plain()), v1).expect("an initialize");
            assert_eq!(falls_back(&attempt.hear(&answer)), leads, "{answer:?} {v1}");
        }
    }
    // Who asked for version 1 gets it.
    let low = Attempt::begin(&initialize(json!({ "protocolVersion": 1 })), true).expect("an initialize");
    assert_eq!(falls_back(&low.hear(&selects(json!(1)))), None);
}

#[test]
fn an_answer_in_an_array_counts_and_is_not_reused() {
    let attempt = Attempt::begin(&initialize(plain()), true).expect("an initialize");
    let array = |version: i64| {
        frame(&json!([
            { "jsonrpc": "2.0", "method": "note" },
            { "jsonrpc": "2.0", "id": "two", "result": { "protocolVersion": version } },
        ]))
    };
    assert_eq!(falls_back(&attempt.hear(&array(1))), Some(false));
    assert_eq!(falls_back(&attempt.hear(&array(2))), None);
}

#[test]
fn what_comes_before_the_answer_reaches_no_client() {
    let attempt = Attempt::begin(&initialize(plain()), true).expect("an initialize");
    for ignored in [
        json!({ "jsonrpc": "2.0", "method": "session/update" }),
        json!({ "jsonrpc": "2.0", "id": "other", "result": { "protocolVersion": 1 } }),
        json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": 1, "message": "" } }),
        json!({ "jsonrpc": "2.0", "id": 2, "result": 1, "error": {} }),
        json!([{ "jsonrpc": "2.0", "method": "session/update" }]),
        json!("noise"),
    ] {
        assert!(matches!(attempt.hear(&frame(&ignored)), Heard::Ignore), "{ignored}");
    }
    for (early, codes) in [
        (json!({ "jsonrpc": "2.0", "id": "two", "method": "fs/read" }), json!(-32600)),
        (json!({}), json!(-32600)),
        (
            json!([{ "jsonrpc": "2.0", "id": 7, "method": "fs/read" }, { "jsonrpc": "2.0", "method": "n" }]),
            json!([-32600]),
        ),
    ] {
        let Heard::Refuse(answer) = attempt.hear(&frame(&early)) else { panic!("refused: {early}") };
        let answer: Value = serde_json::from_slice(&answer.into_text()).expect("JSON");
        let codes_of = |one: &Value| one["error"]["code"].clone();
        let got = answer.as_array().map_or_else(|| codes_of(&answer), |all| all.iter().map(codes_of).collect());
        assert_eq!(got, codes, "{early}");
    }
}

#[test]
fn the_connection_is_reused_when_the_agent_has_heard_exactly_the_same() {
    let full = json!({
        "protocolVersion": 2,
        "info": { "name": "n", "version": "v", "title": "t" },
        "capabilities": { "auth": { "terminal": {}, "_meta": { "a": 1 } }, "_meta": { "k": [1] } },
        "_meta": { "m": 1 },
    });
    let answer = selects(json!(1));
    for params in [plain(), full] {
        let attempt = Attempt::begin(&initialize(params.clone()), true).expect("an initialize");
        assert_eq!(falls_back(&attempt.hear(&answer)), Some(true), "{params}");
        let first = as_v1(&params);
        let delivered = attempt.same(&first, &answer).expect("the same").into_text();
        // The original answer with the id of this client, and nothing else changed.
        let original = std::str::from_utf8(answer.text()).expect("text").replace(r#""two""#, "1");
        assert_eq!(delivered, original.as_bytes());
        // Anything else that it says makes it another initialize.
        let first: Value = serde_json::from_slice(first.text()).expect("JSON");
        for (path, other) in [
            ("/params/clientCapabilities/terminal", json!(true)),
            ("/params/clientInfo", json!({ "name": "other", "version": "v" })),
            ("/params/protocolVersion", json!(2)),
            ("/params", json!({ "protocolVersion": 1 })),
            ("/method", json!("session/new")),
        ] {
            let mut changed = first.clone();
            *changed.pointer_mut(path).expect(path) = other;
            assert!(attempt.same(&frame(&changed), &answer).is_none(), "{path}");
        }
        let mut more = first.clone();
        more["params"]["unknown"] = json!(1);
        assert!(attempt.same(&frame(&more), &answer).is_none(), "an unknown member");
        assert!(attempt.same(&frame(&json!([first])), &answer).is_none(), "an array");
    }
}

#[test]
fn what_version_one_cannot_say_needs_a_connection_of_its_own() {
    for params in [
        // Reading and writing it would change something.
        json!({ "protocolVersion": 2, "info": { "name": "n", "version": "v" } }),
        json!({ "protocolVersion": 2, "info": { "name": "n", "version": "v" }, "capabilities": {}, "x": 1 }),
        json!({ "protocolVersion": 2, "info": { "name": "n", "version": "v", "x": 1 }, "capabilities": {} }),
        json!({ "protocolVersion": 2, "info": { "name": "n", "version": "v" }, "capabilities": { "x": {} } }),
        json!({ "protocolVersion": 2, "info": { "name": "n", "version": "v" }, "capabilities": null }),
        json!({ "protocolVersion": 2, "info": { "name": "n", "version": "v" }, "capabilities": {}, "_meta": null }),
        json!({ "protocolVersion": 2, "info": { "name": "n", "version": "v" }, "capabilities": { "auth": 1 } }),
        json!({ "protocolVersion": 2, "info": 1, "capabilities": {} }),
        // Version 1 has a word for a terminal, and none for what is said about it.
        json!({
            "protocolVersion": 2,
            "info": { "name": "n", "version": "v" },
            "capabilities": { "auth": { "terminal": { "_meta": { "k": 1 } } } },
        }),
    ] {
        let attempt = Attempt::begin(&initialize(params.clone()), true).expect("an initialize");
        assert_eq!(falls_back(&attempt.hear(&selects(json!(1)))), Some(false), "{params}");
        assert!(attempt.same(&as_v1(&params), &selects(json!(1))).is_none(), "{params}");
    }
    let twice = r#"{"jsonrpc":"2.0","id":"two","method":"initialize","params":{"protocolVersion":2,
        "info":{"name":"n","version":"v"},"info":{"name":"n","version":"v"},"capabilities":{}}}"#;
    let attempt = Attempt::begin(&Frame::parse(twice.into()), true).expect("an initialize");
    assert_eq!(falls_back(&attempt.hear(&selects(json!(1)))), Some(false), "a member that occurs twice");
}

#[test]
fn a_client_that_went_on_leaves_nothing_to_reuse() {
    let mut attempt = Attempt::begin(&initialize(plain()), true).expect("an initialize");
    attempt.client_went_on();
    assert_eq!(falls_back(&attempt.hear(&selects(json!(1)))), Some(false));
    assert!(attempt.same(&as_v1(&plain()), &selects(json!(1))).is_none());
}

#[test]
fn debug_shows_no_payload() {
    let mut params = plain();
    params["info"]["name"] = json!("SECRET");
    let attempt = Attempt::begin(&initialize(params), true).expect("an initialize");
    assert!(attempt.heard_as.is_some(), "it is kept");
    assert_eq!(format!("{attempt:?}"), "Attempt { may_fall_back: true, reuse: true, .. }");
}
