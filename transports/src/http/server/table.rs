//! Which stream a message of the agent goes to: the sessions and the open requests of one
//! connection. Pure but for the streams, which are only carried.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use greenroom_protocol::{Frame, FrameKind, RawId};

use super::message::{Effect, Expected};
use super::options::ServerLimits;
use super::stream::Stream;
use crate::http::scope::{is_connection_scoped, result_session};

/// The limits that the table keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    sessions: usize,
    unconfirmed: usize,
    requests: usize,
    credit: usize,
    cap: usize,
    replay: usize,
}

impl Limits {
    pub(super) fn of(limits: &ServerLimits) -> Self {
        Self {
            sessions: limits.sessions,
            unconfirmed: limits.unconfirmed_streams,
            requests: limits.open_requests,
            credit: limits.stream_credit,
            cap: limits.stream_cap,
            replay: limits.replay,
        }
    }

    fn stream(&self, session: Option<Arc<str>>) -> Arc<Stream> {
        Arc::new(Stream::new(session, self.credit, self.cap, self.replay))
    }
}

#[derive(Default)]
struct Session {
    /// The agent has named it.
    confirmed: bool,
    stream: Option<Arc<Stream>>,
}

/// Where the answer to a request goes, and what it means.
struct Route {
    session: Option<Arc<str>>,
    effect: Effect,
}

/// Why there is no stream for a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// Nobody knows the session, and too many such streams are open.
    Session,
    /// The connection has too many sessions.
    TooMany,
}

/// Streams that began or have to end.
#[derive(Default)]
pub(super) struct Changes {
    /// They need an actor.
    pub(super) new: Vec<Arc<Stream>>,
    /// Their session was closed: they end behind what is queued.
    pub(super) closed: Vec<Arc<Stream>>,
}

/// Sessions, streams and open requests of one connection.
pub(super) struct Table {
    limits: Limits,
    connection: Arc<Stream>,
    sessions: HashMap<Arc<str>, Session>,
    /// Requests by id. The same id may be used again while the first request is open; answers are
    /// taken to come in the order of the requests.
    routes: HashMap<RawId, VecDeque<Route>>,
    open: usize,
    /// What happened to streams and nobody was told yet.
    changes: Changes,
}

impl Table {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            connection: limits.stream(None),
            limits,
            sessions: HashMap::new(),
            routes: HashMap::new(),
            open: 0,
            changes: Changes::default(),
        }
    }

    pub(super) fn connection_stream(&self) -> &Arc<Stream> {
        &self.connection
    }

    pub(super) fn streams(&self) -> impl Iterator<Item = &Stream> {
        let sessions = self.sessions.values().filter_map(|session| session.stream.as_deref());
        std::iter::once(&*self.connection).chain(sessions)
    }

    pub(super) fn has_listener(&self) -> bool {
        self.streams().any(Stream::has_listener)
    }

    /// Whether there may be one more session.
    pub(super) fn has_room(&self) -> bool {
        self.sessions.len() < self.limits.sessions
    }

    /// Remembers requests. False, and nothing is remembered, when too many are open.
    pub(super) fn expect(&mut self, expected: Vec<Expected>) -> bool {
        if self.open + expected.len() > self.limits.requests {
            return false;
        }
        self.open += expected.len();
        for Expected { id, session, effect } in expected {
            let session = session.map(Arc::from);
            self.routes.entry(id).or_default().push_back(Route { session, effect });
        }
        true
    }

    /// The stream of a session for a client that wants to listen. That a client asks for a session
    /// does not make it one: only few such streams are kept.
    pub(super) fn for_listener(&mut self, session: &str) -> Result<Arc<Stream>, Unknown> {
        if !self.sessions.contains_key(session) {
            let unconfirmed = self.sessions.values().filter(|session| !session.confirmed).count();
            if unconfirmed >= self.limits.unconfirmed {
                return Err(Unknown::Session);
            }
            if !self.has_room() {
                return Err(Unknown::TooMany);
            }
            self.sessions.insert(session.into(), Session::default());
        }
        self.stream_of(session).ok_or(Unknown::Session)
    }

    /// Where a frame of the agent goes.
    pub(super) fn target(&mut self, frame: &Frame) -> Arc<Stream> {
        match frame.kind() {
            FrameKind::Request | FrameKind::Notification => {
                if !is_connection_scoped(frame)
                    && let Some(session) =
                        frame.string(frame.first_member(frame.envelope().params, "sessionId")).as_deref()
                {
                    self.confirm(session);
                    return self.stream_of(session).unwrap_or_else(|| self.connection.clone());
                }
                self.connection.clone()
            }
            FrameKind::Result | FrameKind::Error => self.settle_one(frame),
            FrameKind::Batch => self.settle(frame),
            FrameKind::Malformed | FrameKind::Noise => self.connection.clone(),
        }
    }

    /// Takes the answers in a frame off the open requests, and says where all of them go: to one
    /// session if every one belongs to it.
    pub(super) fn settle(&mut self, frame: &Frame) -> Arc<Stream> {
        let entries = match frame.entries() {
            [] => std::slice::from_ref(frame),
            entries => entries,
        };
        let targets: Vec<_> = entries.iter().map(|entry| self.target(entry)).collect();
        match targets.split_first() {
            Some((first, rest)) if rest.iter().all(|other| Arc::ptr_eq(first, other)) => first.clone(),
            _ => self.connection.clone(),
        }
    }

    /// What has to be told since the last time.
    pub(super) fn take_changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }

    /// A client is gone. True when its stream is gone, too.
    pub(super) fn listener_left(&mut self, stream: &Arc<Stream>) -> bool {
        let Some(name) = &stream.session else { return false };
        let forgotten = self.sessions.get(name).is_none_or(|session| {
            !session.confirmed && session.stream.as_ref().is_some_and(|known| Arc::ptr_eq(known, stream))
        });
        if forgotten && !stream.has_listener() {
            self.ended(stream);
            return true;
        }
        false
    }

    /// A stream is over.
    pub(super) fn ended(&mut self, stream: &Arc<Stream>) {
        let Some(name) = &stream.session else { return };
        let same = |session: &Session| session.stream.as_ref().is_some_and(|known| Arc::ptr_eq(known, stream));
        if self.sessions.get(name).is_some_and(same) {
            self.sessions.remove(name);
        }
    }

    /// The stream of a session that is in the table, new if there was none.
    fn stream_of(&mut self, name: &str) -> Option<Arc<Stream>> {
        let session = self.sessions.get_mut(name)?;
        if let Some(stream) = &session.stream {
            return Some(stream.clone());
        }
        let stream = self.limits.stream(Some(name.into()));
        session.stream = Some(stream.clone());
        self.changes.new.push(stream.clone());
        Some(stream)
    }

    fn confirm(&mut self, name: &str) {
        if let Some(session) = self.sessions.get_mut(name) {
            session.confirmed = true;
        } else if self.has_room() {
            self.sessions.insert(name.into(), Session { confirmed: true, stream: None });
        }
    }

    /// Takes an answer off the open requests and says where it goes.
    fn settle_one(&mut self, frame: &Frame) -> Arc<Stream> {
        let Some(route) = frame.raw_id().and_then(|id| self.take_route(&id)) else { return self.connection.clone() };
        let succeeded = frame.kind() == FrameKind::Result;
        if succeeded {
            match (route.effect, &route.session) {
                (Effect::Closes, Some(session)) => return self.close(session),
                (_, Some(session)) => self.confirm(session),
                (_, None) => {}
            }
            if route.effect == Effect::Opens
                && let Some(session) = result_session(frame)
            {
                self.confirm(&session);
            }
        }
        let stream = route.session.and_then(|session| self.sessions.get(&session)?.stream.clone());
        stream.unwrap_or_else(|| self.connection.clone())
    }

    fn take_route(&mut self, id: &RawId) -> Option<Route> {
        let queue = self.routes.get_mut(id)?;
        let route = queue.pop_front();
        if queue.is_empty() {
            self.routes.remove(id);
        }
        self.open -= usize::from(route.is_some());
        route
    }

    /// Forgets a session. The answer that said so goes to its stream only if somebody reads there.
    fn close(&mut self, session: &str) -> Arc<Stream> {
        let Some(stream) = self.sessions.remove(session).and_then(|session| session.stream) else {
            return self.connection.clone();
        };
        self.changes.closed.push(stream.clone());
        if stream.has_listener() { stream } else { self.connection.clone() }
    }
}

#[cfg(test)]
mod tests;
