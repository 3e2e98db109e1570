//! Errors on their way over the wire, and what a peer cannot imitate.

use greenroom_protocol::{
    CONNECTION_TERMINATED_REASON, Error, ErrorCode, INCOMING_TRANSPORT_CLOSED_REASON, Origin, RawJsonRpcError,
    is_connection_terminated, is_incoming_transport_closed, schema,
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
    assert_eq!((error.code, &*error.message, &error.data), (ErrorCode::Other(7), "m", &None));
    error.message = "other".into();
    assert_eq!(error.to_wire().get(), r#"{"code":7,"message":"other"}"#);
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
