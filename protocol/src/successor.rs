//! The successor envelope: how one hop carries messages of two logical peers.

use std::borrow::Cow;

use crate::dialect::Dialect;
use crate::error::Error;
use crate::frame::Frame;
use crate::scan::members;
use crate::slow;
use crate::span::Span;

/// A message inside a successor envelope; spans into the text of the outer frame.
#[derive(Clone, Copy, Debug)]
pub struct Successor {
    /// The spelling of the envelope.
    pub dialect: Dialect,
    /// The inner method with its quotes.
    pub method: Span,
    /// The inner params; absent when omitted or null.
    pub params: Span,
}

impl Successor {
    /// Looks into a frame. `None` when its method is not the successor method of either dialect.
    ///
    /// # Errors
    /// `-32602` when the envelope's params are no object with a string `method` (spec E3),
    /// or when one of its members occurs twice.
    pub fn open(frame: &Frame) -> Option<Result<Self, Error>> {
        let dialect = Dialect::of_successor(frame.method())?;
        Some(Self::read(frame, dialect))
    }

    fn read(frame: &Frame, dialect: Dialect) -> Result<Self, Error> {
        let base = frame.envelope().params.start();
        let text = frame.envelope().params.of(frame.text());
        let (method, params) = envelope(text).ok_or_else(|| {
            Error::invalid_params().data(serde_json::json!({
                "error": "a successor envelope needs one string member `method` and at most one `params`",
                "phase": "deserialization",
            }))
        })?;
        let params = if params.of(text) == b"null" { Span::ABSENT } else { params };
        Ok(Self { dialect, method: method.shifted(base), params: params.shifted(base) })
    }

    /// The inner method; copied only when its spelling has an escape.
    #[must_use]
    pub fn method_in<'a>(&self, frame: &'a Frame) -> Cow<'a, str> {
        let spelled = frame.part(self.method);
        if !spelled.contains('\\') {
            return Cow::Borrowed(frame.part(self.method.inner()));
        }
        // `open` checked that it can be decoded.
        Cow::Owned(serde_json::from_str(spelled).unwrap_or_default())
    }
}

/// Where the members `method` and `params` stand in the params of an envelope. `None` when the
/// method is missing, no string or impossible to decode, and when either member is ambiguous.
///
/// `_meta` (or `meta`) of the envelope is hop-local and never merged inwards.
fn envelope(text: &[u8]) -> Option<(Span, Span)> {
    let mut found = Found::default();
    let fast = members(text, |name, value| {
        found.store(name, value);
        Some(())
    });
    if fast.is_none() {
        // Nested too deeply or spelled unusually, or no object at all: start again, thoroughly.
        found = Found::default();
        slow::members(text, |name, value| found.store(name.as_bytes(), value)).ok()?;
    }
    let Found { method, params, ambiguous } = found;
    let spelled = method.of(text);
    let decodable = !spelled.contains(&b'\\') || serde_json::from_slice::<Box<str>>(spelled).is_ok();
    (spelled.first() == Some(&b'"') && decodable && !ambiguous).then_some((method, params))
}

#[derive(Default)]
struct Found {
    method: Span,
    params: Span,
    ambiguous: bool,
}

impl Found {
    fn store(&mut self, name: &[u8], value: Span) {
        let slot = match name {
            b"method" => &mut self.method,
            b"params" => &mut self.params,
            _ => return,
        };
        self.ambiguous |= slot.is_present();
        *slot = value;
    }
}
