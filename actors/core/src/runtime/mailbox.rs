//! The durable mailbox: a typed queue that outlives the actor that reads it.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

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
    /// successor looks into the queue before it waits. One that ended because it had nothing to do
    /// leaves one that calls for a successor.
    waiting: Option<Waker>,
    /// How often the reader began to wait.
    pauses: u32,
    /// Since when the reader is known to be behind: the age that a snapshot shows.
    since: Option<Instant>,
}

impl<T> Mailbox<T> {
    /// An open, empty mailbox that nobody reads yet.
    #[must_use]
    pub fn new() -> Self {
        let queue = Queue {
            items: VecDeque::new(),
            orders: VecDeque::new(),
            closed: false,
            waiting: None,
            pauses: 0,
            since: None,
        };
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
            queue.falls_behind();
            queue.push(item);
            queue.waiting.take()
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
        poll_fn(|cx| self.poll(cx)).await;
    }

    /// The reader leaves, unless there is something for it after all: the next item or order wakes
    /// `demand`. Gives back the memory of the queue.
    pub(super) fn leave(&self, demand: Waker) -> bool {
        let mut queue = self.shared.lock();
        if !queue.items.is_empty() || !queue.orders.is_empty() {
            return false;
        }
        queue.items = VecDeque::new();
        queue.orders = VecDeque::new();
        queue.since = None;
        queue.waiting = Some(demand);
        true
    }

    /// A new reader takes over: what its predecessor was told is void.
    pub(super) fn taken_over(&self) {
        self.shared.lock().orders.clear();
    }

    /// Waits for something to do, as [`wait`](Self::wait) does; when there is something already, lets
    /// every task that is ready run first. Unlike tokio's `yield_now`, that does not go through the
    /// I/O driver: a busy actor would pay a system call for each batch. Cancel-safe. For the one
    /// reader.
    pub(super) async fn turn(&self) {
        let mut had_to_wait = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut had_to_wait, true) {
                return self.poll(cx);
            }
            let ready = self.poll(cx);
            if ready.is_ready() {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await;
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        let mut queue = self.shared.lock();
        if !queue.items.is_empty() || !queue.orders.is_empty() {
            return Poll::Ready(());
        }
        queue.pause(cx)
    }

    /// Takes the next order, or else moves up to `max` items into the reader's leased batch, unless
    /// it holds as many.
    pub(super) fn take_turn(&self, batch: &mut VecDeque<T>, max: usize) -> Option<Order> {
        let mut queue = self.shared.lock();
        let order = queue.orders.pop_front();
        if order.is_none() {
            queue.take(batch, max);
        }
        order
    }

    /// Moves up to `max` items into the reader's leased batch.
    pub(crate) fn take(&self, batch: &mut VecDeque<T>, max: usize) {
        self.shared.lock().take(batch, max);
    }

    /// Takes one item, as soon as there is one. Cancel-safe. For a reader that is no actor: orders do
    /// not reach it.
    pub(crate) async fn receive(&self) -> T {
        poll_fn(|cx| {
            let mut queue = self.shared.lock();
            match queue.items.pop_front() {
                Some(item) => Poll::Ready(item),
                None => queue.pause(cx),
            }
        })
        .await
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
            queue.push(item);
            queue.waiting.take()
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

    /// How long the reader is known to have been behind; zero when it is not. That is the time since
    /// an item came while another one waited, or else since somebody first asked while it was at
    /// work: reading the clock for every single item would cost more than the rest of the queue.
    #[must_use]
    pub fn age(&self) -> Duration {
        let mut queue = self.shared.lock();
        if queue.waiting.is_some() || (queue.items.is_empty() && queue.since.is_none()) {
            return Duration::ZERO;
        }
        queue.since.get_or_insert_with(Instant::now).elapsed()
    }
}

impl<T> Queue<T> {
    /// The reader waits.
    fn pause<R>(&mut self, cx: &Context<'_>) -> Poll<R> {
        self.since = None;
        if self.waiting.as_ref().is_none_or(|waiting| !waiting.will_wake(cx.waker())) {
            self.waiting = Some(cx.waker().clone());
            self.pauses = self.pauses.wrapping_add(1);
        }
        Poll::Pending
    }

    fn push(&mut self, item: T) {
        // Most queues never hold more than one, and there are many queues.
        if self.items.capacity() == 0 {
            self.items.reserve_exact(1);
        }
        self.items.push_back(item);
    }

    /// One more item comes.
    fn falls_behind(&mut self) {
        if !self.items.is_empty() && self.since.is_none() {
            self.since = Some(Instant::now());
        }
    }

    fn take(&mut self, batch: &mut VecDeque<T>, max: usize) {
        if batch.is_empty() && self.items.len() <= max {
            std::mem::swap(batch, &mut self.items);
            return;
        }
        let count = self.items.len().min(max.saturating_sub(batch.len()));
        batch.extend(self.items.drain(..count));
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

    fn pauses(&self) -> Option<u32> {
        let queue = self.shared.lock();
        queue.waiting.as_ref().map(|_| queue.pauses)
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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn the_age_begins_with_the_second_item_or_the_first_look() {
        let mailbox = Mailbox::new();
        let mut batch = VecDeque::new();
        mailbox.send(1).expect("open");
        tokio::time::advance(SECOND).await;
        assert_eq!(mailbox.age(), Duration::ZERO, "nobody had looked");
        tokio::time::advance(SECOND).await;
        assert_eq!(mailbox.age(), SECOND);
        // The reader has nothing left to do.
        mailbox.take(&mut batch, 10);
        assert!(mailbox.wait().now_or_never().is_none());
        assert_eq!(mailbox.age(), Duration::ZERO);
        mailbox.send(2).expect("open");
        mailbox.send(3).expect("open");
        tokio::time::advance(SECOND).await;
        assert_eq!(mailbox.age(), SECOND, "nobody had to look");
        mailbox.take(&mut batch, 10);
        assert_eq!(mailbox.age(), SECOND, "the reader is still at work on them");
    }

    #[tokio::test]
    async fn a_turn_lets_others_run_only_when_there_is_something_already() {
        let mailbox = Mailbox::new();
        mailbox.send(1).expect("open");
        let mut busy = Box::pin(mailbox.turn());
        assert!(busy.as_mut().now_or_never().is_none());
        assert!(busy.as_mut().now_or_never().is_some());
        mailbox.take(&mut VecDeque::new(), 10);
        let mut idle = Box::pin(mailbox.turn());
        assert!(idle.as_mut().now_or_never().is_none());
        assert!(idle.as_mut().now_or_never().is_none());
        mailbox.send(2).expect("open");
        assert!(idle.as_mut().now_or_never().is_some());
    }
}
