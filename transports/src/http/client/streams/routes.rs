//! Where one message goes: its lane, its header, and the streams that it needs.

use greenroom_protocol::{Error, Frame, FrameKind, RawId};

use super::message::{Scope, Session};
use crate::http::scope::{Named, is_connection_scoped, named_session, needs_session};

/// Where a message goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Calls, at least one: their common session, and all sessions that they name.
    Call { session: Option<Session>, streams: Vec<Session> },
    /// Nothing but responses.
    Responses,
    /// What is no message at all.
    Nowhere,
}

/// Why a message cannot be posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The method needs a session and names none.
    NoSession,
    /// No header can carry the session's id.
    UnusableSession,
    /// A second `initialize` would make a second connection at the server.
    SecondInitialize,
}

impl Refused {
    pub(super) fn to_error(self) -> Error {
        match self {
            Self::NoSession => Error::invalid_params()
                .data("over HTTP this method needs its session: put a string into params.sessionId"),
            Self::UnusableSession => Error::invalid_params()
                .data("over HTTP a session id must fit into a header: without line ends and control characters"),
            Self::SecondInitialize => Error::invalid_request()
                .data("this connection is initialized, and HTTP has no second time: open another connection"),
        }
    }
}

/// Where a message of the local connection goes.
///
/// # Errors
/// When it cannot be posted.
pub(super) fn route(frame: &Frame) -> Result<Route, Refused> {
    match frame.kind() {
        FrameKind::Request | FrameKind::Notification => {
            let session = called_session(frame)?;
            let streams = session.iter().cloned().collect();
            Ok(Route::Call { session, streams })
        }
        FrameKind::Batch if frame.entries().iter().all(is_response) => Ok(Route::Responses),
        FrameKind::Batch => batch(frame),
        FrameKind::Noise => Ok(Route::Nowhere),
        // A server refuses such a body, and with it the connection.
        FrameKind::Malformed if std::str::from_utf8(frame.text()).is_err() => Ok(Route::Nowhere),
        FrameKind::Result | FrameKind::Error | FrameKind::Malformed if is_response(frame) => Ok(Route::Responses),
        // A relay passes on what its other side makes of it.
        FrameKind::Result | FrameKind::Error | FrameKind::Malformed => {
            Ok(Route::Call { session: None, streams: Vec::new() })
        }
    }
}

/// A batch is posted whole: its header names a session only when every call does.
fn batch(frame: &Frame) -> Result<Route, Refused> {
    let calls = || frame.entries().iter().filter(|entry| !is_response(entry));
    let sessions = calls().map(called_session).collect::<Result<Vec<_>, _>>()?;
    let common =
        sessions.first().cloned().flatten().filter(|first| sessions.iter().all(|it| it.as_ref() == Some(first)));
    let mut streams: Vec<Session> = Vec::new();
    for session in sessions.into_iter().flatten() {
        if !streams.contains(&session) {
            streams.push(session);
        }
    }
    Ok(Route::Call { session: common, streams })
}

/// The session of a call; none for what belongs to the connection.
fn called_session(frame: &Frame) -> Result<Option<Session>, Refused> {
    if is_connection_scoped(frame) {
        return Ok(None);
    }
    match named_session(frame) {
        Named::Session(id) => Session::new(&id).map(Some).ok_or(Refused::UnusableSession),
        _ if needs_session(frame.method()) => Err(Refused::NoSession),
        Named::Nothing | Named::NotText | Named::Array => Ok(None),
    }
}

/// The session of a request of the agent: the one that it names, or else that of its stream.
pub(super) fn asking_session(frame: &Frame, from: &Scope) -> Option<Session> {
    if is_connection_scoped(frame) {
        return None;
    }
    match named_session(frame) {
        Named::Session(id) => Session::new(&id),
        Named::Nothing | Named::NotText | Named::Array => from.session().cloned(),
    }
}

/// The session of responses: that of the requests, when it is the same for all of them.
pub(super) fn answered_sessions(frame: &Frame, mut asked: impl FnMut(&RawId) -> Option<Session>) -> Option<Session> {
    if frame.kind() != FrameKind::Batch {
        return frame.raw_id().and_then(|id| asked(&id));
    }
    // Each is asked for, because each answer uses up its request.
    let sessions: Vec<_> = frame.entries().iter().map(|entry| entry.raw_id().and_then(|id| asked(&id))).collect();
    let first = sessions.first().cloned().flatten()?;
    sessions.iter().all(|session| session.as_ref() == Some(&first)).then_some(first)
}

fn is_response(frame: &Frame) -> bool {
    match frame.kind() {
        FrameKind::Result | FrameKind::Error => true,
        FrameKind::Malformed => frame.malformation().is_some_and(|malformed| malformed.response_shaped),
        FrameKind::Request | FrameKind::Notification | FrameKind::Batch | FrameKind::Noise => false,
    }
}
