//! Reading one `mcp/message` request.

use std::fmt;

use agent_client_protocol_schema::v1::{McpError, McpRequestId, McpServerAcpId, MessageMcpRequest};
use serde_json::{Map, Value, json};

use super::{UNSUPPORTED_VERSION, VERSION};
use crate::codec::read_params;
use crate::error::Error;

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// One operation that an agent asks for, with everything that the binding demands.
#[derive(Clone, PartialEq)]
pub struct Call {
    /// The declared server.
    pub server_id: McpServerAcpId,
    /// The logical id, which the agent chose.
    pub request_id: McpRequestId,
    /// The method of MCP.
    pub method: String,
    /// The params of MCP, `_meta` included.
    pub params: Option<Map<String, Value>>,
    /// The `_meta` of the params: version and client capabilities are there and have the right type.
    pub metadata: Map<String, Value>,
}

/// Why an operation does not begin.
#[derive(Clone, PartialEq)]
pub enum Refusal {
    /// The message does not fit the binding: an error of ACP.
    Carrier(Error),
    /// The server refuses what the message holds: an error of MCP inside a good answer.
    Inner(McpError),
}

/// Shows no payload.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("method", &self.method).finish_non_exhaustive()
    }
}

/// Shows codes only: texts and data may quote payload.
impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, code) = match self {
            Self::Carrier(error) => ("Carrier", i32::from(error.code)),
            Self::Inner(error) => ("Inner", error.code),
        };
        f.debug_struct(kind).field("code", &code).finish_non_exhaustive()
    }
}

/// The server that these params of `mcp/message` name, however malformed the rest is; of an id that
/// is said twice, the last one counts. `None` when they name none.
#[must_use]
pub fn declared_server(params: &str) -> Option<String> {
    let members: Map<String, Value> = serde_json::from_str(params).ok()?;
    members.get("serverId")?.as_str().map(str::to_owned)
}

/// Reads the params of an `mcp/message` request.
///
/// # Errors
/// [`Refusal::Carrier`] with `-32602` when they are malformed. [`Refusal::Inner`] with `-32601` for
/// `initialize`, which this binding does not have; with `-32602` when the inner metadata lacks a
/// version or the client's capabilities; with `-32022` for another version.
pub fn read(params: &str) -> Result<Call, Refusal> {
    let MessageMcpRequest { server_id, request_id, method, params, .. } =
        read_params::<MessageMcpRequest>(params).map_err(Refusal::Carrier)?;
    if method == "initialize" {
        return Err(inner(-32601, "MCP over ACP has no initialize: every request brings its version and capabilities"));
    }
    let metadata = params.as_ref().and_then(|params| params.get("_meta")).and_then(Value::as_object);
    let metadata = metadata.ok_or_else(|| inner(-32602, "params._meta must be an object"))?.clone();
    let version = metadata.get(VERSION_KEY).and_then(Value::as_str);
    let version = version.ok_or_else(|| inner(-32602, format!("params._meta needs {VERSION_KEY}, a string")))?;
    if !metadata.get(CAPABILITIES_KEY).is_some_and(Value::is_object) {
        return Err(inner(-32602, format!("params._meta needs {CAPABILITIES_KEY}, an object")));
    }
    if version != VERSION {
        return Err(Refusal::Inner(unsupported(version, &[VERSION.into()])));
    }
    Ok(Call { server_id, request_id, method, params, metadata })
}

fn inner(code: i32, message: impl Into<String>) -> Refusal {
    Refusal::Inner(McpError::new(code, message))
}

/// The error of MCP for a version that a server does not speak.
pub(super) fn unsupported(requested: &str, supported: &[Value]) -> McpError {
    McpError::new(UNSUPPORTED_VERSION, "Unsupported protocol version")
        .data(json!({ "requested": requested, "supported": supported }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(change: impl FnOnce(&mut Value)) -> String {
        let mut params = json!({
            "serverId": "s", "requestId": "r", "method": "tools/call",
            "params": { "name": "t", "_meta": { VERSION_KEY: VERSION, CAPABILITIES_KEY: { "x": {} }, "more": 1 } },
            "_meta": { "carrier": true },
        });
        change(&mut params);
        params.to_string()
    }

    /// The code of the refusal, and whether it is one of MCP.
    fn refused(params: &str) -> (bool, i32) {
        match read(params).expect_err(params) {
            Refusal::Carrier(error) => (false, error.code.into()),
            Refusal::Inner(error) => (true, error.code),
        }
    }

    #[test]
    fn a_complete_message_is_a_call() {
        let call = read(&params(|_| {})).expect("complete");
        assert_eq!((&*call.server_id.0, &*call.request_id.0, &*call.method), ("s", "r", "tools/call"));
        assert_eq!(call.metadata["more"], 1);
        let inner = call.params.expect("params");
        assert_eq!((&inner["name"], inner["_meta"]["more"].as_i64()), (&json!("t"), Some(1)));
        // What the carrier says beside that is nobody's business here.
        read(&params(|params| params["unknown"] = json!([1]))).expect("unknown members");
        read(&params(|params| params["_meta"] = json!(7))).expect("odd metadata of the carrier");
        read(&params(|params| params["requestId"] = json!(""))).expect("an empty id is an id");
    }

    #[test]
    fn every_refusal_has_its_place_and_code() {
        type Change = fn(&mut Value);
        let cases: [(&str, Change, (bool, i32)); 17] = [
            ("no server", |p| drop(p.as_object_mut().expect("object").remove("serverId")), (false, -32602)),
            ("a server that is no text", |p| p["serverId"] = json!(1), (false, -32602)),
            ("no id", |p| drop(p.as_object_mut().expect("object").remove("requestId")), (false, -32602)),
            ("an id that is no text", |p| p["requestId"] = json!(1), (false, -32602)),
            ("no method", |p| drop(p.as_object_mut().expect("object").remove("method")), (false, -32602)),
            ("params that are a list", |p| p["params"] = json!([]), (false, -32602)),
            ("initialize", |p| p["method"] = json!("initialize"), (true, -32601)),
            (
                "initialize without metadata",
                |p| (p["method"], p["params"]) = (json!("initialize"), Value::Null),
                (true, -32601),
            ),
            ("no params", |p| p["params"] = Value::Null, (true, -32602)),
            ("no metadata", |p| p["params"] = json!({}), (true, -32602)),
            ("metadata that is no object", |p| p["params"]["_meta"] = json!([]), (true, -32602)),
            ("no version", |p| p["params"]["_meta"] = json!({ CAPABILITIES_KEY: {} }), (true, -32602)),
            ("a version that is no text", |p| p["params"]["_meta"][VERSION_KEY] = json!(20_260_728), (true, -32602)),
            ("no capabilities", |p| p["params"]["_meta"] = json!({ VERSION_KEY: VERSION }), (true, -32602)),
            ("capabilities that are no object", |p| p["params"]["_meta"][CAPABILITIES_KEY] = json!([]), (true, -32602)),
            ("an older version", |p| p["params"]["_meta"][VERSION_KEY] = json!("2025-11-25"), (true, -32022)),
            ("an empty version", |p| p["params"]["_meta"][VERSION_KEY] = json!(""), (true, -32022)),
        ];
        for (name, change, expected) in cases {
            assert_eq!(refused(&params(change)), expected, "{name}");
        }
        for text in ["null", "[]", "7", "{}", r#"{"serverId":"a","serverId":"b","requestId":"r","method":"m"}"#] {
            assert_eq!(refused(text), (false, -32602), "{text}");
        }
    }

    #[test]
    fn debug_shows_no_payload() {
        let call = read(&params(|params| {
            params["params"]["arguments"] = json!({ "key": "SECRET" });
            params["params"]["_meta"]["token"] = json!("SECRET");
        }));
        assert_eq!(format!("{:?}", call.expect("complete")), r#"Call { method: "tools/call", .. }"#);
        let inner = read(&params(|params| params["params"]["_meta"][VERSION_KEY] = json!("SECRET")));
        assert_eq!(format!("{:?}", inner.expect_err("a version that nobody knows")), "Inner { code: -32022, .. }");
        let carrier = Refusal::Carrier(Error::invalid_params().data("SECRET"));
        assert_eq!(format!("{carrier:?}"), "Carrier { code: -32602, .. }");
    }

    #[test]
    fn another_version_learns_which_one_there_is() {
        let text = params(|params| params["params"]["_meta"][VERSION_KEY] = json!("2025-11-25"));
        let Err(Refusal::Inner(error)) = read(&text) else { panic!("refused by MCP") };
        let error = serde_json::to_value(error).expect("JSON");
        assert_eq!(error["data"], json!({ "requested": "2025-11-25", "supported": ["2026-07-28"] }));
    }

    #[test]
    fn the_server_is_found_in_whatever_else_is_wrong() {
        for (params, expected) in [
            (r#"{"serverId":"s"}"#, Some("s")),
            (r#"{"requestId":1,"serverId":"a\u0062","params":[]}"#, Some("ab")),
            (r#"{"serverId":"one","serverId":"two"}"#, Some("two")),
            (r#"{"serverId":7}"#, None),
            ("{}", None),
            ("null", None),
            (r#"["serverId"]"#, None),
        ] {
            assert_eq!(declared_server(params).as_deref(), expected, "{params}");
        }
    }
}
