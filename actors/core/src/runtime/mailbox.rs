//! The durable mailbox: a typed queue that outlives the actor that reads it.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;
use tokio::time::{Duration, Instant};

use super::node::{Order, Queue as Backlog};

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
    /// What the reader is told beside its items, before the next of them.
    orders: VecDeque<Order>,
    closed: bool,
    /// Set while the reader waits. A reader that died leaves a waker that wakes nobody; its
    /// successor looks into the queue before it waits.
    waiting: Option<Waker>,
    /// When the queue stopped being empty: the age that a snapshot shows.
    since: Option<Instant>,
}

impl<T> Mailbox<T> {
    /// An open, empty mailbox that nobody reads yet.
    #[must_use]
    pub fn new() -> Self {
        let queue =
            Queue { items: VecDeque::new(), orders: VecDeque::new(), closed: false, waiting: None, since: None };
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
            queue.wake()
        };
        // Outside of the lock: a wake-up runs foreign code.
        if let Some(reader) = wake {
            reader.wake();
        }
        Ok(())
    }

    /// Waits until there is an item or an order. Cancel-safe. For the one reader.
    ///
    /// The reader waits here and not in `ractor`'s mailbox: that saves an allocation and a pass
    /// through four ports for each wake-up, about half of what a hop costs. Kill still reaches it
    /// at once; stopping it is an [`Order`].
    pub(crate) async fn wait(&self) {
        poll_fn(|cx| {
            let mut queue = self.shared.lock();
            if !queue.items.is_empty() || !queue.orders.is_empty() {
                return Poll::Ready(());
            }
            queue.since = None;
            if queue.waiting.as_ref().is_none_or(|waiting| !waiting.will_wake(cx.waker())) {
                queue.waiting = Some(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// A new reader takes over: what its predecessor was told is void.
    pub(super) fn taken_over(&self) {
        self.shared.lock().orders.clear();
    }

    /// Takes the next order.
    pub(super) fn take_order(&self) -> Option<Order> {
        self.shared.lock().orders.pop_front()
    }

    /// Moves up to `max` items into the reader's leased batch.
    pub(crate) fn take(&self, batch: &mut VecDeque<T>, max: usize) {
        let mut queue = self.shared.lock();
        if batch.is_empty() && queue.items.len() <= max {
            std::mem::swap(batch, &mut queue.items);
            return;
        }
        let count = queue.items.len().min(max);
        batch.extend(queue.items.drain(..count));
    }

    /// Whether the reader would find something.
    pub(super) fn has_more(&self) -> bool {
        let queue = self.shared.lock();
        !queue.items.is_empty() || !queue.orders.is_empty()
    }

    /// Refuses further items and returns what is still there, to be dropped by the caller outside
    /// of any lock.
    pub fn close(&self) -> VecDeque<T> {
        let mut queue = self.shared.lock();
        queue.closed = true;
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
            queue.wake()
        };
        if let Some(reader) = wake {
            reader.wake();
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

impl<T> Queue<T> {
    /// Whom to wake, outside of the lock; the burst starts now.
    fn wake(&mut self) -> Option<Waker> {
        let waiting = self.waiting.take();
        if waiting.is_some() {
            self.since = Some(Instant::now());
        }
        waiting
    }
}

impl<T: Send> Backlog for Mailbox<T> {
    fn order(&self, order: Order) {
        let wake = {
            let mut queue = self.shared.lock();
            queue.orders.push_back(order);
            queue.waiting.take()
        };
        if let Some(reader) = wake {
            reader.wake();
        }
    }

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
