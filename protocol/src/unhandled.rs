//! The answer to a request that nobody handles.

use crate::error::Error;
use crate::handshake::Endpoint;

/// What the protocol says to a request that no handler of this endpoint took: `-32601` with the
/// method as data.
///
/// An agent of version 2 knows no tool call and no terminal that could be cancelled when nobody
/// handles that: `-32602` with the id that it does not know (spec §1.E, E14).
#[must_use]
pub fn unhandled(endpoint: Option<Endpoint>, method: &str, params: &str) -> Error {
    match cancelled_entity(endpoint, method) {
        Some(member) => unknown_entity(member, params),
        None => Error::method_not_found().data(method),
    }
}

/// The member that names what this request cancels.
#[cfg(feature = "unstable_protocol_v2")]
fn cancelled_entity(endpoint: Option<Endpoint>, method: &str) -> Option<&'static str> {
    match method {
        _ if endpoint != Some(Endpoint::V2Agent) => None,
        "tool_call/cancel" => Some("toolCallId"),
        "terminal/cancel" => Some("terminalId"),
        _ => None,
    }
}

#[cfg(not(feature = "unstable_protocol_v2"))]
fn cancelled_entity(_endpoint: Option<Endpoint>, _method: &str) -> Option<&'static str> {
    None
}

fn unknown_entity(member: &str, params: &str) -> Error {
    let params = serde_json::from_str::<serde_json::Value>(params).unwrap_or_default();
    match params.get(member).filter(|id| id.is_string()) {
        Some(id) => Error::invalid_params().data(serde_json::json!({ member: id })),
        None => Error::invalid_params().data(format!("`{member}` must be a string")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_method_is_named() {
        for endpoint in [None, Some(Endpoint::V1Client), Some(Endpoint::V1Agent { guarded: true })] {
            let error = unhandled(endpoint, "tool_call/cancel", r#"{"toolCallId":"t"}"#);
            assert_eq!((i32::from(error.code), error.data), (-32601, Some("tool_call/cancel".into())));
        }
    }

    #[cfg(feature = "unstable_protocol_v2")]
    #[test]
    fn an_agent_of_version_two_knows_nothing_that_could_be_cancelled() {
        let agent = Some(Endpoint::V2Agent);
        for (method, params, data) in [
            ("tool_call/cancel", r#"{"sessionId":"s","toolCallId":"t"}"#, serde_json::json!({ "toolCallId": "t" })),
            ("terminal/cancel", r#"{"terminalId":"t"}"#, serde_json::json!({ "terminalId": "t" })),
            ("terminal/cancel", r#"{"terminalId":1}"#, "`terminalId` must be a string".into()),
            ("tool_call/cancel", "", "`toolCallId` must be a string".into()),
        ] {
            let error = unhandled(agent, method, params);
            assert_eq!((i32::from(error.code), error.data), (-32602, Some(data)), "{method} {params}");
        }
        assert_eq!(i32::from(unhandled(agent, "session/other", "{}").code), -32601);
        assert_eq!(i32::from(unhandled(Some(Endpoint::V2Client), "terminal/cancel", "{}").code), -32601);
    }
}
