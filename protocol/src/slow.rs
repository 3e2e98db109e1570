//! The slow path from bytes to a frame: batches, escapes, duplicates, deep nesting, errors.
//!
//! Correctness comes from `serde_json`; this file only finds out where the members stand.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::ErrorCode;
use crate::frame::Frame;
use crate::limits::MAX_BATCH_ENTRIES;
use crate::scan::{Envelope, scan};
use crate::span::Span;

/// What some programs write before their first line.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads a text that the fast scanner left alone.
pub(crate) fn parse(text: Bytes) -> Frame {
    if text.starts_with(BYTE_ORDER_MARK) {
        let text = text.slice(BYTE_ORDER_MARK.len()..);
        return match scan(&text) {
            Some(envelope) => Frame::classify(text, envelope, None),
            None => unmarked(text),
        };
    }
    unmarked(text)
}

fn unmarked(text: Bytes) -> Frame {
    if u32::try_from(text.len()).is_err() {
        // Spans could not point into it.
        return Frame::malformed(text, Envelope::default(), ErrorCode::InvalidRequest, "the frame is too long");
    }
    match text.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
        Some(b'{') => object(text),
        Some(b'[') => array(text),
        _ => Frame::noise(text),
    }
}

fn object(text: Bytes) -> Frame {
    let mut envelope = Envelope::default();
    let mut duplicate = false;
    let walked = members(&text, |name, value| {
        if let Some(slot) = envelope.slot(name.as_bytes()) {
            duplicate |= slot.is_present();
            *slot = value;
        }
    });
    if walked.is_err() {
        let envelope = shape_of_broken(&text);
        return Frame::malformed(text, envelope, ErrorCode::ParseError, "not valid JSON");
    }
    if duplicate {
        return Frame::malformed(text, envelope, ErrorCode::InvalidRequest, "an envelope member occurs twice");
    }
    let spelled = envelope.method.of(&text);
    let decoded = if spelled.contains(&b'\\') {
        match serde_json::from_slice::<Box<str>>(spelled) {
            Ok(decoded) => Some(decoded),
            // A lone surrogate: valid to skip, impossible to decode.
            Err(_) => {
                return Frame::malformed(text, envelope, ErrorCode::InvalidRequest, "member method is no valid string");
            }
        }
    } else {
        None
    };
    Frame::classify(text, envelope, decoded)
}

fn array(text: Bytes) -> Frame {
    let refused = |text, code, reason| Frame::malformed(text, Envelope::default(), code, reason);
    let Ok(values) = serde_json::from_slice::<Values<'_>>(&text) else {
        return refused(text, ErrorCode::ParseError, "not valid JSON");
    };
    if values.too_many {
        return refused(text, ErrorCode::InvalidRequest, "a batch has too many entries");
    }
    if values.entries.is_empty() {
        return refused(text, ErrorCode::InvalidRequest, "a batch needs at least one entry");
    }
    let entries: Vec<Frame> = values.entries.iter().map(|value| entry(&text, value)).collect();
    Frame::batch(text, entries)
}

/// Reads one entry of a batch; an entry that is no object is malformed, not noise.
fn entry(batch: &Bytes, value: &RawValue) -> Frame {
    let span = position(batch, value);
    let text = batch.slice(span.start()..span.end());
    if text.first() == Some(&b'{') {
        Frame::parse(text)
    } else {
        Frame::malformed(text, Envelope::default(), ErrorCode::InvalidRequest, "a batch entry must be an object")
    }
}

/// Where a borrowed value stands in the text it was borrowed from.
fn position(text: &[u8], value: &RawValue) -> Span {
    let start = value.get().as_ptr() as usize - text.as_ptr() as usize;
    Span::new(start, start + value.get().len())
}

/// Guesses from broken JSON whether it was meant as a response, because those are never answered:
/// looks for the members of the outermost object, as far as the text can be followed.
fn shape_of_broken(text: &[u8]) -> Envelope {
    let mut envelope = Envelope::default();
    let (mut depth, mut at) = (0usize, 0);
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let start = at;
                at = end_of_string(text, at);
                let rest = text.get(at..).unwrap_or_default().trim_ascii_start();
                if depth == 1
                    && rest.first() == Some(&b':')
                    && let Some(slot) = envelope.slot(&text[start..at - 1])
                {
                    *slot = Span::new(start - 1, at);
                }
            }
            _ => {}
        }
    }
    envelope
}

/// The index behind the quote that closes the string with its first character at `at`, or the end
/// of the text.
fn end_of_string(text: &[u8], mut at: usize) -> usize {
    while let Some(step) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += step + 1;
        if text[at - 1] == b'"' {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// Walks the members of the one object in `text` in wire order, duplicates included. Slower than
/// [`scan::members`](crate::scan::members), but reads everything that `serde_json` reads.
pub(crate) fn members(text: &[u8], visit: impl FnMut(&str, Span)) -> serde_json::Result<()> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    Members { text, visit }.deserialize(&mut deserializer)?;
    deserializer.end()
}

struct Members<'a, F> {
    text: &'a [u8],
    visit: F,
}

impl<'de, F: FnMut(&str, Span)> DeserializeSeed<'de> for Members<'de, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, F: FnMut(&str, Span)> Visitor<'de> for Members<'de, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Name<'de>>()? {
            let value = map.next_value::<&'de RawValue>()?;
            (self.visit)(&name.0, position(self.text, value));
        }
        Ok(())
    }
}

/// A member name, borrowed when it has no escape.
struct Name<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// The items of an array in wire order, as many as a batch may have.
struct Values<'a> {
    entries: Vec<&'a RawValue>,
    too_many: bool,
}

impl<'de: 'a, 'a> Deserialize<'de> for Values<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Values<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while entries.len() < MAX_BATCH_ENTRIES {
                    match seq.next_element::<&'de RawValue>()? {
                        Some(value) => entries.push(value),
                        None => return Ok(Values { entries, too_many: false }),
                    }
                }
                let mut too_many = false;
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    too_many = true;
                }
                Ok(Values { entries, too_many })
            }
        }
        deserializer.deserialize_seq(Collect)
    }
}
