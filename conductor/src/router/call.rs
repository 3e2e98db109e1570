//! Reading a request or notification: what it is, and how to write it for the next hop.

use bytes::Bytes;
use greenroom_protocol::{Dialect, Error, Frame, Outbound, RawId, Span, Successor, method};

use super::path::Form;

/// What a method name means to a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Initialize,
    ProxyInitialize(Dialect),
    Successor(Dialect),
    Cancel,
    /// Traffic to relay.
    Other,
}

impl Word {
    pub(super) fn of(name: &str) -> Self {
        // Nearly all traffic ends at the first letter or at the length.
        match name.as_bytes() {
            [b'_' | b'p', ..] => {
                if let Some(dialect) = Dialect::of_successor(name) {
                    Self::Successor(dialect)
                } else if let Some(dialect) = Dialect::of_initialize(name) {
                    Self::ProxyInitialize(dialect)
                } else {
                    Self::Other
                }
            }
            [b'i', ..] if name == method::INITIALIZE => Self::Initialize,
            [b'$', ..] if name == method::CANCEL_REQUEST => Self::Cancel,
            _ => Self::Other,
        }
    }
}

/// A request or notification, looked at through its envelope if it has one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) form: Form,
    pub(super) word: Word,
    /// With quotes, as spelled.
    method: Span,
    params: Span,
}

impl Call {
    pub(super) fn plain(frame: &Frame, word: Word) -> Self {
        let envelope = frame.envelope();
        Self { form: Form::Plain, word, method: envelope.method, params: envelope.params }
    }

    /// # Errors
    /// `-32602` for an envelope without a method (spec E3).
    pub(super) fn wrapped(frame: &Frame) -> Result<Self, Error> {
        let inside = Successor::open(frame).unwrap_or_else(|| Err(Error::invalid_params()))?;
        let word = Word::of(&inside.method_in(frame));
        Ok(Self { form: Form::Wrapped, word, method: inside.method, params: inside.params })
    }

    /// The logical method; inside an envelope as spelled there.
    pub(super) fn name<'a>(&self, frame: &'a Frame) -> &'a str {
        match self.form {
            Form::Plain => frame.method(),
            Form::Wrapped => frame.part(self.method.inner()),
        }
    }

    /// The logical method as JSON text with quotes, sharing the frame's memory.
    pub(super) fn method(&self, frame: &Frame) -> Bytes {
        frame.share(self.method)
    }

    /// The params, sharing the frame's memory; empty when there are none.
    pub(super) fn params(&self, frame: &Frame) -> Bytes {
        frame.share(self.params)
    }

    /// The message for the next hop, under that hop's id.
    pub(super) fn forward(&self, frame: &Frame, form: Form, dialect: Dialect, id: Option<u64>) -> Outbound {
        let id = id.map(wire_id);
        match (self.form, form, &id) {
            (Form::Plain, Form::Plain, Some(id)) => Outbound::with_id(frame, id),
            (Form::Plain, Form::Plain, None) => Outbound::whole(frame),
            (Form::Wrapped, Form::Plain, _) => {
                Outbound::call(id.as_ref(), self.method.of(frame.text()), self.params(frame))
            }
            // An envelope is written anew for every hop: its metadata belongs to one hop only.
            (_, Form::Wrapped, _) => {
                Outbound::wrapped(dialect, id.as_ref(), self.method.of(frame.text()), self.params(frame))
            }
        }
    }
}

/// An id of our own as it goes to the wire.
pub(super) fn wire_id(id: u64) -> RawId {
    RawId::Int(id.cast_signed())
}

/// The proxy-initialize method as JSON text.
pub(super) const fn quoted_initialize(dialect: Dialect) -> &'static [u8] {
    match dialect {
        Dialect::Legacy => br#""_proxy/initialize""#,
        Dialect::Modern => br#""proxy/initialize""#,
    }
}
