//! The slow path from bytes to a frame: batches, escapes, duplicates, deep nesting, errors.
//!
//! Correctness comes from `serde_json`; this file only finds out where the members stand.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::ErrorCode;
use crate::frame::Frame;
use crate::scan::Envelope;
use crate::span::Span;

/// Reads a text that the fast scanner left alone.
pub(crate) fn parse(text: Bytes) -> Frame {
    match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => object(text),
        Some(b'[') => array(text),
        _ => Frame::noise(text),
    }
}

fn object(text: Bytes) -> Frame {
    let Ok(members) = serde_json::from_slice::<Members<'_>>(&text) else {
        let envelope = shape_of_broken(&text);
        return Frame::malformed(text, envelope, ErrorCode::ParseError, "not valid JSON");
    };
    let mut envelope = Envelope::default();
    let mut duplicate = false;
    for (name, value) in &members.0 {
        if let Some(slot) = envelope.slot(name.as_bytes()) {
            duplicate |= slot.is_present();
            *slot = position(&text, value);
        }
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
    let Ok(values) = serde_json::from_slice::<Values<'_>>(&text) else {
        return Frame::malformed(text, Envelope::default(), ErrorCode::ParseError, "not valid JSON");
    };
    if values.0.is_empty() {
        let reason = "a batch needs at least one entry";
        return Frame::malformed(text, Envelope::default(), ErrorCode::InvalidRequest, reason);
    }
    let entries: Vec<Frame> = values.0.iter().map(|value| entry(&text, value)).collect();
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

/// Guesses from broken JSON whether it was meant as a response, because those are never answered.
fn shape_of_broken(text: &[u8]) -> Envelope {
    let mut envelope = Envelope::default();
    for (name, slot) in [
        (&br#""method""#[..], &mut envelope.method),
        (&br#""result""#[..], &mut envelope.result),
        (&br#""error""#[..], &mut envelope.error),
    ] {
        if let Some(at) = memchr::memmem::find(text, name) {
            *slot = Span::new(at, at + name.len());
        }
    }
    envelope
}

/// The members of an object in wire order, duplicates included.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(name) = map.next_key::<Name<'de>>()? {
                    members.push((name.0, map.next_value::<&'de RawValue>()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
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

/// The items of an array in wire order.
struct Values<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Values<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Values<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = seq.next_element::<&'de RawValue>()? {
                    values.push(value);
                }
                Ok(Values(values))
            }
        }
        deserializer.deserialize_seq(Collect)
    }
}
