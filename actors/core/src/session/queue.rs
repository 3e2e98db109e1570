//! What a session's reader has not read yet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use greenroom_protocol::schema::StopReason;
use greenroom_protocol::{Error, Origin, Result};
use parking_lot::Mutex;

use crate::handlers::Delivery;

/// One thing that happened in a session.
#[derive(Debug)]
pub(super) enum Event {
    /// The agent said something.
    Message(Delivery),
    /// A turn ended.
    Stop(Result<StopReason>),
}

/// The events of one session in order. Bounded: nobody else's connection suffers from a session
/// that is not read.
#[derive(Default)]
pub(super) struct ReaderQueue {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    events: VecDeque<(Event, usize)>,
    bytes: usize,
    /// Why nothing more comes. Told when the events before it are read.
    ended: Option<Error>,
    waker: Option<Waker>,
}

impl ReaderQueue {
    /// Queues an event. Above `cap` bytes the session has failed: the reader hears so after what
    /// is queued, and the event is given back.
    pub(super) fn push(&self, event: Event, cap: usize) -> std::result::Result<(), Event> {
        let size = match &event {
            Event::Message(delivery) => delivery.size(),
            Event::Stop(_) => 0,
        };
        let mut state = self.state.lock();
        if state.ended.is_some() {
            return Err(event);
        }
        let fits = state.bytes + size <= cap || state.events.is_empty();
        let outcome = if fits {
            state.bytes += size;
            state.events.push_back((event, size));
            Ok(())
        } else {
            state.ended = Some(Error::internal_error().with_origin(Origin::Overflow).data(serde_json::json!({
                "reason": "session overflow: its messages are not read",
                "limit": cap,
            })));
            Err(event)
        };
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        outcome
    }

    /// Nothing more comes, for this reason. The first one stays.
    pub(super) fn end(&self, error: Error) {
        let waker = {
            let mut state = self.state.lock();
            state.ended.get_or_insert(error);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Why nothing more comes.
    pub(super) fn ended(&self) -> Option<Error> {
        self.state.lock().ended.clone()
    }

    /// The next event, or the reason why there is none any more.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<Event>> {
        let mut state = self.state.lock();
        if let Some((event, size)) = state.events.pop_front() {
            state.bytes -= size;
            return Poll::Ready(Ok(event));
        }
        if let Some(error) = &state.ended {
            return Poll::Ready(Err(error.clone()));
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Takes the next event if there is one.
    pub(super) fn take(&self) -> Option<Event> {
        let mut state = self.state.lock();
        let (event, size) = state.events.pop_front()?;
        state.bytes -= size;
        Some(event)
    }
}

/// A queue that coordinator and reader share.
pub(super) type SharedQueue = Arc<ReaderQueue>;
