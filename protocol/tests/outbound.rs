//! What is written can be read again, byte for byte.

use bytes::Bytes;
use greenroom_protocol::{Dialect, Frame, FrameKind, Outbound, RawId, RequestId, Successor, quoted};
use serde_json::value::RawValue;

/// Payloads that any rewriting would change.
const PAYLOADS: [&str; 7] = [
    r#"{"z":1,"a":{"b":[1.0,1e3,-0]},"z":2}"#,
    "[ 1 ,\t2 ]",
    "{}",
    r#"{"text":"\u0041\/é😀\ud800"}"#,
    r#"{"n":123456789012345678901234567890,"f":0.10}"#,
    "{\n  \"pretty\": true\n}",
    "[[[[]]]]",
];

const IDS: [&str; 6] = ["1", "-7", "\"1\"", "null", r#""\u0041\"""#, "9007199254740993"];

fn frame(text: impl AsRef<str>) -> Frame {
    Frame::parse(Bytes::copy_from_slice(text.as_ref().as_bytes()))
}

fn id(text: &str) -> RawId {
    RawId::from_json(text.as_bytes()).expect("utf-8")
}

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

/// The pieces one after the other; must be what the other ways of writing give.
fn written(outbound: Outbound) -> String {
    let pieces = outbound.pieces().concat();
    assert_eq!(pieces.len(), outbound.len());
    assert_eq!(outbound.is_empty(), pieces.is_empty());
    assert_eq!(outbound.has_line_end(), pieces.contains(&b'\n') || pieces.contains(&b'\r'));
    assert_eq!(outbound.clone().into_frame().text(), &pieces);
    assert_eq!(outbound.into_text(), pieces);
    let text = String::from_utf8(pieces).expect("utf-8");
    assert!(serde_json::from_str::<&RawValue>(&text).is_ok(), "{text}");
    text
}

#[test]
fn calls_keep_id_method_and_params() {
    for spelled in IDS {
        for payload in PAYLOADS {
            let frame = frame(written(Outbound::call(Some(&id(spelled)), b"\"x/y\"", bytes(payload))));
            assert_eq!((frame.kind(), frame.method()), (FrameKind::Request, "x/y"));
            assert_eq!(frame.part(frame.envelope().id), spelled);
            assert_eq!(frame.part(frame.envelope().params), payload);
        }
    }
    let frame = frame(written(Outbound::call(None, quoted("a\"\\\u{1}é").as_bytes(), Bytes::new())));
    assert_eq!((frame.kind(), frame.method()), (FrameKind::Notification, "a\"\\\u{1}é"));
    assert!(!frame.envelope().params.is_present(), "no params are left out");
}

#[test]
fn answers_keep_id_and_body() {
    for spelled in IDS {
        for payload in PAYLOADS.iter().chain(&["null", "\"text\"", "0.10"]) {
            let frame = frame(written(Outbound::result(&id(spelled), bytes(payload))));
            assert_eq!(frame.kind(), FrameKind::Result);
            assert_eq!(frame.part(frame.envelope().id), spelled);
            assert_eq!(frame.part(frame.envelope().result), *payload);
        }
        let error = r#"{"x":1,"code":-1,"message":"m","data":null}"#;
        let frame = frame(written(Outbound::error(&id(spelled), bytes(error))));
        assert_eq!(frame.kind(), FrameKind::Error);
        assert_eq!((frame.part(frame.envelope().id), frame.part(frame.envelope().error)), (spelled, error));
    }
}

#[test]
fn another_id_changes_nothing_else() {
    for (before, after) in [
        (r#"{"jsonrpc":"2.0","id":"#, r#","method":"m","params":{"id":1, "text":"\u0041 long enough to be shared"}}"#),
        (r#" {"params":{"id":1,"text":"long enough to be shared"}, "method":"m","jsonrpc":"2.0","id": "#, " } "),
        (r#"{"jsonrpc":"2.0","id":"#, r#","result":[]}"#),
    ] {
        for old in IDS {
            for new in IDS {
                let outbound = Outbound::with_id(&frame(format!("{before}{old}{after}")), &id(new));
                assert_eq!(written(outbound), format!("{before}{new}{after}"));
            }
        }
    }
    let text = r#"{"jsonrpc":"2.0","method":"m"}"#;
    assert_eq!(written(Outbound::with_id(&frame(text), &id("1"))), text, "a notification gets no id");
    assert_eq!(written(Outbound::whole(&frame(text))), text);
}

#[test]
fn successor_envelopes_keep_the_message_inside() {
    for dialect in [Dialect::Legacy, Dialect::Modern] {
        for payload in PAYLOADS {
            for outer in [Some(id("\"7\"")), None] {
                let text = written(Outbound::wrapped(dialect, outer.as_ref(), b"\"a\\/b\"", bytes(payload)));
                let frame = frame(text);
                assert_eq!(frame.raw_id(), outer);
                assert_eq!(frame.method(), dialect.successor());
                let inner = Successor::open(&frame).expect("an envelope").expect("well-formed");
                assert_eq!((inner.dialect, &*inner.method_in(&frame)), (dialect, "a/b"));
                assert_eq!(frame.part(inner.method), r#""a\/b""#, "relays pass the spelling on");
                assert_eq!(frame.part(inner.params), payload);
            }
        }
        let text = written(Outbound::wrapped(dialect, None, b"\"m\"", Bytes::new()));
        assert!(text.ends_with(r#""params":{"method":"m","params":null}}"#), "{text}");
        let frame = frame(text);
        let inner = Successor::open(&frame).expect("an envelope").expect("well-formed");
        assert!(!inner.params.is_present(), "null stands for no params");
    }
}

#[test]
fn successor_envelopes_are_read_as_leniently_as_messages() {
    let open = |params: &str| {
        let frame = frame(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"_proxy/successor","params":{params}}}"#));
        let inner = Successor::open(&frame).expect("an envelope");
        inner.map(|inner| (inner.method_in(&frame).into_owned(), frame.part(inner.params).to_owned()))
    };
    let deep = format!("{}1{}", "[".repeat(400), "]".repeat(400));
    for (params, expected) in [
        (r#"{"method":"m"}"#.to_owned(), ("m", "")),
        (r#" { "params" : [ 1 ] , "_meta":7, "meta":{}, "method" : "m" } "#.to_owned(), ("m", "[ 1 ]")),
        (r#"{"m\u0065thod":"\u006d","p\u0061rams":{}}"#.to_owned(), ("m", "{}")),
        (format!(r#"{{"method":"m","params":{deep}}}"#), ("m", &deep)),
    ] {
        let (method, inner) = open(&params).unwrap_or_else(|error| panic!("{params}: {error}"));
        assert_eq!((&*method, &*inner), expected, "{params}");
    }
    for params in [
        "null",
        "[]",
        "{}",
        r#"{"params":{}}"#,
        r#"{"method":null}"#,
        r#"{"method":1}"#,
        r#"{"method":"\ud800"}"#,
        r#"{"method":"a","method":"b"}"#,
        r#"{"method":"a","\u006dethod":"b"}"#,
        r#"{"method":"a","params":{},"params":{}}"#,
    ] {
        assert_eq!(i32::from(open(params).expect_err(params).code), -32602, "{params}");
    }
    assert!(Successor::open(&frame(r#"{"jsonrpc":"2.0","method":"session/prompt"}"#)).is_none());
    assert!(Successor::open(&frame(r#"{"jsonrpc":"2.0","method":"_proxy/successor/send/request"}"#)).is_none());
}

#[test]
fn arrays_hold_their_entries_unchanged() {
    let entries: Vec<Outbound> = PAYLOADS.iter().map(|payload| Outbound::result(&id("1"), bytes(payload))).collect();
    for count in 1..=entries.len() {
        let array = frame(written(Outbound::array(&entries[..count])));
        assert_eq!(array.kind(), FrameKind::Batch);
        assert_eq!(array.entries().len(), count);
        for (entry, payload) in array.entries().iter().zip(PAYLOADS) {
            assert_eq!(entry.part(entry.envelope().result), payload);
        }
    }
}

#[test]
fn frames_written_here_are_like_frames_read() {
    for method in ["session/prompt", "a\"b", "é😀", "\n", ""] {
        for params in ["", "{}", "[1]"] {
            let written = [
                Frame::request(&RequestId::Number(-3), method, params.as_bytes()),
                Frame::request(&RequestId::Str("a\"\n".into()), method, params.as_bytes()),
                Frame::request(&RequestId::Null, method, params.as_bytes()),
                Frame::notification(method, params.as_bytes()),
            ];
            for frame in written {
                let read = Frame::parse(frame.text().clone());
                assert_eq!(frame.envelope(), read.envelope());
                assert_eq!((frame.kind(), frame.method()), (read.kind(), method));
                assert_eq!(frame.request_id(), read.request_id());
                assert_eq!(frame.share(frame.envelope().params), params);
            }
        }
    }
}

#[test]
fn content_never_shows_in_debug_output() {
    let frame = frame(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"key":"sesame"}}"#);
    let shown = format!("{frame:?} {:?} {:?}", Outbound::whole(&frame), Outbound::with_id(&frame, &id("2")));
    assert!(!shown.contains("sesame") && !shown.contains("115"), "{shown}");
}
