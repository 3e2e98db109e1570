//! The scanner against `serde_json`: it never accepts more, and finds the same members.

mod reference;

use bytes::Bytes;
use greenroom_protocol::{Frame, FrameKind, scan};
use reference::check;
use serde_json::Value;
use serde_json::value::RawValue;

/// Texts that cover every production of the grammar and every envelope shape.
const BASES: [&str; 12] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"a":[1,-2.5e+3,true,false,null],"b":{"c":"d"}}}"#,
    r#"{"jsonrpc":"2.0","method":"x/y"}"#,
    r#"{"jsonrpc":"2.0","id":"a\"\\\/\b\f\n\r\té😀","result":{"":[[],{},[{}]]}}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"m","data":null}}"#,
    " \t\r\n{ \"jsonrpc\" : \"2.0\" ,\n\"id\"\t:\r0 , \"method\":\"中😀é\" , \"params\" : [ ] } \n",
    r#"{"x":"\ud83d\ude00 \ud800 \udc00","jsonrpc":"2.0","id":-0,"method":"a","params":null}"#,
    r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"a","extra":1E400,"more":0.0e-0}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":1.5,"note":"a string that is longer than the short loop of the scanner \" and goes on after it"}"#,
    r#"{"jsonrpc":"2.0","m\u0065thod":"a\/b","id":7}"#,
    r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b"},3]"#,
    r"{}",
];

#[test]
fn every_one_byte_mutant_is_read_as_serde_json_reads_it() {
    for base in BASES {
        check(base.as_bytes());
        let mut text = base.as_bytes().to_vec();
        for at in 0..text.len() {
            let original = text[at];
            for byte in 0..=255 {
                text[at] = byte;
                check(&text);
            }
            text[at] = original;
        }
        for at in 0..=text.len() {
            for byte in *b"\"\\{}[]:,0-.eEtnu \n\x00\x1f\x7f\xff\xc3" {
                let mut longer = text.clone();
                longer.insert(at, byte);
                check(&longer);
            }
            if at < text.len() {
                let mut shorter = text.clone();
                shorter.remove(at);
                check(&shorter);
            }
        }
    }
}

#[test]
fn every_truncation_is_malformed_or_noise() {
    for base in BASES {
        for end in 0..base.trim_end().len() {
            let text = &base.as_bytes()[..end];
            assert_eq!(scan(text), None, "{}", String::from_utf8_lossy(text));
            check(text);
            let kind = Frame::parse(Bytes::copy_from_slice(text)).kind();
            assert!(matches!(kind, FrameKind::Malformed | FrameKind::Noise), "{}", String::from_utf8_lossy(text));
        }
    }
}

#[test]
fn ordinary_messages_take_the_fast_path() {
    for base in &BASES[..8] {
        assert!(scan(base.as_bytes()).is_some(), "{base}");
    }
    for base in &BASES[8..11] {
        assert!(scan(base.as_bytes()).is_none(), "{base}");
    }
}

#[test]
fn any_depth_is_read() {
    for depth in (1..=600).chain([5_000, 200_000]) {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[0,{"a":"#, "},1]")] {
            let nested = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{nested}}}"#);
            let frame = Frame::parse(text.clone().into());
            assert_eq!(frame.kind(), FrameKind::Request, "depth {depth}");
            assert_eq!(frame.part(frame.envelope().params), nested);
            let unclosed = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{}}}"#, open.repeat(depth));
            assert_eq!(Frame::parse(unclosed.into()).kind(), FrameKind::Malformed, "depth {depth}");
            if (250..260).contains(&depth) {
                check(text.as_bytes());
            }
        }
    }
    let mut mixed = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":"#.to_owned();
    mixed.push_str(&"[".repeat(100));
    mixed.push_str(&r#"{"a":"#.repeat(100));
    let wrong = format!("{mixed}1{}{}}}", "]".repeat(100), "}".repeat(100));
    assert_eq!(Frame::parse(wrong.into()).kind(), FrameKind::Malformed, "brackets must match");
    let right = format!("{mixed}1{}{}}}", "}".repeat(100), "]".repeat(100));
    assert!(scan(right.as_bytes()).is_some());
}

#[test]
fn ids_are_kept_apart_and_others_refused() {
    let kind = |id: &str| {
        let frame = Frame::parse(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#).into());
        (frame.kind(), frame.request_id(), frame.raw_id())
    };
    for id in ["1", "0", "-1", "\"1\"", "\"\"", "null", "9007199254740993", "9223372036854775807", r#""\u0031""#] {
        let (frame, typed, raw) = kind(id);
        assert_eq!(frame, FrameKind::Request, "{id}");
        assert_eq!(serde_json::to_value(typed.expect("an id")).ok(), serde_json::from_str::<Value>(id).ok());
        let mut spelled = Vec::new();
        raw.expect("an id").write_json(&mut spelled);
        assert_eq!(String::from_utf8(spelled).expect("utf-8"), id);
    }
    assert_ne!(kind("1").1, kind("\"1\"").1);
    assert_ne!(kind("9007199254740993").1, kind("9007199254740992").1, "no detour through floating point");
    for id in ["1.5", "1.0", "1e3", "-0.0", "99999999999999999999", "true", "[1]", "{}", r#""\ud800""#] {
        let frame = Frame::parse(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#).into());
        assert_eq!(frame.kind(), FrameKind::Malformed, "{id}");
        let malformed = frame.malformation().expect("a reason");
        assert_eq!((i32::from(malformed.error.code), malformed.response_shaped), (-32600, false), "{id}");
    }
}

#[test]
fn unusual_spellings_are_decoded() {
    let frame = Frame::parse(
        r#"{"jsonrpc":"2\u002e0","\u006dethod":"session\/prompt","par\u0061ms":[1],"\u0069d":"\u0041"}"#.into(),
    );
    assert_eq!(frame.kind(), FrameKind::Request);
    assert_eq!((frame.method(), frame.part(frame.envelope().params)), ("session/prompt", "[1]"));
    assert_eq!(frame.request_id(), Some(greenroom_protocol::RequestId::Str("A".into())));
    for method in [r#""\ud800""#, r#""\udc00x""#, r#""\ud800\ud800""#, "1", "null", "[]"] {
        let frame = Frame::parse(format!(r#"{{"jsonrpc":"2.0","id":1,"method":{method}}}"#).into());
        assert_eq!((frame.kind(), frame.method()), (FrameKind::Malformed, ""), "{method}");
    }
    for version in [r#""2\u002e1""#, "2.0", "null", r#""\ud800""#, r#"" 2.0""#] {
        let frame = Frame::parse(format!(r#"{{"jsonrpc":{version},"id":1,"method":"m"}}"#).into());
        assert_eq!(frame.kind(), FrameKind::Malformed, "{version}");
    }
}

#[test]
fn a_member_that_occurs_twice_is_refused_however_it_is_spelled() {
    for text in [
        r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","\u006dethod":"n"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{}}"#,
    ] {
        let frame = Frame::parse(text.into());
        let malformed = frame.malformation().unwrap_or_else(|| panic!("{text}"));
        assert_eq!((i32::from(malformed.error.code), malformed.response_shaped), (-32600, false), "{text}");
    }
    let frame = Frame::parse(r#"{"jsonrpc":"2.0","id":1,"result":1,"result":2}"#.into());
    assert!(frame.malformation().is_some_and(|malformed| malformed.response_shaped));
    let other = Frame::parse(r#"{"jsonrpc":"2.0","id":1,"method":"m","x":1,"x":2,"_meta":{},"_meta":{}}"#.into());
    assert_eq!(other.kind(), FrameKind::Request, "members that mean nothing here may repeat");
}

#[test]
fn a_byte_order_mark_is_skipped_once() {
    let text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}";
    for message in [text.to_owned(), format!("[{text}]"), text.replace("\"m\"", "\"\\u006d\"")] {
        let frame = Frame::parse(format!("\u{feff}{message}").into());
        assert!(matches!(frame.kind(), FrameKind::Request | FrameKind::Batch), "{message}");
        check(format!("\u{feff}{message}").as_bytes());
        assert_eq!(frame.text(), message.as_bytes(), "relays pass the message on without the mark");
    }
    check("\u{feff}[]".as_bytes());
    assert_eq!(Frame::parse(format!("\u{feff}\u{feff}{text}").into()).kind(), FrameKind::Noise);
    assert_eq!(Frame::parse("\u{feff}".repeat(500_000).into()).kind(), FrameKind::Noise);
    assert_eq!(Frame::parse(format!("\u{c}{text}").into()).kind(), FrameKind::Noise, "a form feed is no JSON space");
}

#[test]
fn a_batch_has_a_limit() {
    let most = greenroom_protocol::limits::MAX_BATCH_ENTRIES;
    let batch = |entries: usize| Frame::parse(format!("[1{}]", ",1".repeat(entries - 1)).into());
    assert_eq!(batch(most).entries().len(), most);
    let frame = batch(most + 1);
    assert_eq!(frame.kind(), FrameKind::Malformed);
    assert_eq!(i32::from(frame.malformation().expect("a reason").error.code), -32600);
    let broken = Frame::parse(format!("[1{}", ",1".repeat(most)).into());
    assert_eq!(i32::from(broken.malformation().expect("a reason").error.code), -32700);
}

mod arbitrary {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// JSON text with any spacing and any spelling, not only what a serialiser would write.
    fn json() -> impl Strategy<Value = String> {
        let space = "[ \t\r\n]{0,2}";
        let leaf = prop_oneof![
            Just("null".to_owned()),
            Just("true".to_owned()),
            Just("false".to_owned()),
            "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,5})?",
            string(),
        ];
        leaf.prop_recursive(6, 48, 6, move |inner| {
            let item = (space, inner.clone(), space).prop_map(|(a, value, b)| a + &value + &b);
            let member =
                (space, string(), space, item.clone()).prop_map(|(a, name, b, value)| a + &name + &b + ":" + &value);
            prop_oneof![
                vec(item, 0..6).prop_map(|items| format!("[{}]", items.join(","))),
                vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(","))),
            ]
        })
    }

    fn string() -> impl Strategy<Value = String> {
        let part = prop_oneof!["[^\"\\\\\u{0}-\u{1f}]{0,30}", r#"\\["\\/bfnrt]"#, r"\\u[0-9a-fA-F]{4}",];
        vec(part, 0..4).prop_map(|parts| format!("\"{}\"", parts.concat()))
    }

    /// An object with envelope members in any number and order.
    fn envelope() -> impl Strategy<Value = String> {
        let member = prop_oneof![
            4 => Just(r#""jsonrpc":"2.0""#.to_owned()),
            3 => prop_oneof![Just("1".to_owned()), json()].prop_map(|id| format!("\"id\":{id}")),
            3 => string().prop_map(|method| format!("\"method\":{method}")),
            2 => json().prop_map(|params| format!("\"params\": {params}")),
            1 => json().prop_map(|result| format!("\"result\" :{result}")),
            1 => json().prop_map(|error| format!("\"error\":{error}")),
            1 => (string(), json()).prop_map(|(name, value)| format!("{name}:{value}")),
        ];
        vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(" ,")))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_envelope_is_read_as_serde_json_reads_it(text in envelope()) {
            check(text.as_bytes());
        }

        #[test]
        fn any_json_is_read_as_serde_json_reads_it(text in json()) {
            check(text.as_bytes());
            prop_assert!(serde_json::from_str::<&RawValue>(&text).is_ok(), "the generator writes JSON: {text}");
        }

        #[test]
        fn ordinary_objects_are_never_left_to_the_slow_path(value in json(), method in "[a-z_/$]{1,40}") {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{value}}}"#);
            prop_assert!(scan(text.as_bytes()).is_some());
        }

        #[test]
        fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..200)) {
            check(&bytes);
            check(&[b"{\"jsonrpc\":\"2.0\",\"method\":\"", &bytes[..], b"\"}"].concat());
        }

        #[test]
        fn any_damage_to_an_envelope_is_survived(
            text in envelope(),
            at in any::<prop::sample::Index>(),
            bytes in vec(any::<u8>(), 0..4),
        ) {
            let mut damaged = text.into_bytes();
            let at = at.index(damaged.len());
            damaged.splice(at..(at + bytes.len()).min(damaged.len()), bytes);
            check(&damaged);
        }
    }
}
