//! What a POST brings: which session its calls belong to, and what to remember for the answers.
//! Pure.

use bytes::Bytes;
use greenroom_protocol::{Frame, FrameKind, RawId};

use super::answer::Refusal;
use crate::http::scope::{Named, is_connection_scoped, named_session, needs_session, opens_session};

/// What the answer to a request will mean for the sessions of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Its session exists.
    Plain,
    /// So does the session that the result names.
    Opens,
    /// Its session is gone.
    Closes,
}

/// A request whose answer will come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) id: RawId,
    pub(super) session: Option<Box<str>>,
    pub(super) effect: Effect,
}

/// A frame that may be forwarded, and the answers that it asks for.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) frame: Frame,
    pub(super) expected: Vec<Expected>,
}

/// Checks every call of a frame against the session that the header names, and puts that session
/// into params that name none.
pub(super) fn check(frame: Frame, header: Option<&str>) -> Result<Checked, Refusal> {
    let mut expected = Vec::new();
    if frame.kind() != FrameKind::Batch {
        let changed = call(&frame, header, &mut expected)?;
        let frame = changed.map_or(frame, Frame::parse);
        return Ok(Checked { frame, expected });
    }
    let entries = frame.entries();
    let changed: Vec<_> =
        entries.iter().map(|entry| call(entry, header, &mut expected)).collect::<Result<_, Refusal>>()?;
    let frame = if changed.iter().any(Option::is_some) {
        let texts = entries.iter().zip(changed).map(|(entry, changed)| changed.unwrap_or_else(|| entry.text().clone()));
        Frame::parse(array(texts))
    } else {
        frame
    };
    Ok(Checked { frame, expected })
}

fn array(entries: impl Iterator<Item = Bytes>) -> Bytes {
    let mut text = vec![b'['];
    for (index, entry) in entries.enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend_from_slice(&entry);
    }
    text.push(b']');
    text.into()
}

/// Checks one message. Returns its new text, if the header's session had to be put into it.
fn call(frame: &Frame, header: Option<&str>, expected: &mut Vec<Expected>) -> Result<Option<Bytes>, Refusal> {
    if !matches!(frame.kind(), FrameKind::Request | FrameKind::Notification) {
        return Ok(None);
    }
    if is_connection_scoped(frame) {
        expect(frame, None, expected);
        return Ok(None);
    }
    let named = named_session(frame);
    let Some(header) = header else {
        let session = match named {
            Named::Session(session) => Some(session.into()),
            Named::Nothing | Named::NotText | Named::Array if needs_session(frame.method()) => {
                return Err(Refusal::text(400, "Acp-Session-Id header required"));
            }
            Named::Nothing | Named::NotText | Named::Array => None,
        };
        expect(frame, session, expected);
        return Ok(None);
    };
    let changed = match named {
        Named::Session(session) if session == header => None,
        Named::Session(_) => return Err(Refusal::text(400, "Acp-Session-Id header does not match params.sessionId")),
        Named::NotText => return Err(Refusal::text(400, "params.sessionId must be a string")),
        Named::Array => return Err(Refusal::text(400, "Acp-Session-Id header requires object params")),
        Named::Nothing => Some(with_session(frame, header)),
    };
    expect(frame, Some(header.into()), expected);
    Ok(changed)
}

fn expect(frame: &Frame, session: Option<Box<str>>, expected: &mut Vec<Expected>) {
    if frame.kind() != FrameKind::Request {
        return;
    }
    let method = frame.method();
    let effect = match method {
        "session/close" | "session/delete" => Effect::Closes,
        _ if opens_session(method) => Effect::Opens,
        _ => Effect::Plain,
    };
    if let Some(id) = frame.raw_id().filter(|id| *id != RawId::Text("null".into())) {
        expected.push(Expected { id, session, effect });
    }
}

/// The text of a call with this session in its params; every other byte stays.
fn with_session(frame: &Frame, session: &str) -> Bytes {
    let text = frame.text();
    let member = format!(r#""sessionId":{}"#, serde_json::Value::from(session));
    let params = frame.envelope().params;
    let mut out = Vec::with_capacity(text.len() + member.len() + 16);
    if !params.is_present() {
        // Behind the last member of the message: before its closing brace.
        let end = text.iter().rposition(|byte| *byte == b'}').unwrap_or(text.len());
        out.extend_from_slice(&text[..end]);
        out.extend_from_slice(format!(r#","params":{{{member}}}"#).as_bytes());
        out.extend_from_slice(&text[end..]);
    } else if frame.part(params) == "null" {
        out.extend_from_slice(&text[..params.start()]);
        out.extend_from_slice(format!("{{{member}}}").as_bytes());
        out.extend_from_slice(&text[params.end()..]);
    } else {
        let inside = params.start() + 1;
        let is_empty = frame.part(params)[1..].trim_start().starts_with('}');
        out.extend_from_slice(&text[..inside]);
        out.extend_from_slice(member.as_bytes());
        if !is_empty {
            out.push(b',');
        }
        out.extend_from_slice(&text[inside..]);
    }
    out.into()
}

/// The id of the `initialize` that opens a connection with this frame; `None` when it does not.
///
/// In a batch it is the first call; only responses, and input that looks like one, may stand before
/// it.
pub(super) fn opening_id(frame: &Frame) -> Option<RawId> {
    let is_initialize =
        |frame: &Frame| frame.kind() == FrameKind::Request && frame.method() == greenroom_protocol::method::INITIALIZE;
    if is_initialize(frame) {
        return frame.raw_id();
    }
    let first = frame.entries().iter().find(|entry| match entry.kind() {
        FrameKind::Result | FrameKind::Error => false,
        FrameKind::Malformed => entry.malformation().is_none_or(|malformed| !malformed.response_shaped),
        FrameKind::Request | FrameKind::Notification | FrameKind::Batch | FrameKind::Noise => true,
    })?;
    is_initialize(first).then(|| first.raw_id()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str, header: Option<&str>) -> Result<(String, Vec<Expected>), Refusal> {
        let Checked { frame, expected } = check(Frame::parse(text.to_owned().into()), header)?;
        assert!(frame.kind() != FrameKind::Malformed, "{frame:?}");
        Ok((String::from_utf8(frame.text().to_vec()).expect("utf-8"), expected))
    }

    #[test]
    fn the_session_of_the_header_goes_into_params_that_name_none() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","method":"m"}"#, r#"{"jsonrpc":"2.0","method":"m","params":{"sessionId":"s\"1"}}"#),
            (
                r#"{"jsonrpc":"2.0","method":"m","params":null,"id":1}"#,
                r#"{"jsonrpc":"2.0","method":"m","params":{"sessionId":"s\"1"},"id":1}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"m","params":{ }}"#,
                r#"{"jsonrpc":"2.0","method":"m","params":{"sessionId":"s\"1" }}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"m","params":{"a":[1]}}"#,
                r#"{"jsonrpc":"2.0","method":"m","params":{"sessionId":"s\"1","a":[1]}}"#,
            ),
        ] {
            assert_eq!(checked(text, Some("s\"1")).expect("accepted").0, expected);
        }
    }

    #[test]
    fn what_belongs_to_the_connection_is_left_alone() {
        let cancel = r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}"#;
        let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        for text in [cancel, response] {
            assert_eq!(checked(text, Some("s")).expect("accepted").0, text);
        }
    }

    #[test]
    fn entries_of_a_batch_are_checked_one_by_one() {
        let text = r#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":"x","result":1}]"#;
        let (text, expected) = checked(text, Some("s")).expect("accepted");
        assert_eq!(
            text,
            r#"[{"jsonrpc":"2.0","id":1,"method":"a","params":{"sessionId":"s"}},{"jsonrpc":"2.0","id":"x","result":1}]"#
        );
        assert_eq!(expected, [Expected { id: RawId::Int(1), session: Some("s".into()), effect: Effect::Plain }]);
    }

    #[test]
    fn only_a_call_that_is_initialize_opens_a_connection() {
        let initialize = r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}"#;
        let response = r#"{"jsonrpc":"2.0","id":1,"result":1}"#;
        let odd_response = r#"{"jsonrpc":"2.0","result":1}"#;
        let other = r#"{"jsonrpc":"2.0","id":2,"method":"x"}"#;
        for (text, expected) in [
            (initialize.to_owned(), true),
            (format!("[{initialize},{other}]"), true),
            (format!("[{response},{odd_response},{initialize}]"), true),
            (format!("[{other},{initialize}]"), false),
            (format!("[{{}},{initialize}]"), false),
            (other.to_owned(), false),
            (format!("[{response}]"), false),
            (r#"{"jsonrpc":"2.0","method":"initialize"}"#.to_owned(), false),
        ] {
            assert_eq!(opening_id(&Frame::parse(text.clone().into())).is_some(), expected, "{text}");
        }
    }
}
