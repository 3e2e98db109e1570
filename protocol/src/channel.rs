//! The in-process seam between two components: a pair of frame queues, and the future that
//! drives whatever stands behind it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_channel::mpsc;

use crate::error::{Error, Result};
use crate::raw::TransportFrame;

/// A boxed future that can be sent between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One end of an in-process connection.
///
/// Ordering: frames arrive in the order in which they were sent. Dropping `tx` is the end of the
/// input of the other end; `rx` ends when the other end dropped its `tx`. The directions are
/// independent (spec §6.2, 57). Queues are unbounded: sending never waits.
#[derive(Debug)]
pub struct Channel {
    /// Frames from the other end.
    pub rx: mpsc::UnboundedReceiver<TransportFrame>,
    /// Frames to the other end.
    pub tx: mpsc::UnboundedSender<TransportFrame>,
}

impl Channel {
    /// Two connected ends.
    #[must_use]
    pub fn duplex() -> (Self, Self) {
        let (left_tx, right_rx) = mpsc::unbounded();
        let (right_tx, left_rx) = mpsc::unbounded();
        (Self { rx: left_rx, tx: left_tx }, Self { rx: right_rx, tx: right_tx })
    }
}

type Hook = Box<dyn FnOnce() + Send>;

/// The future that moves the bytes (or runs the component) behind a [`Channel`].
///
/// It resolves when the transport has ended. A driver made [`with_finish`](Self::with_finish) can
/// be asked to end by itself; an opaque one ([`new`](Self::new)) can only be dropped.
///
/// Dropping a driver runs no hook (spec §6.2, 54). I/O errors are its result, never an item of the
/// channel (spec §6.2, 64).
pub struct ConnectionDriver {
    future: BoxFuture<'static, Result<()>>,
    finish: Finish,
}

enum Finish {
    Opaque,
    Cooperative(Hook),
    Requested,
}

impl ConnectionDriver {
    /// A driver without a way to ask it to end. A connection whose peer is done waits for it, however
    /// long it takes; one that this side ends gives it 250 ms, and drops it (spec §6.2, 56).
    pub fn new(future: impl Future<Output = Result<()>> + Send + 'static) -> Self {
        Self { future: Box::pin(future), finish: Finish::Opaque }
    }

    /// A driver that ends by itself, after what was accepted is written, once `finish` ran. `finish`
    /// must not block. The end of the connection waits for the future without a limit (spec §6.2, 52
    /// and 62).
    pub fn with_finish(
        future: impl Future<Output = Result<()>> + Send + 'static,
        finish: impl FnOnce() + Send + 'static,
    ) -> Self {
        Self { future: Box::pin(future), finish: Finish::Cooperative(Box::new(finish)) }
    }

    /// Asks the driver to end. True if it is able to, also when asked again; the hook runs once (spec
    /// §6.2, 53). The driver still has to be polled to its end.
    pub fn request_finish(&mut self) -> bool {
        match std::mem::replace(&mut self.finish, Finish::Requested) {
            Finish::Opaque => {
                self.finish = Finish::Opaque;
                false
            }
            Finish::Cooperative(hook) => {
                hook();
                true
            }
            Finish::Requested => true,
        }
    }

    /// Wraps the future, keeping the ability to finish and whether it was used (spec §6.2, 55).
    #[must_use]
    pub fn map_future<F>(self, map: impl FnOnce(BoxFuture<'static, Result<()>>) -> F) -> Self
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        Self { future: Box::pin(map(self.future)), finish: self.finish }
    }
}

impl Future for ConnectionDriver {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.future.as_mut().poll(cx)
    }
}

impl fmt::Debug for ConnectionDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let finish = match self.finish {
            Finish::Opaque => "opaque",
            Finish::Cooperative(_) => "cooperative",
            Finish::Requested => "requested",
        };
        f.debug_struct("ConnectionDriver").field("finish", &finish).finish_non_exhaustive()
    }
}
