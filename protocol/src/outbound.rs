//! A message on its way out, in up to three pieces, so that relays never copy a payload.
//!
//! A relay changes an id or puts an envelope around a message: the new bytes go into `head` and
//! `tail`, the payload stays a shared slice of the text it arrived in. The writer copies small
//! messages together and writes large ones vectored.

use std::borrow::Cow;
use std::fmt;

use agent_client_protocol_schema::rpc::RequestId;
use bytes::Bytes;

use crate::dialect::Dialect;
use crate::frame::{Frame, FrameKind};
use crate::id::RawId;
use crate::scan::Envelope;
use crate::span::Span;

/// One outgoing message: `head`, `body` and `tail` follow each other on the wire.
///
/// `Debug` shows the length only, never content.
#[derive(Clone, Default)]
pub struct Outbound {
    head: Vec<u8>,
    body: Bytes,
    tail: Cow<'static, [u8]>,
}

const VERSION: &[u8] = br#"{"jsonrpc":"2.0""#;

impl Outbound {
    /// The frame exactly as it is.
    #[must_use]
    pub fn whole(frame: &Frame) -> Self {
        Self { head: Vec::new(), body: frame.text().clone(), tail: Cow::Borrowed(b"") }
    }

    /// The frame with another id; every other byte stays. A frame without an id is left as it is.
    #[must_use]
    pub fn with_id(frame: &Frame, id: &RawId) -> Self {
        // Ids usually stand near one end; whatever is shorter is copied, the rest is shared.
        let text = frame.text();
        let span = frame.envelope().id;
        if !span.is_present() {
            return Self::whole(frame);
        }
        let (before, after) = (span.start(), text.len() - span.end());
        if before <= after {
            let mut head = Vec::with_capacity(before + 24);
            head.extend_from_slice(&text[..before]);
            id.write_json(&mut head);
            Self { head, body: text.slice(span.end()..), tail: Cow::Borrowed(b"") }
        } else {
            let mut tail = Vec::with_capacity(after + 24);
            id.write_json(&mut tail);
            tail.extend_from_slice(&text[span.end()..]);
            Self { head: Vec::new(), body: text.slice(..before), tail: Cow::Owned(tail) }
        }
    }

    /// A call. `method` is JSON text with quotes; without `id` it is a notification; empty
    /// `params` are left out.
    #[must_use]
    pub fn call(id: Option<&RawId>, method: &[u8], params: Bytes) -> Self {
        let mut head = Vec::with_capacity(64 + method.len());
        open_call(&mut head, id, method);
        if params.is_empty() {
            head.push(b'}');
            return Self { head, body: Bytes::new(), tail: Cow::Borrowed(b"") };
        }
        head.extend_from_slice(br#","params":"#);
        Self { head, body: params, tail: Cow::Borrowed(b"}") }
    }

    /// A call inside a successor envelope. Empty `params` are written as null (spec E4: released
    /// readers lose a notification envelope without the member).
    #[must_use]
    pub fn wrapped(dialect: Dialect, id: Option<&RawId>, method: &[u8], params: Bytes) -> Self {
        let mut head = Vec::with_capacity(112 + method.len());
        open_call(&mut head, id, dialect.successor_json());
        head.extend_from_slice(br#","params":{"method":"#);
        head.extend_from_slice(method);
        head.extend_from_slice(br#","params":"#);
        let body = if params.is_empty() { Bytes::from_static(b"null") } else { params };
        Self { head, body, tail: Cow::Borrowed(b"}}") }
    }

    /// An answer with a result, given as JSON text.
    #[must_use]
    pub fn result(id: &RawId, result: Bytes) -> Self {
        Self::answer(id, br#","result":"#, result)
    }

    /// An answer with an error object, given as JSON text.
    #[must_use]
    pub fn error(id: &RawId, error: Bytes) -> Self {
        Self::answer(id, br#","error":"#, error)
    }

    fn answer(id: &RawId, member: &[u8], body: Bytes) -> Self {
        let mut head = Vec::with_capacity(64);
        head.extend_from_slice(VERSION);
        head.extend_from_slice(br#","id":"#);
        id.write_json(&mut head);
        head.extend_from_slice(member);
        Self { head, body, tail: Cow::Borrowed(b"}") }
    }

    /// A JSON array of these messages.
    #[must_use]
    pub fn array(entries: &[Outbound]) -> Self {
        let mut head = Vec::with_capacity(2 + entries.iter().map(|entry| entry.len() + 1).sum::<usize>());
        head.push(b'[');
        for (index, entry) in entries.iter().enumerate() {
            if index > 0 {
                head.push(b',');
            }
            for piece in entry.pieces() {
                head.extend_from_slice(piece);
            }
        }
        head.push(b']');
        Self { head, body: Bytes::new(), tail: Cow::Borrowed(b"") }
    }

    /// Length in bytes, without a line end.
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len() + self.tail.len()
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces in wire order; some may be empty.
    #[must_use]
    pub fn pieces(&self) -> [&[u8]; 3] {
        [&self.head, &self.body, &self.tail]
    }

    /// Whether a line end stands inside: JSON allows it between tokens, line framing does not.
    #[must_use]
    pub fn has_line_end(&self) -> bool {
        self.pieces().iter().any(|piece| memchr::memchr2(b'\n', b'\r', piece).is_some())
    }

    /// The message as one text.
    #[must_use]
    pub fn into_text(self) -> Bytes {
        if self.head.is_empty() && self.tail.is_empty() {
            return self.body;
        }
        if self.body.is_empty() && self.tail.is_empty() {
            return self.head.into();
        }
        let mut text = self.head;
        text.reserve_exact(self.body.len() + self.tail.len());
        text.extend_from_slice(&self.body);
        text.extend_from_slice(&self.tail);
        text.into()
    }

    /// The message as a frame, for a receiver in the same process. What is no valid message becomes a
    /// malformed frame.
    #[must_use]
    pub fn into_frame(self) -> Frame {
        Frame::parse(self.into_text())
    }
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbound").field("bytes", &self.len()).finish_non_exhaustive()
    }
}

fn open_call(head: &mut Vec<u8>, id: Option<&RawId>, method: &[u8]) {
    head.extend_from_slice(VERSION);
    if let Some(id) = id {
        head.extend_from_slice(br#","id":"#);
        id.write_json(head);
    }
    head.extend_from_slice(br#","method":"#);
    head.extend_from_slice(method);
}

/// A string as JSON text with quotes.
#[must_use]
pub fn quoted(text: &str) -> Cow<'static, str> {
    // Methods are plain words; only odd ones need the general way.
    if text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
        let mut json = String::with_capacity(text.len() + 2);
        json.push('"');
        json.push_str(text);
        json.push('"');
        return json.into();
    }
    serde_json::Value::from(text).to_string().into()
}

impl Frame {
    /// A request written by this process. `params` is JSON text, empty for none.
    #[must_use]
    pub fn request(id: &RequestId, method: &str, params: &[u8]) -> Self {
        Self::write_call(Some(&id.into()), method, params)
    }

    /// A notification written by this process. `params` is JSON text, empty for none.
    #[must_use]
    pub fn notification(method: &str, params: &[u8]) -> Self {
        Self::write_call(None, method, params)
    }

    fn write_call(id: Option<&RawId>, method: &str, params: &[u8]) -> Self {
        let mut text = Vec::with_capacity(64 + method.len() + params.len());
        let mut envelope = Envelope::default();
        text.extend_from_slice(VERSION);
        envelope.version = Span::new(VERSION.len() - 5, VERSION.len());
        if let Some(id) = id {
            text.extend_from_slice(br#","id":"#);
            let start = text.len();
            id.write_json(&mut text);
            envelope.id = Span::new(start, text.len());
        }
        text.extend_from_slice(br#","method":"#);
        let start = text.len();
        text.extend_from_slice(quoted(method).as_bytes());
        envelope.method = Span::new(start, text.len());
        if !params.is_empty() {
            text.extend_from_slice(br#","params":"#);
            let start = text.len();
            text.extend_from_slice(params);
            envelope.params = Span::new(start, text.len());
        }
        text.push(b'}');
        if text[envelope.method.start()..envelope.method.end()].contains(&b'\\') {
            return Self::parse(text.into());
        }
        let kind = if id.is_some() { FrameKind::Request } else { FrameKind::Notification };
        Self::written(text.into(), envelope, kind)
    }
}

impl Outbound {
    /// The pieces in wire order, by value; some may be empty.
    #[must_use]
    pub fn into_pieces(self) -> [Bytes; 3] {
        let tail = match self.tail {
            Cow::Borrowed(tail) => Bytes::from_static(tail),
            Cow::Owned(tail) => tail.into(),
        };
        [self.head.into(), self.body, tail]
    }
}
