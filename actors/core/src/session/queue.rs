//! What a session's reader has not read yet.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use greenroom_protocol::schema::StopReason;
use greenroom_protocol::{Error, Origin, Result};
use parking_lot::Mutex;

use crate::handlers::Delivery;

/// One thing that happened in a session.
#[derive(Debug)]
pub(super) enum Event {
    /// The agent said something. Boxed: the queues of thousands of sessions are small then, and what
    /// waits there moves as a pointer.
    Message(Box<Delivery>),
    /// A turn ended.
    Stop(Box<Result<StopReason>>),
}

/// The events of one session in order. Bounded: nobody else's connection suffers from a session
/// that is not read.
#[derive(Default)]
pub(super) struct ReaderQueue {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    events: Events,
    bytes: usize,
    /// Why nothing more comes. Told when the events before it are read.
    /// Boxed: this is in the caches for each message, and the error hardly ever.
    ended: Option<Box<Error>>,
    /// Whether what comes goes to somebody else.
    forwarded: bool,
    waker: Option<Waker>,
}

impl State {
    /// A reader that keeps up costs no copy; what piles up takes no more memory than is counted.
    fn detach(&self, delivery: &mut Delivery) {
        if !self.events.is_empty() {
            delivery.detach();
        }
    }
}

/// First in, first out. The only event of a reader that keeps up stands in place.
#[derive(Default)]
struct Events {
    first: Option<(Event, usize)>,
    /// Behind the first.
    others: VecDeque<(Event, usize)>,
}

impl Events {
    fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_empty()
    }

    fn push(&mut self, event: Event, size: usize) {
        if self.is_empty() {
            self.first = Some((event, size));
        } else {
            self.others.push_back((event, size));
        }
    }

    fn pop(&mut self) -> Option<(Event, usize)> {
        self.first.take().or_else(|| self.others.pop_front())
    }
}

impl ReaderQueue {
    /// Queues an event. Above `cap` bytes the session has failed: the reader hears so after what
    /// is queued, and the event is given back.
    pub(super) fn push(&self, mut event: Event, cap: usize) -> std::result::Result<(), Event> {
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
            if let Event::Message(delivery) = &mut event {
                state.detach(delivery);
            }
            state.bytes += size;
            state.events.push(event, size);
            Ok(())
        } else {
            let error = Error::internal_error().with_origin(Origin::Overflow).data(serde_json::json!({
                "reason": "session overflow: its messages are not read",
                "limit": cap,
            }));
            state.ended = Some(Box::new(error));
            Err(event)
        };
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        outcome
    }

    /// Queues a message if nothing speaks against it; else gives it back.
    pub(super) fn offer(&self, mut delivery: Box<Delivery>, cap: usize) -> std::result::Result<(), Box<Delivery>> {
        let size = delivery.size();
        let mut state = self.state.lock();
        let fits = state.bytes + size <= cap || state.events.is_empty();
        if !fits || state.forwarded || state.ended.is_some() {
            return Err(delivery);
        }
        state.detach(&mut delivery);
        state.bytes += size;
        state.events.push(Event::Message(delivery), size);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }

    /// From now on what comes goes to somebody else.
    pub(super) fn forward(&self) {
        self.state.lock().forwarded = true;
    }

    /// Nothing more comes, for this reason. The first one stays.
    pub(super) fn end(&self, error: Error) {
        let waker = {
            let mut state = self.state.lock();
            state.ended.get_or_insert_with(|| Box::new(error));
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Nobody reads any more: nothing more comes, for this reason, and what is queued is dropped, which
    /// answers requests.
    pub(super) fn close(&self, error: Error) {
        self.end(error);
        let unread = {
            let mut state = self.state.lock();
            state.bytes = 0;
            std::mem::take(&mut state.events)
        };
        // Outside of the lock: dropping a request sends its answer.
        drop(unread);
    }

    /// Why nothing more comes.
    pub(super) fn ended(&self) -> Option<Error> {
        self.state.lock().ended.as_deref().cloned()
    }

    /// The next event, or the reason why there is none any more.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<Event>> {
        let mut state = self.state.lock();
        if let Some((event, size)) = state.events.pop() {
            state.bytes -= size;
            return Poll::Ready(Ok(event));
        }
        if let Some(error) = &state.ended {
            return Poll::Ready(Err((**error).clone()));
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Takes the next event if there is one.
    pub(super) fn take(&self) -> Option<Event> {
        let mut state = self.state.lock();
        let (event, size) = state.events.pop()?;
        state.bytes -= size;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, Events, StopReason};

    #[test]
    fn events_leave_in_the_order_in_which_they_came() {
        let mut events = Events::default();
        let (mut came, mut left) = (0, Vec::new());
        // Alternately filled and emptied, a little further each time.
        for (more, fewer) in [(1, 1), (3, 2), (4, 1), (1, 5), (2, 2)] {
            for _ in 0..more {
                events.push(Event::Stop(Box::new(Ok(StopReason::EndTurn))), came);
                came += 1;
            }
            left.extend((0..fewer).filter_map(|_| events.pop()).map(|(_, number)| number));
        }
        assert!(events.is_empty());
        assert_eq!(left, (0..came).collect::<Vec<_>>());
    }
}
