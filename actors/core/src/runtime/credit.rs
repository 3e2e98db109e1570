//! Byte credit: what bounds the memory of a connection.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// A budget of bytes that are read but not yet worked off.
///
/// Taking credit never fails and never waits, so a frame larger than the whole budget still
/// passes (alone). Who produces waits for [`room`](Self::room) before producing more.
///
/// Rule that keeps this free of deadlocks: nothing on the inbound path ever waits for outbound
/// credit (design §4, invariant 5). Only readers of a transport wait.
#[derive(Clone)]
pub struct Credit {
    shared: Arc<Shared>,
}

struct Shared {
    used: AtomicUsize,
    /// Everything that was ever taken.
    taken: AtomicUsize,
    limit: AtomicUsize,
    /// Whether somebody waits for room. Checked on every release, so that the common release
    /// costs one atomic.
    waiting: AtomicBool,
    room: Notify,
}

/// Credit that was taken; gives it back when dropped, in whatever way its holder ends.
pub struct Permit {
    credit: Credit,
    bytes: usize,
}

impl Shared {
    fn limit(&self) -> usize {
        self.limit.load(Ordering::SeqCst)
    }
}

impl Credit {
    /// A budget of `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let shared = Shared {
            used: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
            waiting: AtomicBool::new(false),
            room: Notify::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Takes credit for `bytes`.
    #[must_use]
    pub fn take(&self, bytes: usize) -> Permit {
        self.shared.used.fetch_add(bytes, Ordering::AcqRel);
        self.shared.taken.fetch_add(bytes, Ordering::Relaxed);
        Permit { credit: self.clone(), bytes }
    }

    /// Bytes taken and not given back.
    #[must_use]
    pub fn used(&self) -> usize {
        self.shared.used.load(Ordering::Relaxed)
    }

    /// Bytes ever taken, modulo the size of a word: whether this changed says whether something
    /// moves.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.shared.taken.load(Ordering::Relaxed)
    }

    /// Whether somebody waits for room and has to wait longer.
    #[must_use]
    pub fn is_held(&self) -> bool {
        let shared = &self.shared;
        shared.waiting.load(Ordering::SeqCst) && shared.used.load(Ordering::SeqCst) > shared.limit() / 2
    }

    /// Whether the budget is used up.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.shared.used.load(Ordering::Acquire) >= self.shared.limit()
    }

    /// There is room from now on, whatever is used: what comes is not kept.
    pub fn lift(&self) {
        self.shared.limit.store(usize::MAX, Ordering::SeqCst);
        self.shared.room.notify_waiters();
    }

    /// Waits, when the budget is used up, until it has fallen to one half: small give-backs do
    /// not wake the producer one by one. Cancel-safe.
    pub async fn room(&self) {
        if !self.is_full() {
            return;
        }
        let shared = &self.shared;
        loop {
            let released = shared.room.notified();
            tokio::pin!(released);
            released.as_mut().enable();
            // Sequentially consistent on both sides: either we see the release or it sees us.
            shared.waiting.store(true, Ordering::SeqCst);
            if shared.used.load(Ordering::SeqCst) <= shared.limit() / 2 {
                // The flag stays: it may be that of somebody else who waits. At worst one release
                // wakes nobody.
                return;
            }
            released.await;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let shared = &self.credit.shared;
        let left = shared.used.fetch_sub(self.bytes, Ordering::SeqCst) - self.bytes;
        if left <= shared.limit() / 2
            && shared.waiting.load(Ordering::SeqCst)
            && shared.waiting.swap(false, Ordering::SeqCst)
        {
            shared.room.notify_waiters();
        }
    }
}

impl fmt::Debug for Credit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credit").field("used", &self.used()).field("limit", &self.shared.limit()).finish()
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
