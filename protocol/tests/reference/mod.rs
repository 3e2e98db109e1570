//! What `serde_json` finds in a text, compared with what the frame says; shared by the tests and
//! the fuzz targets.

use std::collections::HashMap;

use bytes::Bytes;
use greenroom_protocol::{Envelope, Frame, FrameKind, Span, scan};
use serde_json::value::RawValue;

/// The envelope as `serde_json` sees it: every member by name, with its exact text.
fn reference(text: &[u8]) -> Option<HashMap<String, &str>> {
    let members: HashMap<String, &RawValue> = serde_json::from_slice(text).ok()?;
    Some(members.into_iter().map(|(name, value)| (name, value.get())).collect())
}

fn members(envelope: &Envelope) -> [(&'static str, Span); 6] {
    let Envelope { version, id, method, params, result, error } = *envelope;
    [("jsonrpc", version), ("id", id), ("method", method), ("params", params), ("result", result), ("error", error)]
}

/// Checks everything that must hold for any input whatsoever.
#[track_caller]
pub(crate) fn check(text: &[u8]) {
    let shown = || String::from_utf8_lossy(text).into_owned();
    if let Some(envelope) = scan(text) {
        let expected = reference(text).unwrap_or_else(|| panic!("accepts what serde_json refuses: {}", shown()));
        for (name, span) in members(&envelope) {
            let found = span.is_present().then(|| std::str::from_utf8(span.of(text)).expect("utf-8"));
            assert_eq!(found, expected.get(name).copied(), "member {name} of {}", shown());
        }
    }
    let frame = Frame::parse(Bytes::copy_from_slice(text));
    // A byte order mark, which `serde_json` does not read, is no part of the frame.
    assert!(frame.text() == text || text.strip_prefix("\u{feff}".as_bytes()) == Some(frame.text()), "{}", shown());
    let valid = serde_json::from_slice::<&RawValue>(frame.text()).is_ok();
    match frame.kind() {
        FrameKind::Request | FrameKind::Notification | FrameKind::Result | FrameKind::Error => {
            assert!(valid, "{}", shown());
            check_message(&frame);
        }
        FrameKind::Batch => {
            assert!(valid, "{}", shown());
            let entries: Vec<&RawValue> = serde_json::from_slice(frame.text()).expect("an array");
            let expected: Vec<&[u8]> = entries.iter().map(|entry| entry.get().as_bytes()).collect();
            let found: Vec<&[u8]> = frame.entries().iter().map(|entry| &entry.text()[..]).collect();
            assert_eq!(found, expected, "{}", shown());
        }
        FrameKind::Malformed => {
            let code = i32::from(frame.malformation().expect("a reason").error.code);
            // Names that no string can hold are refused as broken JSON, though only spelled oddly.
            assert!(code == -32600 && valid || code == -32700, "{code} for {}", shown());
        }
        FrameKind::Noise => {
            let first = text.iter().find(|byte| !b" \t\r\n".contains(byte));
            assert!(!matches!(first, Some(b'{' | b'[')), "{}", shown());
        }
    }
}

/// What holds for every valid message: its parts are those that `serde_json` finds.
fn check_message(frame: &Frame) {
    let expected = reference(frame.text()).expect("valid");
    let part = |name: &str| expected.get(name).copied();
    let envelope = frame.envelope();
    for (name, span) in members(envelope) {
        let found = span.is_present().then(|| frame.part(span));
        assert_eq!(found, part(name), "{name}");
    }
    let method: Option<String> = part("method").map(|text| serde_json::from_str(text).expect("a string"));
    assert_eq!(frame.method(), method.unwrap_or_default());
    assert_eq!(frame.request_id().is_some(), part("id").is_some(), "an endpoint understands every id it gets");
    if let Some(id) = frame.raw_id() {
        let mut spelled = Vec::new();
        id.write_json(&mut spelled);
        assert_eq!(std::str::from_utf8(&spelled).ok(), part("id"));
    }
}
