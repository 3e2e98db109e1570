//! One event as one line of JSON, without building a value: payloads are copied, redacted.

use std::collections::HashSet;
use std::fmt::Write as _;

use greenroom_protocol::{RawId, redacted_json};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Duration;

use super::tap::{Missing, Record};
use crate::router::{ComponentIndex, Party, Passage};

/// MCP requests whose answers are remembered; more are shown as answers of ACP.
const MAX_OPEN: usize = 10_000;

/// Writes lines, and remembers what it needs of the requests to write their answers.
#[derive(Default)]
pub(super) struct Lines {
    mcp: HashSet<(Party, Party, RawId)>,
}

#[derive(Deserialize)]
struct Session<'a> {
    #[serde(borrow, default, rename = "sessionId")]
    id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct McpCall<'a> {
    #[serde(borrow)]
    method: &'a RawValue,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct McpAnswer<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Null is a result too.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

impl Lines {
    /// Appends the line of this record, with its line end; nothing for the end.
    pub(super) fn write(&mut self, record: &Record, out: &mut String) {
        let start = out.len();
        let written = match record {
            Record::Passed(at, passage, _) => self.passed(*at, passage, out),
            Record::Noise(at, from, bytes, _) => noise(*at, *from, *bytes, out),
            Record::Lost(missing) => lost(*missing, out),
            Record::End => return,
        };
        // Writing to a string fails only where a payload is no JSON, which the scanner excludes.
        if written.is_err() {
            out.truncate(start);
        }
    }

    fn passed(&mut self, at: Duration, passage: &Passage, out: &mut String) -> std::fmt::Result {
        match passage {
            Passage::Call { from, to, id, method, params } => {
                let (mut method, mut params) = (text(method), text(params));
                let mut protocol = r#""acp""#;
                if method == r#""mcp/message""#
                    && let Ok(inner) = serde_json::from_str::<McpCall<'_>>(params)
                    && inner.method.get().starts_with('"')
                {
                    protocol = r#""mcp""#;
                    (method, params) = (inner.method.get(), inner.params.map_or("", RawValue::get));
                    if let Some(id) = id
                        && self.mcp.len() < MAX_OPEN
                    {
                        self.mcp.insert((*from, *to, id.clone()));
                    }
                }
                open(if id.is_some() { "request" } else { "notification" }, at, out)?;
                member("protocol", protocol, out);
                ends(*from, *to, out)?;
                if let Some(id) = id {
                    out.push_str(r#","id":"#);
                    write_id(id, out)?;
                }
                member("method", method, out);
                if let Some(session) = session(params) {
                    member("session", session, out);
                }
                out.push_str(r#","params":"#);
                payload(params, out)
            }
            Passage::Answer { from, to, id, is_error, payload: said } => {
                let mut said = text(said);
                let mut is_error = *is_error;
                let mut domain = None;
                if !self.mcp.is_empty() && self.mcp.remove(&(*to, *from, id.clone())) {
                    if is_error {
                        domain = Some("acp");
                    } else if let Ok(inner) = serde_json::from_str::<McpAnswer<'_>>(said) {
                        match (inner.result, inner.error) {
                            (Some(result), None) => said = result.get(),
                            (None, Some(error)) => (said, is_error, domain) = (error.get(), true, Some("mcp")),
                            _ => {}
                        }
                    }
                }
                open("response", at, out)?;
                ends(*from, *to, out)?;
                out.push_str(r#","id":"#);
                write_id(id, out)?;
                write!(out, r#","is_error":{is_error}"#)?;
                if let Some(domain) = domain {
                    write!(out, r#","error_domain":"{domain}""#)?;
                }
                out.push_str(r#","payload":"#);
                payload(said, out)
            }
        }
    }
}

fn noise(at: Duration, from: Party, bytes: usize, out: &mut String) -> std::fmt::Result {
    open("noise", at, out)?;
    out.push_str(r#","from":""#);
    name(from, out)?;
    writeln!(out, r#"","bytes":{bytes}}}"#)
}

pub(super) fn lost(missing: Missing, out: &mut String) -> std::fmt::Result {
    writeln!(out, r#"{{"type":"lost","events":{},"bytes":{}}}"#, missing.events, missing.bytes)
}

// What every line has is put together by hand: the machinery of `write!` costs as much as all the
// rest of a short line.

fn open(kind: &str, at: Duration, out: &mut String) -> std::fmt::Result {
    out.push_str(r#"{"type":""#);
    out.push_str(kind);
    out.push_str(r#"","ts":"#);
    write!(out, "{}", at.as_secs())?;
    out.push('.');
    let micros = at.subsec_micros();
    for place in [100_000, 10_000, 1_000, 100, 10, 1] {
        out.push(char::from(b'0' + (micros / place % 10) as u8));
    }
    Ok(())
}

/// A member with a value that is JSON already.
fn member(name: &str, value: &str, out: &mut String) {
    out.push_str(",\"");
    out.push_str(name);
    out.push_str("\":");
    out.push_str(value);
}

fn ends(from: Party, to: Party, out: &mut String) -> std::fmt::Result {
    out.push_str(r#","from":""#);
    name(from, out)?;
    out.push_str(r#"","to":""#);
    name(to, out)?;
    out.push('"');
    Ok(())
}

fn name(party: Party, out: &mut String) -> std::fmt::Result {
    match party {
        Party::At(ComponentIndex::Client) => out.push_str("Client"),
        Party::At(ComponentIndex::Agent) => out.push_str("Agent"),
        Party::At(place) => write!(out, "{place}")?,
        Party::Conductor => out.push_str("Conductor"),
    }
    Ok(())
}

fn write_id(id: &RawId, out: &mut String) -> std::fmt::Result {
    match id {
        RawId::Int(number) => write!(out, "{number}"),
        // One line an event: no white space from within.
        RawId::Text(text) => redacted_json(text, out),
    }
}

/// The payload and the end of the line.
fn payload(text: &str, out: &mut String) -> std::fmt::Result {
    redacted_json(if text.is_empty() { "null" } else { text }, out)?;
    out.push_str("}\n");
    Ok(())
}

fn text(part: &[u8]) -> &str {
    std::str::from_utf8(part).unwrap_or_default()
}

/// The session id of these params, as JSON text.
fn session(params: &str) -> Option<&str> {
    // Serde would read an array as a struct, by position.
    let object = params.starts_with('{').then_some(params)?;
    // Where nearly everybody writes it.
    if let Some(rest) = object.strip_prefix(r#"{"sessionId":""#)
        && let Some(end) = memchr::memchr2(b'"', b'\\', rest.as_bytes())
        && rest.as_bytes()[end] == b'"'
    {
        let start = object.len() - rest.len();
        return Some(&object[start - 1..start + end + 1]);
    }
    // Most params without a session are short; a search is cheaper than reading all.
    memchr::memmem::find(object.as_bytes(), b"sessionId")?;
    let id = serde_json::from_str::<Session<'_>>(object).ok()?.id?.get();
    id.starts_with('"').then_some(id)
}
