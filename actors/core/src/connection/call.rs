//! An inbound request between its arrival and its one answer.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use greenroom_protocol::{Error, Origin, Outbound, RawId, RequestId, method};

use super::batch::BatchSlot;
use super::message::InboundCall;
use super::shared::Shared;
use crate::handlers::session_of;
use crate::options::ResponderDropPolicy;
use crate::request::CancelFlag;
use crate::runtime::Permit;

/// What the whole connection knows about one inbound request.
pub(crate) struct CallState {
    id: RequestId,
    raw_id: RawId,
    method: Box<str>,
    /// Set when the peer asks for cancellation, whether or not a handler ever looks.
    pub(crate) cancelled: CancelFlag,
    /// Guards "exactly one answer".
    answered: AtomicBool,
    phase: AtomicU8,
    slot: Option<BatchSlot>,
    /// The session whose user is asked for permission.
    permission_of: Option<Box<str>>,
    connection: Weak<Shared>,
}

/// Where the right to answer is.
mod phase {
    /// Its handler runs: a dropped right is settled when the handler is done.
    pub(super) const DISPATCHING: u8 = 0;
    /// Dropped while its handler ran.
    pub(super) const DROPPED: u8 = 1;
    /// The handler is done and somebody still holds the right.
    pub(super) const HANDED_ON: u8 = 2;
}

impl CallState {
    pub(crate) fn new(
        id: RequestId,
        raw_id: RawId,
        call: &InboundCall,
        slot: Option<BatchSlot>,
        connection: &Arc<Shared>,
    ) -> Arc<Self> {
        let method = call.method();
        let asks = method == method::SESSION_REQUEST_PERMISSION;
        let permission_of = if asks { session_of(call.params_text()).map(|id| (*id).into()) } else { None };
        Arc::new(Self {
            id,
            raw_id,
            method: method.into(),
            cancelled: CancelFlag::default(),
            answered: AtomicBool::new(false),
            phase: AtomicU8::new(phase::DISPATCHING),
            slot,
            permission_of,
            connection: Arc::downgrade(connection),
        })
    }

    pub(crate) fn id(&self) -> &RequestId {
        &self.id
    }

    pub(crate) fn method(&self) -> &str {
        &self.method
    }

    /// The session whose user is asked for permission, if this request does that.
    pub(crate) fn permission_of(&self) -> Option<&str> {
        self.permission_of.as_deref()
    }

    /// Sends the answer unless there was one. Fails only when the connection is gone.
    pub(crate) fn answer(self: &Arc<Self>, outcome: Result<Bytes, Error>) -> Result<(), Error> {
        self.answer_with(outcome, None)
    }

    /// As [`answer`](Self::answer); `permit` is held until the answer is written.
    fn answer_with(self: &Arc<Self>, outcome: Result<Bytes, Error>, permit: Option<Permit>) -> Result<(), Error> {
        if self.answered.swap(true, Ordering::AcqRel) {
            tracing::debug!(method = %self.method, "a second answer to one request was dropped");
            return Ok(());
        }
        let Some(shared) = self.connection.upgrade() else { return Err(gone()) };
        // To the end of this function.
        let _open = shared.close_call(self);
        let outcome = match &shared.guard {
            Some(guard) => guard.answer(&self.id, outcome),
            None => outcome,
        };
        let message = match outcome {
            Ok(result) => Outbound::result(&self.raw_id, result),
            Err(error) => Outbound::error(&self.raw_id, error.to_wire().get().as_bytes().to_vec().into()),
        };
        match &self.slot {
            None => shared.send_reply_with(message, permit),
            Some(slot) => slot.settle(message, &shared),
        }
    }

    /// The right to answer was dropped.
    fn dropped(self: &Arc<Self>, interrupted: bool) {
        if self.answered.load(Ordering::Acquire) {
            return;
        }
        let Some(shared) = self.connection.upgrade() else { return };
        let silent = shared.dropped_responder == ResponderDropPolicy::Silent;
        if silent && !interrupted && self.slot.is_none() {
            if !self.answered.swap(true, Ordering::AcqRel) {
                tracing::debug!(method = %self.method, "a request is left without an answer");
                drop(shared.close_call(self));
            }
            return;
        }
        let _ = self.answer(Err(self.dropped_answer(interrupted)));
    }

    /// What a request gets whose right to answer was dropped (spec §9 decision 3).
    fn dropped_answer(&self, interrupted: bool) -> Error {
        if self.cancelled.is_set() {
            return Error::request_cancelled();
        }
        let data = if interrupted {
            serde_json::json!({ "reason": "interrupted", "method": &*self.method })
        } else {
            serde_json::json!({ "reason": "no answer was given", "method": &*self.method })
        };
        let error = Error::internal_error().data(data);
        if interrupted { error.with_origin(Origin::Interrupted) } else { error }
    }
}

fn gone() -> Error {
    Error::internal_error().data("the connection is closed")
}

/// The right and duty to answer one request. Dropping it answers for you.
pub(crate) struct OpenCall {
    state: Arc<CallState>,
    done: bool,
}

impl OpenCall {
    pub(crate) fn new(state: Arc<CallState>) -> Self {
        Self { state, done: false }
    }

    pub(crate) fn state(&self) -> &Arc<CallState> {
        &self.state
    }

    /// Answers with JSON text or an error.
    pub(crate) fn answer(mut self, outcome: Result<Bytes, Error>) -> Result<(), Error> {
        self.done = true;
        self.state.answer(outcome)
    }

    /// Answers with what another peer answered. The credit of that frame is held until ours is
    /// written: a relay has no queue of its own that could grow.
    pub(crate) fn forward(mut self, outcome: Result<Bytes, Error>, permit: Option<Permit>) -> Result<(), Error> {
        self.done = true;
        self.state.answer_with(outcome, permit)
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let dispatching =
            self.state.phase.compare_exchange(phase::DISPATCHING, phase::DROPPED, Ordering::AcqRel, Ordering::Acquire);
        if dispatching.is_err() {
            // The handler is long done: nobody else will answer. A kill, an abort or a panic drops
            // it just like forgetful code does; only a panic is told apart.
            self.state.dropped(std::thread::panicking());
        }
    }
}

/// Watches over one request while its handler runs, and settles what the handler left open.
pub(crate) struct DispatchGuard {
    state: Arc<CallState>,
    finished: bool,
}

impl DispatchGuard {
    pub(crate) fn new(state: Arc<CallState>) -> Self {
        Self { state, finished: false }
    }

    /// Watches over a request that is offered once more.
    pub(crate) fn again(state: Arc<CallState>) -> Self {
        state.phase.store(phase::DISPATCHING, Ordering::Release);
        Self::new(state)
    }

    pub(crate) fn state(&self) -> &CallState {
        &self.state
    }

    /// The handler returned. Its error answers the request, unless there is an answer.
    pub(crate) fn finish(mut self, result: Result<(), Error>) {
        self.finished = true;
        let dropped = self.state.phase.swap(phase::HANDED_ON, Ordering::AcqRel) == phase::DROPPED;
        match result {
            Err(_) if self.state.answered.load(Ordering::Acquire) => {}
            Err(error) => drop(self.state.answer(Err(error))),
            Ok(()) if dropped => self.state.dropped(false),
            Ok(()) => {}
        }
    }
}

impl Drop for DispatchGuard {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        // The handler was cut off: by a panic, or because its actor was killed.
        let dropped = self.state.phase.swap(phase::HANDED_ON, Ordering::AcqRel) == phase::DROPPED;
        if dropped {
            self.state.dropped(true);
        }
    }
}

impl fmt::Debug for OpenCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenCall").field("id", &self.state.id).field("method", &self.state.method).finish()
    }
}
