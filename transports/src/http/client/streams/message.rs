//! What travels between the connection and the server, and whom it concerns.

use std::fmt;

use greenroom_actors::runtime::Permit;
use greenroom_protocol::Frame;
use reqwest::header::HeaderValue;

/// A session, as its id stands in a header. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Session(HeaderValue);

impl Session {
    /// `None` when no header can carry the id: it has a line end or another control character.
    pub(super) fn new(id: &str) -> Option<Self> {
        let mut value = HeaderValue::from_bytes(id.as_bytes()).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session")
    }
}

/// Whom a stream of events is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    Connection,
    Session(Session),
}

impl Scope {
    pub(super) fn session(&self) -> Option<&Session> {
        match self {
            Self::Connection => None,
            Self::Session(session) => Some(session),
        }
    }
}

/// One message to be posted.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) frame: Frame,
    /// The session that its header names.
    pub(super) session: Option<Session>,
    /// Counts against the connection's outgoing credit until the message is posted.
    pub(super) permit: Option<Permit>,
}
