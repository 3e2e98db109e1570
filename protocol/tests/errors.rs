//! Errors on their way over the wire, and what a peer cannot imitate.

use std::error::Error as _;

use greenroom_protocol::{
    CONNECTION_TERMINATED_REASON, Error, ErrorCode, INCOMING_TRANSPORT_CLOSED_REASON, LocalError, Origin,
    RawJsonRpcError, is_connection_terminated, is_incoming_transport_closed, schema,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).expect("json")
}

#[test]
fn an_error_that_is_passed_on_keeps_its_exact_text() {
    for text in [
        r#"{"code":-32603,"message":"m"}"#,
        r#"{"code":-32603,"message":"m","data":null}"#,
        r#"{ "message":"\u006d" ,"code":7,"data":{"b":1,"a":1.0},"trace":"x","retry":[1] }"#,
        r#"{"code":2147483647,"message":""}"#,
        r#"{"code":-2147483648,"message":"m","data":"d"}"#,
    ] {
        let error = Error::from_wire(&raw(text)).expect("an error object");
        assert_eq!(error.to_wire().get(), text);
        assert_eq!(error.clone().to_wire().get(), text);
        assert_eq!(error.origin(), Origin::Ordinary);
    }
}

#[test]
fn an_error_that_was_changed_is_written_anew() {
    let text = r#"{"code":7,"message":"m","data":null,"extra":1}"#;
    let mut error = Error::from_wire(&raw(text)).expect("an error object");
    assert_eq!((error.code, &*error.message, &error.data), (ErrorCode::Other(7), "m", &Some(Value::Null)));
    error.message = "other".into();
    assert_eq!(error.to_wire().get(), r#"{"code":7,"message":"other","data":null}"#);
    error.message = "m".into();
    assert_eq!(error.to_wire().get(), text, "unchanged after all");
    let error = error.data(json!([1]));
    assert_eq!(error.to_wire().get(), r#"{"code":7,"message":"m","data":[1]}"#);
    assert_eq!(Error::auth_required().to_wire().get(), r#"{"code":-32000,"message":"Authentication required"}"#);
}

#[test]
fn what_is_no_error_object_is_an_internal_error() {
    for text in ["{}", "null", "[]", r#"{"code":"1","message":"m"}"#, r#"{"code":1}"#, r#"{"code":1.5,"message":"m"}"#]
    {
        let error = Error::from_wire(&raw(text)).expect_err(text);
        assert_eq!(error.code, ErrorCode::InternalError, "{text}");
    }
}

#[test]
fn the_raw_view_tells_omitted_from_null_data_and_keeps_extra_members() {
    for text in [
        r#"{"code":1,"message":"m"}"#,
        r#"{"code":1,"message":"m","data":null}"#,
        r#"{"code":1,"message":"m","data":{"a":1},"x":1,"y":null}"#,
    ] {
        let error: RawJsonRpcError = serde_json::from_str(text).expect("an error object");
        assert_eq!(serde_json::to_string(&error).expect("json"), text);
    }
}

#[test]
fn a_peer_cannot_imitate_a_local_failure() {
    let local = Error::internal_error()
        .data(json!({ "reason": INCOMING_TRANSPORT_CLOSED_REASON }))
        .with_origin(Origin::IncomingClosed);
    assert!(is_incoming_transport_closed(&local) && !is_connection_terminated(&local));
    let sent = local.to_wire();
    let spoofs = [
        Error::from_wire(&sent).expect("an error object"),
        serde_json::from_str(sent.get()).expect("an error object"),
        serde_json::from_str::<RawJsonRpcError>(sent.get()).expect("an error object").into(),
        serde_json::from_str::<schema::Error>(sent.get()).expect("an error object").into(),
        Error::from_wire(&raw(r#"{"code":-32603,"message":"m","origin":"IncomingClosed"}"#)).expect("an error object"),
    ];
    for spoof in spoofs {
        assert!(!is_incoming_transport_closed(&spoof), "{spoof:?}");
        assert_eq!(spoof.origin(), Origin::Ordinary);
    }
    let local =
        Error::internal_error().data(json!({ "reason": CONNECTION_TERMINATED_REASON })).with_origin(Origin::Terminated);
    assert!(is_connection_terminated(&local) && !is_incoming_transport_closed(&local));
    assert!(!is_connection_terminated(&Error::from_wire(&local.to_wire()).expect("an error object")));
    assert!(!serde_json::to_string(&local).expect("json").contains("origin"), "the mark does not travel");
}

#[test]
fn conversions_keep_code_message_and_data() {
    for error in [
        Error::new(-1, "m").data(json!({"a": [1]})),
        Error::session_not_found("s"),
        Error::resource_not_found(Some("file:///x".into())),
        Error::new(i32::MIN, ""),
    ] {
        let schema: schema::Error = error.clone().into();
        assert_eq!(Error::from(schema), error);
        let value: Value = serde_json::to_value(&error).expect("json");
        assert_eq!(serde_json::from_value::<Error>(value).expect("an error"), error);
    }
}

/// What this crate family knows about a failure stays here; what a peer reads is fixed by its kind.
#[test]
fn a_local_failure_leaves_its_kind_and_a_fixed_reason_on_the_wire() {
    let kinds = [
        (Origin::Ordinary, "internal error"),
        (Origin::IncomingClosed, INCOMING_TRANSPORT_CLOSED_REASON),
        (Origin::Terminated, CONNECTION_TERMINATED_REASON),
        (Origin::WouldDeadlock, "would deadlock"),
        (Origin::Overflow, "overflow"),
        (Origin::Interrupted, "interrupted"),
        (Origin::PeerGone, "the other end of the transport is gone"),
        (Origin::Transport, "the transport failed"),
        (Origin::NotStarted, "the program could not be started"),
        (Origin::Process, "the process failed"),
    ];
    for (kind, reason) in kinds {
        let cause = std::io::Error::other("no room in /home/me/secret");
        let local = LocalError::new(kind, "src/main.rs:7: token=hunter2").with_source(cause);
        assert_eq!(local.kind(), kind);
        let error = Error::from(local);
        assert_eq!(error.origin(), kind);
        let expected = json!({ "code": -32603, "message": "Internal error", "data": { "reason": reason } });
        let ways_out = [
            serde_json::from_str::<Value>(error.to_wire().get()).expect("json"),
            serde_json::to_value(&error).expect("json"),
            serde_json::to_value(RawJsonRpcError::from(error.clone())).expect("json"),
            serde_json::to_value(schema::Error::from(error.clone())).expect("json"),
        ];
        for wire in ways_out {
            assert_eq!(wire, expected);
        }
        assert!(!error.to_string().contains("hunter2"), "shown to people: what peers see");
        let local = error.source().expect("the local error");
        assert_eq!(local.to_string(), "src/main.rs:7: token=hunter2");
        assert!(local.downcast_ref::<LocalError>().is_some());
        assert_eq!(local.source().map(ToString::to_string).as_deref(), Some("no room in /home/me/secret"));
        let debug = format!("{error:?}");
        assert!(debug.contains("token=hunter2") && debug.contains("no room in"), "{debug}");
    }
}

#[test]
fn a_source_changes_neither_what_travels_nor_what_is_equal() {
    let plain = Error::invalid_params().data(json!({ "a": 1 }));
    let error = plain.clone().with_source(std::fmt::Error);
    assert_eq!(error, plain);
    assert_eq!(error.to_wire().get(), plain.to_wire().get());
    assert!(error.source().is_some() && plain.source().is_none());
    // A relay that notes why it passes an error on still passes on the same text.
    let text = r#"{ "code":7,"message":"m","x":1 }"#;
    let passed = Error::from_wire(&raw(text)).expect("an error object").with_source(std::fmt::Error);
    assert_eq!(passed.to_wire().get(), text);
    assert!(Error::from_wire(&error.to_wire()).expect("an error object").source().is_none());
}

#[test]
fn the_reason_of_a_code_is_ours_whatever_the_sender_says() {
    for (code, reason) in [
        (-32700, "parse error"),
        (-32600, "invalid request"),
        (-32601, "method not found"),
        (-32602, "invalid params"),
        (-32603, "internal error"),
        (-32800, "request cancelled"),
        (-32000, "authentication required"),
        (-32002, "resource not found"),
        (-32022, "unsupported protocol version"),
        (7, "another code"),
    ] {
        assert_eq!(Error::new(code, "token=hunter2").data("hunter2").reason(), reason);
    }
}

#[test]
fn errors_of_application_code_travel_as_they_are() {
    let failure = std::io::Error::other("disk /dev/sda1 is full");
    assert_eq!(Error::into_internal_error(failure).data, Some(json!("disk /dev/sda1 is full")));
    let ours = Error::new(7, "m").data(json!([1]));
    assert_eq!(Error::from(anyhow::Error::from(ours.clone())), ours);
    assert_eq!(Error::from(anyhow::anyhow!("text")), Error::internal_error().data("text"));
}
