//! The place where one answer arrives: shared by the reply table and whoever waits.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use greenroom_protocol::{BoxFuture, Error, Origin, RemoteStyle, Result};
use parking_lot::Mutex;

use crate::connection::Shared;
use crate::runtime::Scope;

/// What runs inside the dispatch step of the answer.
pub(crate) type Callback = Box<dyn FnOnce(Result<Bytes>) -> BoxFuture<'static, Result<()>> + Send>;

/// Learns whether the answer was a good one, before anybody gets it.
pub(crate) type Watch = Box<dyn FnOnce(bool) + Send>;

/// Reads JSON text, then maps what it read.
type ReadAndMap<T> = Box<dyn FnOnce(&str, &str) -> Result<T> + Send>;

/// Turns the JSON text of a result into what the caller wants.
pub(crate) enum Decode<T> {
    /// The response type's own reading.
    Direct(fn(&str, &str) -> Result<T>),
    /// Reading, then mapping.
    Mapped(ReadAndMap<T>),
}

impl<T> Decode<T> {
    pub(crate) fn apply(self, method: &str, outcome: Result<Bytes>) -> Result<T> {
        let text = outcome?;
        let text = std::str::from_utf8(&text).map_err(Error::into_internal_error)?;
        match self {
            Self::Direct(read) => read(method, text),
            Self::Mapped(read) => read(method, text),
        }
    }
}

/// See the module documentation.
pub(crate) struct Reply {
    id: i64,
    method: Box<str>,
    to: RemoteStyle,
    /// Whether the answer to an initialize may select a lower version.
    lower: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether the request was published and not yet settled.
    outstanding: bool,
    /// Whether a request that this one is sent for was cancelled before this one was published.
    cancel_wanted: bool,
    cancel_sent: bool,
    /// Set by the first outcome; later ones are dropped.
    settled: bool,
    /// Whether handlers look at the answer right now.
    in_step: bool,
    /// Whether the right to settle was dropped meanwhile.
    given_up: bool,
    outcome: Option<Result<Bytes>>,
    waker: Option<Waker>,
    callback: Option<Callback>,
    watch: Option<Watch>,
}

impl Reply {
    pub(crate) fn new(id: i64, method: &str, to: RemoteStyle, lower: bool) -> Arc<Self> {
        Arc::new(Self { id, method: method.into(), to, lower, state: Mutex::new(State::default()) })
    }

    pub(crate) fn takes_lower_version(&self) -> bool {
        self.lower
    }

    pub(crate) fn id(&self) -> i64 {
        self.id
    }

    pub(crate) fn method(&self) -> &str {
        &self.method
    }

    pub(crate) fn peer(&self) -> RemoteStyle {
        self.to
    }

    /// The request is in the outgoing queue: from now on it can be cancelled, and is, if that was
    /// to be passed on to it before.
    pub(crate) fn published(&self, connection: &Shared) {
        let wanted = {
            let mut state = self.state.lock();
            // The answer may have been faster.
            state.outstanding = !state.settled;
            state.cancel_wanted
        };
        if wanted {
            // A connection that is over has failed the request already.
            let _ = self.cancel(connection);
        }
    }

    /// The answer is here. Returns the ordered callback, to be awaited by the dispatch step.
    pub(crate) fn settle(&self, outcome: Result<Bytes>) -> Option<BoxFuture<'static, Result<()>>> {
        let mut state = self.state.lock();
        if std::mem::replace(&mut state.settled, true) {
            return None;
        }
        state.outstanding = false;
        if let Some(watch) = state.watch.take() {
            let good = outcome.is_ok();
            drop(state);
            watch(good);
            state = self.state.lock();
        }
        if let Some(callback) = state.callback.take() {
            drop(state);
            return Some(callback(outcome));
        }
        state.outcome = Some(outcome);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        None
    }

    /// Installs what learns about the answer; at most once, before the request is sent.
    pub(crate) fn watch(&self, watch: Watch) {
        self.state.lock().watch = Some(watch);
    }

    /// The right to settle was dropped. While handlers look at the answer, what becomes of it is
    /// decided at the end of their step: an error that they return says more.
    pub(crate) fn give_up(&self) -> Option<BoxFuture<'static, Result<()>>> {
        {
            let mut state = self.state.lock();
            if state.in_step {
                state.given_up = true;
                return None;
            }
        }
        self.settle(Err(dropped()))
    }

    /// Handlers look at the answer from now on, until the guard ends.
    pub(crate) fn begin_step(self: &Arc<Self>, connection: &Arc<Shared>) -> StepGuard {
        self.state.lock().in_step = true;
        StepGuard { reply: self.clone(), connection: connection.clone(), ended: false }
    }

    /// Settles what the handlers left open: with their error, or because they dropped the right.
    fn end_step(&self, error: Option<Error>, left_open: Error) -> Option<BoxFuture<'static, Result<()>>> {
        let given_up = {
            let mut state = self.state.lock();
            state.in_step = false;
            state.given_up
        };
        match error {
            Some(error) => self.settle(Err(error)),
            None if given_up => self.settle(Err(left_open)),
            None => None,
        }
    }

    /// The answer will never come. An ordered callback runs beside the dispatch loop: a failure is
    /// no wire message and has no place in its order.
    pub(crate) fn fail(&self, error: Error, connection: &Arc<Shared>) {
        if let Some(callback) = self.settle(Err(error)) {
            connection.run_callback(callback);
        }
    }

    /// Installs what runs when the answer comes. If it is here already, the callback runs as a
    /// task, without holding anything up.
    pub(crate) fn on_answer(&self, callback: Callback, connection: &Arc<Shared>) {
        let mut state = self.state.lock();
        match state.outcome.take() {
            None => state.callback = Some(callback),
            Some(outcome) => {
                drop(state);
                connection.run_callback(callback(outcome));
            }
        }
    }

    /// Asks the peer to cancel, if the request is outstanding and nobody asked before.
    pub(crate) fn cancel(&self, connection: &Shared) -> Result<()> {
        {
            let mut state = self.state.lock();
            if !state.outstanding || state.cancel_sent {
                return Ok(());
            }
            state.cancel_sent = true;
        }
        connection.send_cancel(self.id, self.to)
    }

    /// A request that this one is sent for was cancelled: so is this one, now or as soon as it is
    /// published. Unlike an explicit [`cancel`](Self::cancel), which is not remembered.
    pub(crate) fn follow_cancel(&self, connection: &Shared) -> Result<()> {
        {
            let mut state = self.state.lock();
            if !state.outstanding {
                state.cancel_wanted = true;
                return Ok(());
            }
        }
        self.cancel(connection)
    }

    /// Polls for the answer. Inside a handler of the same connection a missing answer can never
    /// come, because it waits behind the handler: that is an error at once (design §4, 6).
    pub(crate) fn poll(&self, cx: &mut Context<'_>, connection: u64) -> Poll<Result<Bytes>> {
        let mut state = self.state.lock();
        if let Some(outcome) = state.outcome.take() {
            return Poll::Ready(outcome);
        }
        if Scope::is_inside(connection) {
            tracing::error!(
                method = %self.method,
                "a handler waits for a response of its own connection; use on_receiving_result or spawn a task"
            );
            return Poll::Ready(Err(would_deadlock(&self.method)));
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// Watches over one answer while handlers look at it.
pub(crate) struct StepGuard {
    reply: Arc<Reply>,
    connection: Arc<Shared>,
    ended: bool,
}

impl StepGuard {
    pub(crate) fn method(&self) -> &str {
        self.reply.method()
    }

    /// The handlers returned. What is left open is settled; an ordered callback is to be awaited.
    pub(crate) fn finish(mut self, error: Option<Error>) -> Option<BoxFuture<'static, Result<()>>> {
        self.ended = true;
        self.reply.end_step(error, dropped())
    }
}

impl Drop for StepGuard {
    fn drop(&mut self) {
        // The handlers were cut off: their actor was killed.
        if !self.ended {
            let cut_off = Error::internal_error()
                .with_origin(Origin::Interrupted)
                .data(serde_json::json!({ "reason": "interrupted", "method": &*self.reply.method }));
            if let Some(callback) = self.reply.end_step(None, cut_off) {
                self.connection.run_callback(callback);
            }
        }
    }
}

/// What a handler gets that waits for what only it could let through. Names both messages.
pub(crate) fn would_deadlock(awaited: &str) -> Error {
    Error::internal_error().with_origin(Origin::WouldDeadlock).data(serde_json::json!({
        "reason": "would deadlock: a handler of this connection waits for a response that only it lets through",
        "method": awaited,
        "handling": Scope::subject(),
    }))
}

fn dropped() -> Error {
    Error::internal_error().data("the response was dropped by a handler")
}
