//! The successor envelope: how one hop carries messages of two logical peers.

use crate::dialect::Dialect;
use crate::error::Error;
use crate::frame::Frame;
use crate::scan::members;
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
    /// `-32602` when the envelope's params are no object with a string `method` (spec E3).
    pub fn open(frame: &Frame) -> Option<Result<Self, Error>> {
        let dialect = Dialect::of_successor(frame.method())?;
        Some(Self::read(frame, dialect))
    }

    fn read(frame: &Frame, dialect: Dialect) -> Result<Self, Error> {
        let base = frame.envelope().params.start();
        let text = frame.envelope().params.of(frame.text());
        let (mut method, mut params) = (Span::ABSENT, Span::ABSENT);
        let walked = members(text, |name, value| {
            match name {
                b"method" => method = value,
                b"params" => params = value,
                // `_meta` (or `meta`) of the envelope is hop-local and never merged inwards.
                _ => {}
            }
            Some(())
        });
        let is_string = method.of(text).first() == Some(&b'"');
        if walked.is_none() || !is_string || method.of(text).contains(&b'\\') {
            return Err(Error::invalid_params().data(serde_json::json!({
                "error": "a successor envelope needs a string member `method`",
                "phase": "deserialization",
            })));
        }
        if params.of(text) == b"null" {
            params = Span::ABSENT;
        }
        Ok(Self { dialect, method: method.shifted(base), params: params.shifted(base) })
    }

    /// The inner method.
    #[must_use]
    pub fn method_in<'a>(&self, frame: &'a Frame) -> &'a str {
        frame.part(self.method.inner())
    }
}
