//! Which session a message belongs to, as far as HTTP has to know.
//!
//! Everything else in a payload is nobody's business here.

#![cfg_attr(not(all(feature = "client", feature = "service")), allow(dead_code, reason = "one side needs a part"))]

use std::borrow::Cow;

use greenroom_protocol::method::{CANCEL_REQUEST, PROTOCOL_PREFIX};
use greenroom_protocol::{Dialect, Frame};

/// Methods that make no sense without a session. Newer methods are not added here: peers do not
/// expect it; their `params.sessionId` is enough.
const NEED_SESSION: [&str; 10] = [
    "session/prompt",
    "session/cancel",
    "session/close",
    "session/delete",
    "session/fork",
    "session/load",
    "session/resume",
    "session/set_config_option",
    "session/set_mode",
    "session/set_model",
];

/// Methods whose result names a session that exists from then on.
const OPEN_SESSION: [&str; 2] = ["session/new", "session/fork"];

/// Whether a call of this method must say its session.
pub(crate) fn needs_session(method: &str) -> bool {
    NEED_SESSION.contains(&method)
}

/// Whether the result of this method names a session that exists from then on.
pub(crate) fn opens_session(method: &str) -> bool {
    OPEN_SESSION.contains(&method)
}

/// What a call says about its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named<'a> {
    /// Nothing: no params, null, or an object without `sessionId`.
    Nothing,
    /// This session.
    Session(Cow<'a, str>),
    /// Its `sessionId` is no string.
    NotText,
    /// Its params are an array, which names nothing.
    Array,
}

/// The session that a request or notification names. Reads all of the params.
pub(crate) fn named_session(frame: &Frame) -> Named<'_> {
    let params = frame.envelope().params;
    if frame.part(params).starts_with('[') {
        return Named::Array;
    }
    let member = frame.member(params, "sessionId");
    match frame.string(member) {
        Some(id) => Named::Session(id),
        None if member.is_present() => Named::NotText,
        None => Named::Nothing,
    }
}

/// The session that a result names.
pub(crate) fn result_session(frame: &Frame) -> Option<Cow<'_, str>> {
    frame.string(frame.first_member(frame.envelope().result, "sessionId"))
}

/// Whether a call belongs to the connection by definition, whatever session it names: `$/…`, and
/// a cancellation inside of successor envelopes.
pub(crate) fn is_connection_scoped(frame: &Frame) -> bool {
    let method = frame.method();
    method.starts_with(PROTOCOL_PREFIX) || (Dialect::of_successor(method).is_some() && cancels_inside(frame))
}

fn cancels_inside(frame: &Frame) -> bool {
    let mut params = frame.envelope().params;
    loop {
        let Some(method) = frame.string(frame.member(params, "method")) else { return false };
        if Dialect::of_successor(&method).is_none() {
            return method == CANCEL_REQUEST;
        }
        params = frame.member(params, "params");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(method: &str, params: &str) -> Frame {
        Frame::parse(format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#).into())
    }

    #[test]
    fn a_call_names_a_session_by_a_string_only() {
        for (params, expected) in [
            (r#"{"sessionId":"s"}"#, Named::Session("s".into())),
            (r#"{"sessionId":1}"#, Named::NotText),
            (r#"{"sessionId":null}"#, Named::NotText),
            ("{}", Named::Nothing),
            ("null", Named::Nothing),
            ("[]", Named::Array),
        ] {
            assert_eq!(named_session(&frame("session/prompt", params)), expected, "{params}");
        }
    }

    #[test]
    fn cancellations_belong_to_the_connection_however_deep_they_are_wrapped() {
        let cancel = r#"{"method":"$/cancel_request","params":{"requestId":1}}"#;
        assert!(is_connection_scoped(&frame("$/cancel_request", r#"{"sessionId":"s"}"#)));
        assert!(is_connection_scoped(&frame("$/anything", "{}")));
        assert!(is_connection_scoped(&frame("_proxy/successor", cancel)));
        assert!(is_connection_scoped(&frame("proxy/successor", cancel)));
        let twice = format!(r#"{{"method":"proxy/successor","params":{cancel}}}"#);
        assert!(is_connection_scoped(&frame("_proxy/successor", &twice)));
        assert!(!is_connection_scoped(&frame("proxy/successor", r#"{"method":"$/other"}"#)));
        assert!(!is_connection_scoped(&frame("session/prompt", cancel)));
    }

    #[test]
    fn results_name_new_sessions() {
        let text = r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"n","x":1}}"#;
        assert_eq!(result_session(&Frame::parse(text.into())).as_deref(), Some("n"));
        assert_eq!(result_session(&Frame::parse(r#"{"jsonrpc":"2.0","id":1,"result":null}"#.into())), None);
    }
}
