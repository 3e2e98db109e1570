//! From what a server did to the answer that travels.

use std::fmt;

use agent_client_protocol_schema::v1::{McpError, MessageMcpResponse};
use serde_json::{Value, json};

use super::message::unsupported;
use super::{BACKEND_FAILURE, VERSION};
use crate::error::{Error, Result};

/// How an operation of MCP ended.
#[derive(Clone, PartialEq)]
pub enum McpOutcome {
    /// A result, whatever it holds: a tool that failed says so in its result.
    Result(Value),
    /// An error of MCP.
    Error(McpError),
}

/// Shows no payload: the kind, and the code of an error.
impl fmt::Debug for McpOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Result(_) => f.debug_struct("Result").finish_non_exhaustive(),
            Self::Error(error) => f.debug_struct("Error").field("code", &error.code).finish_non_exhaustive(),
        }
    }
}

/// The answer to a request with this method of MCP. Everything passes unchanged, except that the
/// versions in the result of `server/discover` become the one that travels over ACP.
///
/// # Errors
/// `-33002` when the result of `server/discover` has no list of versions.
pub fn conclude(method: &str, outcome: McpOutcome) -> Result<MessageMcpResponse> {
    Ok(match outcome {
        McpOutcome::Result(result) if method == "server/discover" => match narrowed(result)? {
            Ok(result) => MessageMcpResponse::success(result),
            Err(error) => MessageMcpResponse::error(error),
        },
        McpOutcome::Result(result) => MessageMcpResponse::success(result),
        McpOutcome::Error(error) => MessageMcpResponse::error(error),
    })
}

fn narrowed(mut result: Value) -> Result<Result<Value, McpError>> {
    let invalid = || {
        Error::new(BACKEND_FAILURE, "MCP backend failure")
            .data("the result of server/discover needs supportedVersions, a list of strings")
    };
    let versions = result.get_mut("supportedVersions").and_then(Value::as_array_mut).ok_or_else(invalid)?;
    if !versions.iter().all(Value::is_string) {
        return Err(invalid());
    }
    if !versions.iter().any(|version| version == VERSION) {
        return Ok(Err(unsupported(VERSION, versions)));
    }
    *versions = vec![json!(VERSION)];
    Ok(Ok(result))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(method: &str, outcome: McpOutcome) -> Value {
        serde_json::to_value(conclude(method, outcome).expect("an answer")).expect("JSON")
    }

    #[test]
    fn outcomes_pass_unchanged() {
        for result in [json!(null), json!({ "isError": true }), json!([1.0]), json!({ "supportedVersions": 7 })] {
            assert_eq!(answer("tools/call", McpOutcome::Result(result.clone())), json!({ "result": result }));
        }
        let mut error = McpError::new(-32000, "no");
        assert_eq!(
            answer("server/discover", McpOutcome::Error(error.clone())),
            json!({ "error": { "code": -32000, "message": "no" } })
        );
        error = error.data(Value::Null);
        error.extra.insert("more".into(), json!([]));
        assert_eq!(
            answer("x", McpOutcome::Error(error)),
            json!({ "error": { "code": -32000, "message": "no", "data": null, "more": [] } })
        );
    }

    #[test]
    fn debug_shows_no_payload() {
        let result = McpOutcome::Result(json!({ "content": [{ "type": "text", "text": "SECRET" }] }));
        assert_eq!(format!("{result:?}"), "Result { .. }");
        let mut error = McpError::new(-32602, "SECRET").data(json!("SECRET"));
        error.extra.insert("more".into(), json!("SECRET"));
        assert_eq!(format!("{:?}", McpOutcome::Error(error)), "Error { code: -32602, .. }");
    }

    #[test]
    fn discovery_shows_the_one_version() {
        let found = json!({ "supportedVersions": ["2025-11-25", "2026-07-28"], "serverInfo": { "name": "n" }, "z": 1 });
        let shown = json!({ "supportedVersions": ["2026-07-28"], "serverInfo": { "name": "n" }, "z": 1 });
        assert_eq!(answer("server/discover", McpOutcome::Result(found)), json!({ "result": shown }));
        let old = json!({ "supportedVersions": ["2025-11-25"] });
        let error = answer("server/discover", McpOutcome::Result(old));
        assert_eq!(error["error"]["code"], -32022);
        assert_eq!(error["error"]["data"], json!({ "requested": "2026-07-28", "supported": ["2025-11-25"] }));
        for odd in
            [json!(null), json!({}), json!({ "supportedVersions": "2026-07-28" }), json!({ "supportedVersions": [1] })]
        {
            let error = conclude("server/discover", McpOutcome::Result(odd.clone())).expect_err("no versions");
            assert_eq!(i32::from(error.code), -33002, "{odd}");
        }
    }
}
