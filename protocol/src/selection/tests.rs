//! The tables of spec §5.2 and §5.3, cell by cell.

use serde_json::{Value, json};

use super::*;

const V1: Implementations = Implementations {
    v1: true,
    #[cfg(feature = "unstable_protocol_v2")]
    v2: false,
};
const NONE: Implementations = Implementations {
    v1: false,
    #[cfg(feature = "unstable_protocol_v2")]
    v2: false,
};

fn frame(message: &Value) -> Frame {
    Frame::parse(message.to_string().into())
}

fn call(id: Value, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn note(method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": method })
}

fn hello(version: Value) -> Value {
    json!({ "protocolVersion": version, "info": { "name": "n", "version": "v" }, "x": { "kept": [1] } })
}

/// What a frame leads to, short enough for a table.
#[derive(Debug, PartialEq)]
enum Led {
    /// The version of the implementation, and the version that its frame asks for.
    To(u16, Option<u16>),
    /// The codes of the errors in the answer.
    Refused(Vec<i64>),
    Ignored,
}

fn value(frame: &Frame) -> Value {
    serde_json::from_slice(frame.text()).expect("JSON")
}

fn answer(choice: Choice) -> Value {
    match choice {
        Choice::Answer(answer) => value(&answer.into_frame()),
        other => panic!("an answer, not {other:?}"),
    }
}

fn led(choice: Choice) -> Led {
    match choice {
        Choice::Ignored => Led::Ignored,
        Choice::Selected(implementation, frame) => {
            let version = Version::find(frame.envelope().params.of(frame.text())).map(|found| found.number);
            let number = match implementation {
                Implementation::V1 => 1,
                #[cfg(feature = "unstable_protocol_v2")]
                Implementation::V2 => 2,
            };
            Led::To(number, version)
        }
        answered @ Choice::Answer(_) => {
            let answered = answer(answered);
            let all = answered.as_array().cloned().unwrap_or_else(|| vec![answered]);
            Led::Refused(all.iter().map(|one| one["error"]["code"].as_i64().expect("an error")).collect())
        }
    }
}

fn asks(selection: Selection, method: &str, version: Value) -> Led {
    led(selection.choose(&frame(&call(json!(1), method, hello(version)))))
}

fn refused(code: i64) -> Led {
    Led::Refused(vec![code])
}

#[test]
fn an_agent_of_version_one_alone_gets_everything() {
    let router = Selection::agent(V1);
    for (asked, gets) in [
        (json!(0), Some(1)),
        (json!(1), Some(1)),
        (json!(2), Some(1)),
        (json!(3), Some(1)),
        (json!(65535), Some(1)),
        // As they are: it answers as it would alone.
        (json!("1"), None),
        (json!(-1), None),
        (json!(65536), None),
        (Value::Null, None),
    ] {
        assert_eq!(asks(router, "initialize", asked.clone()), Led::To(1, gets), "{asked}");
    }
    for first in [
        call(json!(1), "session/new", json!({})),
        call(json!(null), "initialize", hello(json!(1))),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize" }),
        json!({ "jsonrpc": "1.0", "id": 1, "method": "initialize" }),
        json!({}),
    ] {
        let first = frame(&first);
        let Choice::Selected(Implementation::V1, got) = router.choose(&first) else { panic!("{first:?}") };
        assert_eq!(got.text(), first.text(), "unchanged");
    }
}

#[test]
fn a_frame_that_asks_for_the_selected_version_is_not_touched() {
    let spelled =
        r#" {"id" : 1.0e0 ,"params":{"x":1.50e1,"protocolVersion" : 1 },"jsonrpc":"2.0","method":"initialize"}"#;
    let spelled = spelled.replace("1.0e0", "\"a\\u0041\"");
    let Choice::Selected(_, got) = Selection::agent(V1).choose(&Frame::parse(spelled.clone().into())) else {
        panic!("selected");
    };
    assert_eq!(got.text(), spelled.as_bytes());
    // Version 0 is replaced in place.
    let zero = spelled.replace("protocolVersion\" : 1", "protocolVersion\" : 0");
    let Choice::Selected(_, got) = Selection::agent(V1).choose(&Frame::parse(zero.into())) else { panic!("selected") };
    assert_eq!(got.text(), spelled.as_bytes());
    // A later one is translated, and nothing else of the frame changes.
    let later = frame(&call(json!("i"), "initialize", hello(json!(7))));
    let Choice::Selected(_, got) = Selection::agent(V1).choose(&later) else { panic!("selected") };
    let got = value(&got);
    assert_eq!((&got["id"], &got["params"]["protocolVersion"]), (&json!("i"), &json!(1)));
    assert_eq!(got["params"]["clientInfo"], json!({ "name": "n", "version": "v" }));
}

#[test]
fn a_router_without_implementations_serves_no_version() {
    let router = Selection::agent(NONE);
    for asked in [0, 1, 2, 3, 65535] {
        let answer = answer(router.choose(&frame(&call(json!(1), "initialize", hello(json!(asked))))));
        assert_eq!(answer["error"]["code"], -32022, "{asked}");
        assert_eq!(answer["error"]["data"], json!({ "requested": asked, "supported": [] }));
    }
    assert_eq!(asks(router, "initialize", json!("1")), refused(-32602));
    assert_eq!(asks(router, "session/new", json!(1)), refused(-32600));
    assert_eq!(led(router.choose(&Frame::parse("{".into()))), refused(-32700));
}

#[test]
fn what_wants_no_answer_selects_nothing() {
    for router in [Selection::agent(V1), Selection::agent(NONE), Selection::proxy(V1, ProxyVersions::ByDialect)] {
        for first in [
            note("initialize"),
            note("session/cancel"),
            json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
            json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": 1, "message": "" } }),
            json!({ "jsonrpc": "2.0", "id": 1, "result": {}, "error": {} }),
            json!([{ "jsonrpc": "2.0", "id": 1, "result": {} }, { "result": 1 }]),
            json!([note("a"), { "jsonrpc": "2.0", "id": 1, "result": {} }]),
            json!("noise"),
        ] {
            assert_eq!(led(router.choose(&frame(&first))), Led::Ignored, "{first}");
        }
    }
}

#[test]
fn the_first_call_of_a_batch_selects() {
    let router = Selection::agent(V1);
    let response = json!({ "jsonrpc": "2.0", "id": 9, "result": {} });
    let whole = frame(&json!([
        response,
        call(json!(1), "initialize", hello(json!(1))),
        call(json!(2), "session/new", json!({})),
        note("x"),
        {},
    ]));
    let Choice::Selected(Implementation::V1, got) = router.choose(&whole) else { panic!("selected") };
    assert_eq!(got.text(), whole.text(), "the whole frame, unchanged");
    // Only the initialize changes with its version.
    let entries = [response, call(json!(1), "initialize", hello(json!(3))), call(json!(2), "x", json!({ "k": 1.5 }))];
    let Choice::Selected(Implementation::V1, got) = router.choose(&frame(&json!(entries))) else { panic!("selected") };
    let got = value(&got);
    assert_eq!((&got[0], &got[2]), (&entries[0], &entries[2]));
    assert_eq!(got[1]["params"]["protocolVersion"], 1);
    assert_eq!(got.as_array().map(Vec::len), Some(3));
    // Anything else first: version 1 answers as it would alone.
    let other = frame(&json!([note("x"), call(json!(1), "initialize", hello(json!(1)))]));
    let Choice::Selected(Implementation::V1, got) = router.choose(&other) else { panic!("selected") };
    assert_eq!(got.text(), other.text());
}

#[test]
fn a_refused_batch_has_a_place_for_each_entry_that_wants_an_answer() {
    let router = Selection::agent(NONE);
    let answers = answer(router.choose(&frame(&json!([
        { "jsonrpc": "2.0", "id": 9, "result": {} },
        call(json!("one"), "initialize", hello(json!(2))),
        note("x"),
        call(json!(null), "session/new", json!({})),
        {},
    ]))));
    let told: Vec<_> =
        answers.as_array().expect("an array").iter().map(|one| (&one["id"], &one["error"]["code"])).collect();
    assert_eq!(told, [(&json!("one"), &json!(-32022)), (&json!(null), &json!(-32600)), (&json!(null), &json!(-32600))]);
    let other = json!([call(json!(1), "x", json!({})), call(json!(2), "initialize", hello(json!(1)))]);
    assert_eq!(led(router.choose(&frame(&other))), Led::Refused(vec![-32600, -32600]));
}

#[test]
fn a_proxy_is_selected_by_its_own_initialize_only() {
    for (versions, method, asked, leads) in [
        (ProxyVersions::ByDialect, "_proxy/initialize", json!(0), refused(-32600)),
        (ProxyVersions::ByDialect, "_proxy/initialize", json!(1), Led::To(1, Some(1))),
        (ProxyVersions::ByDialect, "_proxy/initialize", json!(2), refused(-32600)),
        (ProxyVersions::ByDialect, "_proxy/initialize", json!(3), refused(-32600)),
        (ProxyVersions::ByDialect, "_proxy/initialize", json!("1"), refused(-32602)),
        (ProxyVersions::ByDialect, "proxy/initialize", json!(0), Led::To(1, Some(1))),
        (ProxyVersions::ByDialect, "proxy/initialize", json!(1), Led::To(1, Some(1))),
        (ProxyVersions::ByDialect, "proxy/initialize", json!(2), Led::To(1, Some(1))),
        (ProxyVersions::ByDialect, "proxy/initialize", json!(3), Led::To(1, Some(1))),
        (ProxyVersions::ByDialect, "proxy/initialize", json!(null), refused(-32602)),
        (ProxyVersions::Exact, "proxy/initialize", json!(2), refused(-32600)),
        (ProxyVersions::Exact, "proxy/initialize", json!(1), Led::To(1, Some(1))),
        (ProxyVersions::Negotiate, "_proxy/initialize", json!(2), Led::To(1, Some(1))),
        (ProxyVersions::ByDialect, "initialize", json!(1), refused(-32600)),
        (ProxyVersions::ByDialect, "_proxy/successor", json!(1), refused(-32600)),
        (ProxyVersions::ByDialect, "session/new", json!(1), refused(-32600)),
    ] {
        let router = Selection::proxy(V1, versions);
        assert_eq!(asks(router, method, asked.clone()), leads, "{versions:?} {method} {asked}");
    }
    let router = Selection::proxy(V1, ProxyVersions::ByDialect);
    // What does not fit is refused before anything is started.
    let twice =
        r#"{"jsonrpc":"2.0","id":1,"method":"_proxy/initialize","params":{"protocolVersion":1,"_meta":{},"_meta":{}}}"#;
    assert_eq!(led(router.choose(&Frame::parse(twice.into()))), refused(-32602));
    let array = frame(&json!([call(json!(1), "_proxy/initialize", hello(json!(1)))]));
    let Choice::Selected(Implementation::V1, got) = router.choose(&array) else { panic!("selected") };
    assert_eq!(got.text(), array.text());
    assert_eq!(led(router.choose(&Frame::parse("[".into()))), refused(-32700), "a malformed frame selects nothing");
    let nobody = Selection::proxy(NONE, ProxyVersions::ByDialect);
    assert_eq!(asks(nobody, "_proxy/initialize", json!(1)), refused(-32600));
    assert_eq!(asks(nobody, "proxy/initialize", json!(1)), refused(-32022));
}

#[cfg(feature = "unstable_protocol_v2")]
mod v2 {
    use super::*;

    const V2: Implementations = Implementations { v1: false, v2: true };
    const BOTH: Implementations = Implementations { v1: true, v2: true };

    #[test]
    fn an_agent_of_version_two_alone_serves_two_and_later() {
        let router = Selection::agent(V2);
        for (asked, leads) in [
            (json!(0), refused(-32022)),
            (json!(1), refused(-32022)),
            (json!(2), Led::To(2, Some(2))),
            (json!(3), Led::To(2, Some(2))),
            (json!(65535), Led::To(2, Some(2))),
            (json!("2"), refused(-32602)),
            (json!(-2), refused(-32602)),
            (json!(null), refused(-32602)),
        ] {
            assert_eq!(asks(router, "initialize", asked.clone()), leads, "{asked}");
        }
        let low = answer(router.choose(&frame(&call(json!("i"), "initialize", hello(json!(1))))));
        assert_eq!(low["id"], "i");
        assert_eq!(low["error"]["data"], json!({ "requested": 1, "supported": [2] }));
        assert_eq!(asks(router, "session/new", json!(2)), refused(-32600));
        assert_eq!(led(router.choose(&Frame::parse("{".into()))), refused(-32700));
        assert_eq!(led(router.choose(&frame(&json!({})))), refused(-32600));
    }

    #[test]
    fn a_router_of_both_selects_the_highest_that_fits() {
        let router = Selection::agent(BOTH);
        for (asked, leads) in [
            (json!(0), Led::To(1, Some(1))),
            (json!(1), Led::To(1, Some(1))),
            (json!(2), Led::To(2, Some(2))),
            (json!(3), Led::To(2, Some(2))),
            (json!(65535), Led::To(2, Some(2))),
            // They do not select version 2.
            (json!("2"), Led::To(1, None)),
            (json!(65536), Led::To(1, None)),
            (json!(null), Led::To(1, None)),
        ] {
            assert_eq!(asks(router, "initialize", asked.clone()), leads, "{asked}");
        }
        assert_eq!(asks(router, "session/new", json!("x")), Led::To(1, None));
        // What is no message selects nothing, because there is a choice.
        assert_eq!(led(router.choose(&Frame::parse("{".into()))), refused(-32700));
        assert_eq!(led(router.choose(&frame(&json!([])))), refused(-32600));
    }

    #[test]
    fn an_initialize_that_selects_version_two_has_to_fit_it() {
        for router in [Selection::agent(V2), Selection::agent(BOTH)] {
            let unfit = json!({ "protocolVersion": 2, "info": 1 });
            assert_eq!(led(router.choose(&frame(&call(json!(1), "initialize", unfit)))), refused(-32602));
            let nameless = call(json!(null), "initialize", hello(json!(2)));
            let answer = answer(router.choose(&frame(&nameless)));
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(null), &json!(-32600)));
            // Later ones are made to fit, exact ones are not touched.
            let later = json!({ "protocolVersion": 9, "info": 1, "x": 1 });
            let Choice::Selected(_, got) = router.choose(&frame(&call(json!(1), "initialize", later))) else {
                panic!("selected");
            };
            let got = value(&got);
            assert_eq!((&got["params"]["info"]["name"], got["params"].get("x")), (&json!("unknown"), None));
            let exact = frame(&call(json!(1), "initialize", hello(json!(2))));
            let Choice::Selected(_, got) = router.choose(&exact) else { panic!("selected") };
            assert_eq!(got.text(), exact.text());
        }
        let batch =
            json!([call(json!(1), "initialize", json!({ "protocolVersion": 2 })), call(json!(2), "x", json!({}))]);
        assert_eq!(led(Selection::agent(BOTH).choose(&frame(&batch))), Led::Refused(vec![-32602, -32600]));
        let batch = json!([call(json!(1), "initialize", hello(json!(2))), call(json!(2), "x", json!({}))]);
        let Choice::Selected(Implementation::V2, got) = Selection::agent(BOTH).choose(&frame(&batch)) else {
            panic!("selected");
        };
        assert_eq!(value(&got), batch);
    }

    #[test]
    fn a_proxy_of_both_is_exact_or_negotiates() {
        use Led::To;
        let (legacy, modern) = ("_proxy/initialize", "proxy/initialize");
        for (implementations, method, asked, leads) in [
            (BOTH, legacy, 0, refused(-32600)),
            (BOTH, legacy, 1, To(1, Some(1))),
            (BOTH, legacy, 2, To(2, Some(2))),
            (BOTH, legacy, 3, refused(-32600)),
            (BOTH, modern, 0, To(1, Some(1))),
            (BOTH, modern, 1, To(1, Some(1))),
            (BOTH, modern, 2, To(2, Some(2))),
            (BOTH, modern, 3, To(2, Some(2))),
            (V2, legacy, 0, refused(-32600)),
            (V2, legacy, 1, refused(-32600)),
            (V2, legacy, 2, To(2, Some(2))),
            (V2, legacy, 3, refused(-32600)),
            (V2, modern, 0, refused(-32022)),
            (V2, modern, 1, refused(-32022)),
            (V2, modern, 2, To(2, Some(2))),
            (V2, modern, 3, To(2, Some(2))),
        ] {
            let router = Selection::proxy(implementations, ProxyVersions::ByDialect);
            assert_eq!(asks(router, method, json!(asked)), leads, "{implementations:?} {method} {asked}");
        }
        let router = Selection::proxy(BOTH, ProxyVersions::ByDialect);
        let unfit = call(json!(1), legacy, json!({ "protocolVersion": 2, "info": 1 }));
        assert_eq!(led(router.choose(&frame(&unfit))), refused(-32602));
        let nameless = call(json!(null), legacy, hello(json!(2)));
        assert_eq!(led(router.choose(&frame(&nameless))), refused(-32600));
        assert_eq!(asks(router, "session/new", json!(1)), refused(-32600), "whatever is configured");
    }
}
