//! "Migrating to Core v3": raw responses are no ACP errors. Also "Raw JSON-RPC Responses".

mod construct_and_match {
    use agent_client_protocol::{RawJsonRpcError, RawJsonRpcMessage, RawJsonRpcResponse};
    use serde_json::{Value, json};

    #[test]
    fn main() {
        let success = RawJsonRpcResponse::new(1_i64, Ok(json!({"answer": 42})));
        assert!(matches!(success, RawJsonRpcResponse::Result { .. }));

        let mut error = RawJsonRpcError::new(-32000, "Tool unavailable").data(Value::Null);
        error.extra.insert("retryable".into(), json!(true));
        let failure = RawJsonRpcResponse::Error { id: 2_i64.into(), error: Box::new(error) };
        let message = RawJsonRpcMessage::Response(failure);

        match message {
            RawJsonRpcMessage::Response(RawJsonRpcResponse::Result { id, result }) => {
                panic!("{id}: {result}");
            }
            RawJsonRpcMessage::Response(RawJsonRpcResponse::Error { id, error }) => {
                assert_eq!(error.code, -32000);
                assert!(error.data.is_null());
                assert_eq!(error.extra["retryable"], json!(true));
                assert_eq!(format!("{id}: {}", error.message), "2: Tool unavailable");
            }
            _ => panic!("expected a response"),
        }
    }
}

mod convert_at_a_typed_boundary {
    use agent_client_protocol::{Error, ErrorCode, RawJsonRpcError, RawJsonRpcResponse};
    use serde_json::{Value, json};

    fn into_acp_result(response: RawJsonRpcResponse) -> Result<Value, Error> {
        match response {
            RawJsonRpcResponse::Result { result, .. } => Ok(result),
            RawJsonRpcResponse::Error { error, .. } => Err((*error).into_acp_error()),
        }
    }

    #[test]
    fn main() {
        // This response belongs to ACP, where -32000 means authentication required.
        let mut raw = RawJsonRpcError::new(-32000, "Authentication required").data(Value::Null);
        raw.extra.insert("peerExtension".into(), json!(true));
        let response = RawJsonRpcResponse::new(3_i64, Err(Box::new(raw)));
        let error = into_acp_result(response).unwrap_err();
        assert_eq!(error.code, ErrorCode::AuthRequired);
        assert_eq!(error.data, Some(Value::Null));

        let raw_again = RawJsonRpcError::from(error);
        assert!(raw_again.extra.is_empty()); // Conversion is not a lossless relay.
        assert!(raw_again.data.is_null(), "data keeps its presence");
        let omitted = RawJsonRpcError::from(RawJsonRpcError::new(1, "m").into_acp_error());
        assert!(omitted.data.is_undefined());
    }
}

mod relay_without_interpretation {
    use agent_client_protocol::{RawJsonRpcMessage, RawJsonRpcResponse};
    use serde_json::{Value, json};

    fn relayed(wire: &Value) -> Value {
        let message: RawJsonRpcMessage = serde_json::from_value(wire.clone()).unwrap();
        let RawJsonRpcMessage::Response(response) = message else {
            panic!("expected a response");
        };
        let upstream_id = String::from("upstream").into();
        let relayed = match response {
            RawJsonRpcResponse::Result { result, .. } => RawJsonRpcResponse::Result { id: upstream_id, result },
            RawJsonRpcResponse::Error { error, .. } => RawJsonRpcResponse::Error { id: upstream_id, error },
        };
        serde_json::to_value(RawJsonRpcMessage::Response(relayed)).unwrap()
    }

    #[test]
    fn main() {
        // A downstream protocol's -32000 is not necessarily ACP AuthRequired.
        let wire = json!({
            "jsonrpc": "2.0",
            "id": "downstream",
            "error": {
                "code": -32000,
                "message": "Tool unavailable",
                "data": null,
                "retryable": true
            }
        });
        let mut expected = wire.clone();
        expected["id"] = json!("upstream");
        assert_eq!(relayed(&wire), expected); // Code, explicit null, and extensions survive.
    }

    /// The same rule preserves omission when the input has no data.
    #[test]
    fn omission_survives_as_well() {
        for wire in [
            json!({ "jsonrpc": "2.0", "id": "downstream", "error": { "code": 1, "message": "m" } }),
            json!({ "jsonrpc": "2.0", "id": "downstream", "result": null }),
        ] {
            let mut expected = wire.clone();
            expected["id"] = json!("upstream");
            assert_eq!(relayed(&wire), expected);
        }
    }
}
