//! The guard of a connection's handshake, shared by the actors that messages pass through.
//!
//! Once nothing is left to guard, asking costs one atomic read.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use greenroom_protocol::handshake::{Endpoint, Handshake};
use greenroom_protocol::{Error, RemoteStyle, RequestId};
use parking_lot::Mutex;

/// See the module documentation.
pub(crate) struct Guard {
    endpoint: Endpoint,
    state: Mutex<Handshake>,
    busy: AtomicBool,
}

impl Guard {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        let handshake = Handshake::new(endpoint);
        let busy = AtomicBool::new(!handshake.is_idle());
        Self { endpoint, state: Mutex::new(handshake), busy }
    }

    /// What it stands in front of.
    pub(crate) fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    fn ask<T>(&self, question: impl FnOnce(&mut Handshake) -> T) -> T {
        let mut state = self.state.lock();
        let answer = question(&mut state);
        self.busy.store(!state.is_idle(), Ordering::Release);
        answer
    }

    fn concerns(&self, method: &str) -> bool {
        self.busy.load(Ordering::Acquire) || Handshake::is_begun_by(method)
    }

    /// As [`Handshake::receive_request`].
    pub(crate) fn receive_request(
        &self,
        method: &str,
        from: RemoteStyle,
        id: &RequestId,
        params: &Bytes,
    ) -> Result<Option<Bytes>, Error> {
        if !self.concerns(method) {
            return Ok(None);
        }
        self.ask(|state| state.receive_request(method, from, id, params))
    }

    /// As [`Handshake::receive_notification`].
    pub(crate) fn receive_notification(&self, method: &str) -> bool {
        !self.concerns(method) || self.ask(|state| state.receive_notification(method))
    }

    /// As [`Handshake::receive_answer`].
    pub(crate) fn receive_answer(&self, id: i64, outcome: Result<Bytes, Error>) -> Result<Bytes, Error> {
        if !self.busy.load(Ordering::Acquire) {
            return outcome;
        }
        self.ask(|state| state.receive_answer(id, outcome))
    }

    /// As [`Handshake::answer`].
    pub(crate) fn answer(&self, id: &RequestId, outcome: Result<Bytes, Error>) -> Result<Bytes, Error> {
        if !self.busy.load(Ordering::Acquire) {
            return outcome;
        }
        self.ask(|state| state.answer(id, outcome))
    }

    /// As [`Handshake::send_request`]; `lower` allows the answer to select a lower version.
    pub(crate) fn send_request(
        &self,
        method: &str,
        to: RemoteStyle,
        id: i64,
        params: &Bytes,
        lower: bool,
    ) -> Result<Option<Bytes>, Error> {
        if !self.concerns(method) && greenroom_protocol::Dialect::of_successor(method).is_none() {
            return Ok(None);
        }
        self.ask(|state| {
            let changed = state.send_request(method, to, id, params)?;
            if lower {
                state.allow_lower(id);
            }
            Ok(changed)
        })
    }

    /// As [`Handshake::unsent`].
    pub(crate) fn unsent(&self, id: i64) {
        if self.busy.load(Ordering::Acquire) {
            self.ask(|state| state.unsent(id));
        }
    }

    /// As [`Handshake::send_notification`].
    pub(crate) fn send_notification(&self, method: &str) -> Result<(), Error> {
        if !self.concerns(method) {
            return Ok(());
        }
        self.ask(|state| state.send_notification(method))
    }
}
