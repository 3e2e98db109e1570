//! What failed inside this process, for this process only.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use super::{CONNECTION_TERMINATED_REASON, Error, INCOMING_TRANSPORT_CLOSED_REASON};

/// Why this process made an error. Never serialised, so a peer cannot set it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// Application code, or a peer.
    #[default]
    Ordinary,
    /// The incoming side of the transport ended before the response came.
    IncomingClosed,
    /// The local connection ended before the response came.
    Terminated,
    /// A handler waits for a response that only it could let through.
    WouldDeadlock,
    /// A frame was longer than the configured limit.
    Overflow,
    /// A handler was cut off before it answered.
    Interrupted,
    /// The peer's end of the transport is gone.
    PeerGone,
    /// Reading, writing or opening a transport failed.
    Transport,
    /// A program could not be started.
    NotStarted,
    /// A process ended by itself, or did not end although it had to.
    Process,
}

impl Origin {
    /// What a peer may read about an error of this kind: a fixed text.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Ordinary => "internal error",
            Self::IncomingClosed => INCOMING_TRANSPORT_CLOSED_REASON,
            Self::Terminated => CONNECTION_TERMINATED_REASON,
            Self::WouldDeadlock => "would deadlock",
            Self::Overflow => "overflow",
            Self::Interrupted => "interrupted",
            Self::PeerGone => "the other end of the transport is gone",
            Self::Transport => "the transport failed",
            Self::NotStarted => "the program could not be started",
            Self::Process => "the process failed",
        }
    }
}

/// A failure of this process with everything that is known about it: paths, the words of the
/// operating system, the last lines of a process.
///
/// It never travels. Turned into an [`Error`], it leaves its kind and a fixed reason in the part
/// that a peer may see, and stands behind the error as its [`source`](StdError::source).
#[derive(Clone)]
pub struct LocalError {
    kind: Origin,
    message: Box<str>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl LocalError {
    /// A failure of this kind, in words for the person who runs this process.
    #[must_use]
    pub fn new(kind: Origin, message: impl Into<String>) -> Self {
        Self { kind, message: message.into().into_boxed_str(), source: None }
    }

    /// Says what lies behind it.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> Origin {
        self.kind
    }
}

impl fmt::Display for LocalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for LocalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("LocalError");
        out.field("kind", &self.kind).field("message", &self.message);
        if let Some(source) = &self.source {
            out.field("source", source);
        }
        out.finish()
    }
}

impl StdError for LocalError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<LocalError> for Error {
    /// `-32603` whose data has the fixed reason of the kind and nothing else; the failure itself
    /// becomes the error's source.
    fn from(local: LocalError) -> Self {
        Self::internal_error()
            .data(serde_json::json!({ "reason": local.kind.reason() }))
            .with_origin(local.kind)
            .with_source(local)
    }
}

/// Everything that stands behind an error, nearest first.
pub(super) struct Chain<'a>(pub(super) &'a (dyn StdError + 'static));

impl fmt::Debug for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        let mut next = Some(self.0);
        while let Some(error) = next {
            list.entry(&error.to_string());
            next = error.source();
        }
        list.finish()
    }
}
