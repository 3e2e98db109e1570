//! Cancelling one request: the marker on the side that answers, the handle on the side that asked.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use greenroom_protocol::{Error, RemoteStyle};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::reply::Reply;
use crate::connection::Shared;

/// Set once, when the peer asks to cancel an inbound request. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct CancelFlag {
    shared: Arc<FlagShared>,
}

#[derive(Default)]
struct FlagShared {
    set: AtomicBool,
    changed: Notify,
    /// Requests further down the chain that are cancelled along.
    linked: Mutex<Vec<CancelTarget>>,
}

impl CancelFlag {
    pub(crate) fn is_set(&self) -> bool {
        self.shared.set.load(Ordering::Acquire)
    }

    /// Sets the marker, wakes who waits for it and passes the wish on, once.
    pub(crate) fn set(&self) {
        if self.shared.set.swap(true, Ordering::AcqRel) {
            return;
        }
        self.shared.changed.notify_waiters();
        let linked = std::mem::take(&mut *self.shared.linked.lock());
        for target in linked {
            target.cancel();
        }
    }

    /// Cancels `target` when the marker is set, now or later.
    pub(crate) fn link(&self, target: CancelTarget) {
        self.shared.linked.lock().push(target);
        if self.is_set() {
            // Set while we were adding: whoever takes the list cancels.
            let linked = std::mem::take(&mut *self.shared.linked.lock());
            for target in linked {
                target.cancel();
            }
        }
    }
}

/// One of our own requests, as something that can be cancelled.
pub(crate) enum CancelTarget {
    /// A request that application code sent.
    Handle(RequestCancellationHandle),
    /// A request that a proxy passed on.
    Forwarded { connection: Weak<Shared>, id: i64, to: RemoteStyle },
}

impl CancelTarget {
    fn cancel(self) {
        match self {
            Self::Handle(handle) => {
                if let Some(shared) = handle.connection.upgrade() {
                    let _ = handle.reply.follow_cancel(&shared);
                }
            }
            Self::Forwarded { connection, id, to } => {
                if let Some(shared) = connection.upgrade()
                    && shared.pending.lock().contains(&id)
                {
                    let _ = shared.send_cancel(id, to);
                }
            }
        }
    }
}

/// Tells a handler that the peer wants its request cancelled.
///
/// Cancellation is a wish: the request still gets exactly one answer, which may be an ordinary
/// result. Clones watch the same request.
///
/// Ordering: the marker is set when the notification arrives, before it is dispatched (spec §6.1,
/// 18). So a handler may wait for it, although messages wait for the handler.
#[derive(Clone)]
pub struct RequestCancellation {
    flag: CancelFlag,
}

impl RequestCancellation {
    pub(crate) fn new(flag: CancelFlag) -> Self {
        Self { flag }
    }

    pub(crate) fn flag(&self) -> &CancelFlag {
        &self.flag
    }

    /// Whether the peer asked for cancellation.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.flag.is_set()
    }

    /// Waits until the peer asks for cancellation; for ever if it never does. Cancel-safe.
    pub async fn cancelled(&self) {
        loop {
            let changed = self.flag.shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.flag.is_set() {
                return;
            }
            changed.await;
        }
    }

    /// Runs `work` until it ends or the peer cancels; then `work` is dropped (spec §6.1, 19). If both
    /// are ready, the cancellation wins. As cancel-safe as `work`.
    ///
    /// # Errors
    /// The error of `work`, or `-32800` when the peer cancelled first.
    pub async fn run_until_cancelled<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        tokio::select! {
            biased;
            () = self.cancelled() => Err(Error::request_cancelled()),
            result = work => result,
        }
    }
}

impl fmt::Debug for RequestCancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestCancellation").field("cancelled", &self.is_cancelled()).finish()
    }
}

/// Cancels one request that this side sent, whoever waits for its answer.
///
/// Clones share "at most once" with the request itself. Dropping the handle does nothing (spec §6.1,
/// 9). It does not keep the connection alive.
#[derive(Clone)]
pub struct RequestCancellationHandle {
    pub(super) reply: Arc<Reply>,
    pub(super) connection: Weak<Shared>,
}

impl RequestCancellationHandle {
    /// Asks the peer to cancel, once. Without effect before the request is sent, after its answer
    /// came, or when somebody asked before (spec §6.1, 10 to 12). `Ok` does not mean that anything
    /// was sent.
    ///
    /// # Errors
    /// When the notification could not be queued: the connection is over.
    pub fn cancel(&self) -> Result<(), Error> {
        match self.connection.upgrade() {
            Some(shared) => self.reply.cancel(&shared),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for RequestCancellationHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestCancellationHandle").field("id", &self.reply.id()).finish_non_exhaustive()
    }
}
