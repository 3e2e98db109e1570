//! The durable mailbox: a typed queue that outlives the actor that reads it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use ractor::ActorRef;
use tokio::time::{Duration, Instant};

use super::node::Queue as Backlog;
use super::stage::Control;

/// A queue of `T` outside of the actor that works on it. Clones share the queue.
///
/// Promise: an item that [`send`](Self::send) accepted stays in the queue until the actor takes
/// it, however often the actor dies in between. Order: first in, first out over all senders.
///
/// Cost: one short lock a send; a burst wakes the actor once. The queue itself is unbounded,
/// because the inbound path must never wait; memory is bounded by [`Credit`](super::Credit).
pub struct Mailbox<T> {
    shared: Arc<Mutex<Queue<T>>>,
}

struct Queue<T> {
    items: VecDeque<T>,
    /// Whether the actor was woken and has not yet found the queue empty.
    scheduled: bool,
    closed: bool,
    reader: Option<ActorRef<Control>>,
    /// When the queue stopped being empty: the age that a snapshot shows.
    since: Option<Instant>,
}

impl<T> Mailbox<T> {
    /// An open, empty mailbox that nobody reads yet.
    #[must_use]
    pub fn new() -> Self {
        let queue = Queue { items: VecDeque::new(), scheduled: false, closed: false, reader: None, since: None };
        Self { shared: Arc::new(Mutex::new(queue)) }
    }

    /// Queues an item and wakes the actor. Never blocks.
    ///
    /// # Errors
    /// Hands the item back when the mailbox is closed.
    pub fn send(&self, item: T) -> Result<(), T> {
        let wake = {
            let mut queue = self.shared.lock();
            if queue.closed {
                return Err(item);
            }
            queue.items.push_back(item);
            if queue.scheduled {
                None
            } else {
                queue.scheduled = true;
                queue.since = Some(Instant::now());
                queue.reader.clone()
            }
        };
        // Outside of the lock: a wake-up runs foreign code.
        if let Some(reader) = wake {
            // A dead reader is replaced; its successor looks into the queue when it attaches.
            let _ = reader.cast(Control::Wake);
        }
        Ok(())
    }

    /// Makes `reader` the actor that is woken from now on. It must look into the queue once.
    pub(super) fn attach(&self, reader: ActorRef<Control>) {
        let mut queue = self.shared.lock();
        queue.reader = Some(reader);
        queue.scheduled = true;
    }

    /// Moves up to `max` items into the reader's leased batch.
    pub(super) fn take(&self, batch: &mut VecDeque<T>, max: usize) {
        let mut queue = self.shared.lock();
        if batch.is_empty() && queue.items.len() <= max {
            std::mem::swap(batch, &mut queue.items);
            return;
        }
        let count = queue.items.len().min(max);
        batch.extend(queue.items.drain(..count));
    }

    /// Called by the reader when its batch is used up: false means "idle, wake me again".
    pub(super) fn has_more(&self) -> bool {
        let mut queue = self.shared.lock();
        if queue.items.is_empty() {
            queue.scheduled = false;
            queue.since = None;
            return false;
        }
        true
    }

    /// Refuses further items and returns what is still there, to be dropped by the caller outside
    /// of any lock.
    pub fn close(&self) -> VecDeque<T> {
        let mut queue = self.shared.lock();
        queue.closed = true;
        queue.reader = None;
        queue.since = None;
        std::mem::take(&mut queue.items)
    }

    /// Queues one last item and refuses everything after it. Without effect when the mailbox is
    /// closed already.
    pub fn send_last(&self, item: T) {
        let wake = {
            let mut queue = self.shared.lock();
            if queue.closed {
                return;
            }
            queue.closed = true;
            queue.items.push_back(item);
            if std::mem::replace(&mut queue.scheduled, true) { None } else { queue.reader.clone() }
        };
        if let Some(reader) = wake {
            let _ = reader.cast(Control::Wake);
        }
    }

    /// Whether [`send`](Self::send) would refuse.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.lock().closed
    }

    /// Number of items that the reader has not taken yet.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.shared.lock().items.len()
    }

    /// How long the reader has been behind; zero when it is not.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.shared.lock().since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

impl<T: Send> Backlog for Mailbox<T> {
    fn backlog(&self) -> (usize, Duration) {
        (self.depth(), self.age())
    }

    #[cfg(feature = "chaos")]
    fn lose(&self) -> usize {
        // Dropped outside of the lock.
        let lost = std::mem::take(&mut self.shared.lock().items);
        lost.len()
    }
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Mailbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").field("depth", &self.depth()).finish_non_exhaustive()
    }
}
