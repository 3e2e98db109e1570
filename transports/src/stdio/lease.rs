//! Who uses stdin and stdout, and what has to be put back afterwards.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::open::SavedFlags;

static IN_USE: AtomicBool = AtomicBool::new(false);

/// Held while stdin and stdout are in use. Dropping it restores the file flags, then lets the
/// next user in.
pub(super) struct Lease {
    // Declared before `_turn`: fields are dropped in order, and the next user has to find the
    // flags as they were.
    _saved: SavedFlags,
    _turn: Turn,
}

struct Turn;

impl Drop for Turn {
    fn drop(&mut self) {
        IN_USE.store(false, Ordering::Release);
    }
}

impl Lease {
    /// `None` while somebody else has it.
    pub(super) fn take() -> Option<Self> {
        let taken = IN_USE.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok();
        taken.then(|| Self { _saved: SavedFlags::default(), _turn: Turn })
    }

    /// Adds what has to be restored.
    pub(super) fn with_flags(mut self, saved: SavedFlags) -> Self {
        self._saved = saved;
        self
    }
}

/// One direction, which keeps the lease alive.
pub(super) struct Held<T> {
    // Dropped before the lease, so that no descriptor is in use when its flags change.
    inner: T,
    _lease: Arc<Lease>,
}

impl<T> Held<T> {
    pub(super) fn new(inner: T, lease: Arc<Lease>) -> Self {
        Self { inner, _lease: lease }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Held<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Held<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    // Not the shutdown of the inner writer: that would end the sending direction of a socket that
    // other processes may share.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
