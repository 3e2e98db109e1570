//! The parsed view of frames, and back.

use bytes::Bytes;
use greenroom_protocol::{
    Error, Frame, FrameKind, RawJsonRpcMessage, RequestId, TransportBatch, TransportBatchEntry, TransportFrame,
};
use serde_json::{Value, json};

#[test]
fn malformed_text_comes_back_byte_for_byte() {
    for text in [
        "",
        "not json",
        "{",
        "{ \"jsonrpc\" : \"2.0\" }",
        "[]",
        "[ ]",
        "[{\"jsonrpc\":\"2.0\"",
        "{\"jsonrpc\":\"2.0\",\r\n\"id\":1.50}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":1,\"method\":\"m\"}",
        "  \u{1b}[31mred\u{1b}[0m  ",
    ] {
        let TransportFrame::Malformed { raw, .. } = TransportFrame::parse_json(text) else { panic!("{text}") };
        assert_eq!(raw, text);
        assert_eq!(TransportFrame::parse_json(text).to_json().expect("text"), text);
    }
}

#[test]
fn what_no_value_can_hold_keeps_its_text() {
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    let messages = [
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{deep}}}"#),
        r#"{"jsonrpc":"2.0","method":"m","params":["\ud800"]}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"result":1e999}"#.to_owned(),
    ];
    for message in messages {
        for text in
            [message.clone(), format!("[{message} ]"), format!(r#"[{{"jsonrpc":"2.0","method":"m"}},{message}]"#)]
        {
            let frame = Frame::parse(Bytes::from(text.clone()));
            let view = frame.to_transport_frame();
            assert!(matches!(view, TransportFrame::Malformed { .. }), "{text}");
            let back = Frame::from_transport_frame(&view).expect("text");
            assert_eq!((back.text(), back.kind()), (frame.text(), frame.kind()), "the frame is as good as before");
        }
    }
}

#[test]
fn messages_survive_the_view() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"z":1,"a":[1.5,null]}}"#,
        r#"{"jsonrpc":"2.0","id":"1","method":"m","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":9007199254740993,"result":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"m","data":null,"x":1}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"m"},{"jsonrpc":"2.0","method":"m"},7,{"jsonrpc":"2.0","id":1}]"#,
    ] {
        let frame = TransportFrame::parse_json(text);
        assert!(!matches!(frame, TransportFrame::Malformed { .. }), "{text}");
        assert_eq!(frame.to_json().expect("json"), text);
        assert_eq!(Frame::from_transport_frame(&frame).expect("json").text(), text);
    }
}

#[test]
fn entries_of_a_batch_keep_kind_and_order() {
    let text = r#"[{"jsonrpc":"2.0","id":1,"result":1},"x",{"jsonrpc":"2.0","method":"m"}]"#;
    let TransportFrame::Batch(batch) = TransportFrame::parse_json(text) else { panic!("a batch") };
    assert_eq!((batch.len(), batch.is_empty()), (3, false));
    let entries: Vec<_> = batch.into_entries().collect();
    assert!(
        matches!(&entries[0], TransportBatchEntry::Message(message) if message.response_id() == Some(&RequestId::Number(1)))
    );
    assert!(matches!(&entries[1], TransportBatchEntry::Malformed { raw, .. } if raw == "x"));
    assert!(matches!(&entries[2], TransportBatchEntry::Message(RawJsonRpcMessage::Notification(_))));
    assert!(TransportBatch::from_entries([]).is_none());
}

#[test]
fn messages_are_built_and_read_by_serde_too() {
    let request = RawJsonRpcMessage::request("m".into(), json!({"a": 1}), RequestId::Str("x".into())).expect("params");
    let text = serde_json::to_string(&request).expect("json");
    assert_eq!(text, r#"{"jsonrpc":"2.0","id":"x","method":"m","params":{"a":1}}"#);
    let read: RawJsonRpcMessage = serde_json::from_str(&text).expect("a message");
    assert_eq!(serde_json::to_string(&read).expect("json"), text);
    let response = RawJsonRpcMessage::response(RequestId::Null, Err(Error::method_not_found()));
    let text = serde_json::to_string(&response).expect("json");
    assert_eq!(text, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}"#);
    assert!(RawJsonRpcMessage::notification("m".into(), Value::Null).is_ok());
    for scalar in [json!(1), json!("x"), json!(true)] {
        let error = RawJsonRpcMessage::notification("m".into(), scalar).expect_err("no params");
        assert_eq!(i32::from(error.code), -32602);
    }
    for text in ["[]", r#"[{"jsonrpc":"2.0","method":"m"}]"#, "{}", "1"] {
        assert!(serde_json::from_str::<RawJsonRpcMessage>(text).is_err(), "{text}");
    }
}

#[test]
fn a_frame_says_what_it_is() {
    for (text, kind) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, FrameKind::Request),
        (r#"{"jsonrpc":"2.0","method":"m","params":null}"#, FrameKind::Notification),
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, FrameKind::Result),
        (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, FrameKind::Error),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":1}"#, FrameKind::Malformed),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":"n"}"#, FrameKind::Malformed),
        (r#"{"jsonrpc":"2.0","error":{}}"#, FrameKind::Malformed),
    ] {
        assert_eq!(Frame::parse(text.into()).kind(), kind, "{text}");
    }
}
