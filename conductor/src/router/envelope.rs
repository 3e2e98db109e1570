//! Opening a successor envelope, also one that the fast scanner leaves alone.

use std::borrow::Cow;

use greenroom_protocol::{Error, Frame, Span, Successor};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What is inside an envelope; spans into the text of the frame.
pub(super) struct Inside<'a> {
    /// The method, decoded.
    pub(super) name: Cow<'a, str>,
    /// The method as spelled, with quotes.
    pub(super) method: Span,
    /// The params; absent when omitted or null.
    pub(super) params: Span,
}

#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow)]
    method: &'a RawValue,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// Opens the envelope in a frame whose method is a successor method.
///
/// # Errors
/// `-32602` when the frame's params are no object with a string `method` (spec E3).
pub(super) fn open(frame: &Frame) -> Result<Inside<'_>, Error> {
    match Successor::open(frame) {
        Some(Ok(inner)) => {
            Ok(Inside { name: inner.method_in(frame).into(), method: inner.method, params: inner.params })
        }
        Some(Err(error)) => open_slowly(frame).ok_or(error),
        None => Err(Error::invalid_params()),
    }
}

/// Escapes in member names or in the method (some JSON writers escape every slash) and very deep
/// params are valid all the same.
fn open_slowly(frame: &Frame) -> Option<Inside<'_>> {
    let span = frame.envelope().params;
    let text = frame.part(span);
    // Serde would read an array as a struct, by position.
    let members: Members<'_> = text.starts_with('{').then(|| serde_json::from_str(text).ok())??;
    let name: String = serde_json::from_str(members.method.get()).ok()?;
    let place = |value: &RawValue| {
        let start = value.get().as_ptr() as usize - text.as_ptr() as usize;
        Span::new(start, start + value.get().len()).shifted(span.start())
    };
    Some(Inside {
        name: name.into(),
        method: place(members.method),
        params: members.params.map_or(Span::ABSENT, place),
    })
}
