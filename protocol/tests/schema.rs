//! Every method of the schema has a message type.

use std::sync::Arc;

use greenroom_protocol::schema::{
    ExtNotification, ExtRequest, ExtResponse, InitializeProxyRequest, InitializeRequest, METHOD_INITIALIZE_PROXY,
    METHOD_SUCCESSOR_MESSAGE, ProtocolVersion, SuccessorMessage,
};
use greenroom_protocol::{
    Dialect, Error, JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, UntypedMessage, schema,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

type Matches = fn(&str) -> bool;

fn request<R: JsonRpcRequest>() -> Matches {
    R::matches_method
}

fn notification<N: JsonRpcNotification>() -> Matches {
    N::matches_method
}

/// The messages of one version: those that both versions have under the same name, and the rest.
macro_rules! messages {
    ($version:ident: requests $($request:ident)*; notifications $($notification:ident)*) => {
        vec![
            $(request::<schema::$version::$request>(),)*
            $(notification::<schema::$version::$notification>(),)*
            request::<schema::$version::InitializeRequest>(),
            request::<schema::$version::NewSessionRequest>(),
            request::<schema::$version::ListSessionsRequest>(),
            request::<schema::$version::DeleteSessionRequest>(),
            request::<schema::$version::ResumeSessionRequest>(),
            request::<schema::$version::CloseSessionRequest>(),
            request::<schema::$version::SetSessionConfigOptionRequest>(),
            request::<schema::$version::PromptRequest>(),
            request::<schema::$version::RequestPermissionRequest>(),
            request::<schema::$version::CreateElicitationRequest>(),
            notification::<schema::$version::CompleteElicitationNotification>(),
            notification::<schema::$version::CancelRequestNotification>(),
            #[cfg(feature = "unstable_llm_providers")]
            request::<schema::$version::ListProvidersRequest>(),
            #[cfg(feature = "unstable_llm_providers")]
            request::<schema::$version::SetProviderRequest>(),
            #[cfg(feature = "unstable_llm_providers")]
            request::<schema::$version::DisableProviderRequest>(),
            #[cfg(feature = "unstable_auth_status")]
            request::<schema::$version::AuthStatusRequest>(),
            #[cfg(feature = "unstable_auth_status")]
            notification::<schema::$version::AuthStatusUpdateNotification>(),
            #[cfg(feature = "unstable_session_fork")]
            request::<schema::$version::ForkSessionRequest>(),
            #[cfg(feature = "unstable_session_archive")]
            request::<schema::$version::ArchiveSessionRequest>(),
            #[cfg(feature = "unstable_session_archive")]
            request::<schema::$version::UnarchiveSessionRequest>(),
            #[cfg(feature = "unstable_session_status")]
            request::<schema::$version::SessionStatusRequest>(),
            #[cfg(feature = "unstable_session_options")]
            request::<schema::$version::SessionOptionsRequest>(),
            #[cfg(feature = "unstable_session_set_title")]
            request::<schema::$version::SetSessionTitleRequest>(),
            #[cfg(feature = "unstable_mcp_over_acp")]
            request::<schema::$version::MessageMcpRequest>(),
            #[cfg(feature = "unstable_mcp_over_acp")]
            notification::<schema::$version::MessageMcpNotification>(),
        ]
    };
}

/// All method names in the tables of the schema crate.
fn names(tables: &[Value]) -> Vec<String> {
    let members = tables.iter().flat_map(|table| table.as_object().expect("a table").values());
    let mut names: Vec<String> = members.map(|name| name.as_str().expect("a name").to_owned()).collect();
    names.sort();
    names.dedup();
    names
}

/// Every name has a type, and every type has a name.
#[track_caller]
fn assert_complete(names: &[String], messages: &[Matches]) {
    for name in names {
        assert!(messages.iter().any(|matches| matches(name)), "no type for {name}");
    }
    for (index, matches) in messages.iter().enumerate() {
        let count = names.iter().filter(|name| matches(name)).count();
        assert_eq!(count, 1, "type {index} of the list");
    }
}

#[test]
fn version_1_is_complete() {
    let tables = [
        serde_json::to_value(schema::AGENT_METHOD_NAMES).expect("json"),
        serde_json::to_value(schema::CLIENT_METHOD_NAMES).expect("json"),
        serde_json::to_value(schema::PROTOCOL_LEVEL_METHOD_NAMES).expect("json"),
    ];
    let messages = messages!(v1: requests AuthenticateRequest LogoutRequest LoadSessionRequest SetSessionModeRequest
        WriteTextFileRequest ReadTextFileRequest CreateTerminalRequest TerminalOutputRequest WaitForTerminalExitRequest
        KillTerminalRequest ReleaseTerminalRequest; notifications CancelNotification SessionNotification);
    assert_complete(&names(&tables), &messages);
}

#[cfg(feature = "unstable_protocol_v2")]
#[test]
fn version_2_is_complete() {
    let tables = [
        serde_json::to_value(schema::v2::AGENT_METHOD_NAMES).expect("json"),
        serde_json::to_value(schema::v2::CLIENT_METHOD_NAMES).expect("json"),
        serde_json::to_value(schema::v2::PROTOCOL_LEVEL_METHOD_NAMES).expect("json"),
    ];
    let messages = messages!(v2: requests LoginAuthRequest LogoutAuthRequest CancelToolCallRequest
        CancelTerminalRequest; notifications CancelSessionNotification UpdateSessionNotification);
    assert_complete(&names(&tables), &messages);
    let initialize = json!({"protocolVersion": 2, "info": {"name": "n", "version": "1"}, "capabilities": {}});
    let inner: schema::v2::InitializeRequest = serde_json::from_value(initialize.clone()).expect("fits");
    let request = schema::v2::InitializeProxyRequest::new(inner.clone());
    assert_eq!(request, inner.into());
    assert_eq!(request.method(), METHOD_INITIALIZE_PROXY);
    for dialect in [Dialect::Legacy, Dialect::Modern] {
        let read = schema::v2::InitializeProxyRequest::parse_message(dialect.initialize(), &initialize);
        assert_eq!(read.expect("both dialects"), request);
    }
}

#[test]
fn messages_are_written_as_the_schema_says() {
    let request = schema::PromptRequest::new("s", vec![schema::ContentBlock::Text(schema::TextContent::new("hi"))]);
    let text = request.params_text().expect("json");
    assert_eq!(text, br#"{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}"#);
    let read = schema::PromptRequest::parse_params("session/prompt", std::str::from_utf8(&text).expect("utf-8"));
    assert_eq!(read.expect("fits"), request);
    let error = schema::PromptRequest::parse_params("session/new", "{}").expect_err("another method");
    assert_eq!((i32::from(error.code), error.data), (-32601, Some("session/new".into())));
    let error = schema::PromptRequest::parse_params("session/prompt", "{}").expect_err("no session");
    assert_eq!(i32::from(error.code), -32602);
    let logout = schema::LogoutRequest::parse_params("logout", "null").expect("omitted params");
    assert_eq!(logout, schema::LogoutRequest::new());
    let answer = schema::SetSessionModeResponse::from_text("session/set_mode", "null").expect("a void answer");
    assert_eq!(answer, schema::SetSessionModeResponse::new());
}

#[test]
fn extension_messages_keep_method_and_exact_params() {
    let text = r#"{"n":1.0, "\u0061":[]}"#;
    let request = ExtRequest::parse_params("_acme/x", text).expect("an extension");
    assert_eq!((&*request.method, request.params.get()), ("_acme/x", text));
    assert_eq!((request.method(), request.params_text().expect("json")), ("_acme/x", text.as_bytes().to_vec()));
    let none = ExtNotification::parse_params("_acme/y", "null").expect("an extension");
    assert_eq!(none.params_text().expect("json"), b"", "no params stay no params");
    let untyped = request.to_untyped_message().expect("json");
    assert_eq!(untyped, UntypedMessage::new("_acme/x", json!({"n": 1.0, "a": []})).expect("json"));
    let answer = ExtResponse::from_text("_acme/x", text).expect("any result");
    assert_eq!(answer.into_text("_acme/x").expect("json"), text.as_bytes());
    for method in ["session/new", "", "proxy/successor", "_proxy/successor", "_proxy/initialize"] {
        assert!(!ExtRequest::matches_method(method) && !ExtNotification::matches_method(method), "{method}");
        assert_eq!(i32::from(ExtRequest::parse_params(method, "{}").expect_err(method).code), -32601);
    }
}

#[test]
fn proxy_initialize_is_read_in_both_dialects() {
    assert_eq!((METHOD_INITIALIZE_PROXY, METHOD_SUCCESSOR_MESSAGE), ("_proxy/initialize", "_proxy/successor"));
    let initialize = InitializeRequest::new(ProtocolVersion::V1);
    let request = InitializeProxyRequest { initialize: initialize.clone() };
    assert_eq!(request, schema::v1::InitializeProxyRequest::from(initialize.clone()));
    assert_eq!(request.params_text().expect("json"), initialize.params_text().expect("json"), "the same params");
    assert_eq!(request.method(), METHOD_INITIALIZE_PROXY);
    for dialect in [Dialect::Legacy, Dialect::Modern] {
        let read = InitializeProxyRequest::parse_message(dialect.initialize(), &initialize);
        assert_eq!(read.expect("both dialects"), request);
    }
    assert!(!InitializeProxyRequest::matches_method("initialize"));
    assert!(!InitializeRequest::matches_method(METHOD_INITIALIZE_PROXY));
    assert!(InitializeProxyRequest::parse_message("initialize", &initialize).is_err());
}

type Wrapped = SuccessorMessage<schema::CancelNotification>;

fn cancel() -> schema::CancelNotification {
    schema::CancelNotification::new("s")
}

#[test]
fn successor_messages_are_written_with_params_always() {
    let message = SuccessorMessage { message: cancel(), meta: None };
    assert_eq!(message.method(), METHOD_SUCCESSOR_MESSAGE);
    let text = message.params_text().expect("json");
    assert_eq!(text, br#"{"method":"session/cancel","params":{"sessionId":"s"}}"#);
    let message = SuccessorMessage { message: cancel(), meta: Some(json!({"k": 1})) };
    let untyped = message.to_untyped_message().expect("json");
    assert_eq!(untyped.method(), METHOD_SUCCESSOR_MESSAGE);
    let expected = json!({"method": "session/cancel", "params": {"sessionId": "s"}, "_meta": {"k": 1}});
    assert_eq!(untyped.params(), &expected);
    assert_eq!(Wrapped::parse_message(untyped.method(), untyped.params()).expect("fits"), message);
    let bare = UntypedMessage::new("m", Value::Null).expect("json");
    let text = SuccessorMessage { message: bare, meta: None }.params_text().expect("json");
    assert_eq!(text, br#"{"method":"m","params":null}"#, "released readers need the member");
}

#[test]
fn successor_messages_are_read_in_both_dialects() {
    let inner = r#""method":"session/cancel","params":{"sessionId":"s"}"#;
    for (extra, meta) in [
        ("", None),
        (r#","_meta":{"k":1}"#, Some(json!({"k": 1}))),
        (r#","meta":{"k":1}"#, Some(json!({"k": 1}))),
        (r#","_meta":7"#, None),
        (r#","_meta":null"#, None),
    ] {
        for dialect in [Dialect::Legacy, Dialect::Modern] {
            assert!(Wrapped::matches_method(dialect.successor()));
            let read = Wrapped::parse_params(dialect.successor(), &format!("{{{inner}{extra}}}")).expect("fits");
            assert_eq!(read, SuccessorMessage { message: cancel(), meta: meta.clone() }, "{extra}");
        }
    }
    for (method, params, code) in [
        ("_proxy/successor", "null", -32602),
        ("_proxy/successor", "{}", -32602),
        ("_proxy/successor", r#"{"method":1}"#, -32602),
        ("_proxy/successor", r#"{"method":"session/cancel"}"#, -32602),
        ("_proxy/successor", r#"{"method":"session/update","params":{}}"#, -32601),
        ("session/cancel", r#"{"sessionId":"s"}"#, -32601),
    ] {
        let error: Error = Wrapped::parse_params(method, params).expect_err(params);
        assert_eq!(i32::from(error.code), code, "{params}");
    }
    let untyped = SuccessorMessage::<UntypedMessage>::parse_params("proxy/successor", r#"{"method":"m"}"#);
    assert_eq!(untyped.expect("no params").message, UntypedMessage::new("m", Value::Null).expect("json"));
}

#[test]
fn untyped_envelopes_of_the_schema_crate_are_read_in_both_dialects() {
    let raw: Arc<RawValue> = Arc::from(RawValue::from_string("{ }".into()).expect("json"));
    let request = schema::ProxySuccessorRequest::new("m").params(raw);
    assert_eq!(request.method(), "proxy/successor");
    let text = String::from_utf8(request.params_text().expect("json")).expect("utf-8");
    assert_eq!(text, r#"{"method":"m","params":{ }}"#);
    for dialect in [Dialect::Legacy, Dialect::Modern] {
        let read = schema::ProxySuccessorRequest::parse_params(dialect.successor(), &text).expect("fits");
        assert_eq!(read.params.expect("params").get(), "{ }");
    }
    let answer = schema::ProxySuccessorResponse::from_text("", "[ 1 ]").expect("any result");
    assert_eq!(answer.into_text("").expect("json"), b"[ 1 ]");
}
