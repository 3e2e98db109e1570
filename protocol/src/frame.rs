//! One unit of transport: a JSON text that was scanned once, and where its envelope stands.

use std::fmt;
use std::sync::Arc;

use agent_client_protocol_schema::rpc::RequestId;
use bytes::Bytes;

use crate::error::{Error, ErrorCode};
use crate::id::{RawId, is_request_id, request_id};
use crate::raw::malformed_error;
use crate::scan::{Envelope, scan};
use crate::slow;
use crate::span::Span;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A call that wants an answer.
    Request,
    /// A call without an answer.
    Notification,
    /// An answer with a result.
    Result,
    /// An answer with an error.
    Error,
    /// A JSON array of messages, at least one.
    Batch,
    /// Starts like JSON but is no valid JSON-RPC.
    Malformed,
    /// Does not start like JSON: a greeting, a log line. Never answered (spec §9, decision 23).
    Noise,
}

/// Why a frame is no valid JSON-RPC.
#[derive(Clone, Debug)]
pub struct Malformed {
    /// What an endpoint answers with `id: null`: `-32700` for what is not JSON, `-32600` for the rest
    /// (spec §6.3, 87).
    pub error: Error,
    /// Whether it looks like a response. Responses are never answered, not even malformed ones.
    pub response_shaped: bool,
}

/// The rare parts of a frame, kept out of line.
#[derive(Clone, Debug)]
pub(crate) enum Detail {
    /// The decoded method, when its JSON spelling has an escape.
    Method(Box<str>),
    /// The entries of a batch.
    Entries(Box<[Frame]>),
    /// The reason of a malformed frame.
    Malformed(Malformed),
}

/// One message, batch or piece of malformed input, as it came from (or goes to) the wire.
///
/// Cloning is cheap: the text is shared. `Debug` shows kind and length only, never content.
#[derive(Clone)]
pub struct Frame {
    text: Bytes,
    envelope: Envelope,
    kind: FrameKind,
    detail: Option<Arc<Detail>>,
}

impl Frame {
    /// Reads one JSON text, without its line end. Never fails: see [`FrameKind::Malformed`].
    #[must_use]
    pub fn parse(text: Bytes) -> Self {
        match scan(&text) {
            Some(envelope) => Self::classify(text, envelope, None),
            None => slow::parse(text),
        }
    }

    /// Copies the text of a message. As it came it shares its memory with what was read together
    /// with it, and who keeps a frame for long keeps that too.
    pub fn detach(&mut self) {
        self.text = Bytes::copy_from_slice(&self.text);
    }

    /// Sorts a scanned object by its members.
    pub(crate) fn classify(text: Bytes, envelope: Envelope, method: Option<Box<str>>) -> Self {
        match shape(&text, &envelope) {
            Ok(kind) => {
                let detail = method.map(|method| Arc::new(Detail::Method(method)));
                Self { text, envelope, kind, detail }
            }
            Err(reason) => Self::malformed(text, envelope, ErrorCode::InvalidRequest, reason),
        }
    }

    /// A frame that is no valid JSON-RPC.
    pub(crate) fn malformed(text: Bytes, envelope: Envelope, code: ErrorCode, reason: &str) -> Self {
        let response_shaped =
            !envelope.method.is_present() && (envelope.result.is_present() || envelope.error.is_present());
        let detail = Detail::Malformed(Malformed { error: malformed_error(code, reason), response_shaped });
        Self { text, envelope, kind: FrameKind::Malformed, detail: Some(Arc::new(detail)) }
    }

    /// A line that does not start like JSON.
    pub(crate) fn noise(text: Bytes) -> Self {
        Self { text, envelope: Envelope::default(), kind: FrameKind::Noise, detail: None }
    }

    /// A batch of these entries, at least one.
    pub(crate) fn batch(text: Bytes, entries: Vec<Frame>) -> Self {
        let detail = Detail::Entries(entries.into_boxed_slice());
        Self { text, envelope: Envelope::default(), kind: FrameKind::Batch, detail: Some(Arc::new(detail)) }
    }

    /// What stays of the frame where batches are refused: a batch becomes one malformed frame,
    /// which is answered with one error (spec §9, decision 1).
    #[must_use]
    pub fn without_batch(self) -> Self {
        if self.kind != FrameKind::Batch {
            return self;
        }
        Self::malformed(self.text, Envelope::default(), ErrorCode::InvalidRequest, "batches are unsupported")
    }

    /// A frame whose envelope is known because this process wrote it.
    pub(crate) fn written(text: Bytes, envelope: Envelope, kind: FrameKind) -> Self {
        Self { text, envelope, kind, detail: None }
    }

    /// What the frame is.
    #[must_use]
    pub fn kind(&self) -> FrameKind {
        self.kind
    }

    /// The exact JSON text, without the line end that framed it.
    #[must_use]
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// Where the envelope's members stand in [`text`](Self::text).
    #[must_use]
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// The method of a request or notification; empty otherwise.
    #[must_use]
    pub fn method(&self) -> &str {
        if let Some(Detail::Method(decoded)) = self.detail.as_deref() {
            return decoded;
        }
        if !matches!(self.kind, FrameKind::Request | FrameKind::Notification) {
            return "";
        }
        // The scanner checked that the text is UTF-8 and that the method has no escape.
        std::str::from_utf8(self.envelope.method.inner().of(&self.text)).unwrap_or_default()
    }

    /// The id exactly as spelled; `None` for notifications.
    #[must_use]
    pub fn raw_id(&self) -> Option<RawId> {
        self.envelope.id.is_present().then(|| RawId::from_json(self.envelope.id.of(&self.text))).flatten()
    }

    /// The id as an endpoint understands it; `None` for notifications.
    #[must_use]
    pub fn request_id(&self) -> Option<RequestId> {
        self.envelope.id.is_present().then(|| request_id(self.envelope.id.of(&self.text))).flatten()
    }

    /// A part of the text. Empty for an absent span.
    #[must_use]
    pub fn part(&self, span: Span) -> &str {
        std::str::from_utf8(span.of(&self.text)).unwrap_or_default()
    }

    /// A part of the text that shares its memory; it keeps the whole text in memory.
    ///
    /// # Panics
    /// When the span is not one of this frame.
    #[must_use]
    pub fn share(&self, span: Span) -> Bytes {
        self.text.slice(span.start()..span.end())
    }

    /// The entries of a batch; empty otherwise.
    #[must_use]
    pub fn entries(&self) -> &[Frame] {
        match self.detail.as_deref() {
            Some(Detail::Entries(entries)) => entries,
            _ => &[],
        }
    }

    /// Why the frame is malformed; `None` for every other kind.
    #[must_use]
    pub fn malformation(&self) -> Option<&Malformed> {
        match self.detail.as_deref() {
            Some(Detail::Malformed(malformed)) => Some(malformed),
            _ => None,
        }
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame").field("kind", &self.kind).field("bytes", &self.text.len()).finish_non_exhaustive()
    }
}

/// The kind of an object with these members, or what is wrong with it.
fn shape(text: &[u8], envelope: &Envelope) -> Result<FrameKind, &'static str> {
    if !is_version(envelope.version.of(text)) {
        return Err("member jsonrpc must be \"2.0\"");
    }
    let id = envelope.id.of(text);
    let (result, error) = (envelope.result.is_present(), envelope.error.is_present());
    if envelope.method.is_present() {
        if result || error {
            return Err("a message has either a method or a result or an error");
        }
        if envelope.method.of(text).first() != Some(&b'"') {
            return Err("member method must be a string");
        }
        if !matches!(envelope.params.of(text).first(), None | Some(b'{' | b'[' | b'n')) {
            return Err("member params must be an object or an array");
        }
        if !envelope.id.is_present() {
            return Ok(FrameKind::Notification);
        }
        return if is_request_id(id) {
            Ok(FrameKind::Request)
        } else {
            Err("member id must be a string, an integer or null")
        };
    }
    match (result, error) {
        (true, true) => Err("a response has either a result or an error"),
        (false, false) => Err("a message needs a method, a result or an error"),
        _ if !is_request_id(id) => Err("a response needs an id"),
        (true, false) => Ok(FrameKind::Result),
        (false, true) if envelope.error.of(text).first() == Some(&b'{') => Ok(FrameKind::Error),
        (false, true) => Err("member error must be an object"),
    }
}

/// Whether the JSON value is the version `"2.0"`, however it is spelled.
fn is_version(text: &[u8]) -> bool {
    text == br#""2.0""#
        || text.contains(&b'\\') && serde_json::from_slice::<Box<str>>(text).is_ok_and(|version| &*version == "2.0")
}
