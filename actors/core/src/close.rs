//! What runs when the peer has closed its side.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use greenroom_protocol::{Error, Result};

use crate::connection_to::{ConnectionContext, ConnectionTo};
use crate::role::Role;

/// Runs once after the peer closed its side and every pending request has failed; not at all when
/// the foreground of `connect_with` was done before. A callback that runs when the foreground ends
/// is completed, and its error counts.
pub trait HandleConnectionClose<Counterpart: Role>: Send {
    /// The callback.
    ///
    /// Cancel-safety: dropped at an `.await` when the connection ends for another reason meanwhile.
    ///
    /// # Errors
    /// An error, like a panic, ends the connection with
    /// [`HandlerError`](crate::ConnectionTermination::HandlerError).
    fn handle_connection_close(self, connection: ConnectionTo<Counterpart>) -> impl Future<Output = Result<()>> + Send;
}

/// Nothing to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullClose;

impl<Counterpart: Role> HandleConnectionClose<Counterpart> for NullClose {
    async fn handle_connection_close(self, _connection: ConnectionTo<Counterpart>) -> Result<()> {
        Ok(())
    }
}

/// Two callbacks, one after the other. Both run; the first error wins.
pub(crate) struct ChainClose<A, B> {
    pub(crate) first: A,
    pub(crate) second: B,
}

impl<Counterpart, A, B> HandleConnectionClose<Counterpart> for ChainClose<A, B>
where
    Counterpart: Role,
    A: HandleConnectionClose<Counterpart>,
    B: HandleConnectionClose<Counterpart>,
{
    async fn handle_connection_close(self, connection: ConnectionTo<Counterpart>) -> Result<()> {
        // A callback that panics must not cost the others their turn.
        let first = contained(self.first.handle_connection_close(connection.clone())).await;
        let second = self.second.handle_connection_close(connection).await;
        first.and(second)
    }
}

/// Runs a close callback and contains its panic: the end of the input must be worked off.
pub(crate) async fn contained(close: impl Future<Output = Result<()>>) -> Result<()> {
    AssertUnwindSafe(close)
        .catch_unwind()
        .await
        .unwrap_or_else(|_panic| Err(Error::internal_error().data("a close callback panicked")))
}

/// A closure as a callback.
pub(crate) struct CloseFn<F, Context> {
    pub(crate) close: F,
    pub(crate) _context: std::marker::PhantomData<fn(Context)>,
}

impl<Counterpart, F, Fut, Context> HandleConnectionClose<Counterpart> for CloseFn<F, Context>
where
    Counterpart: Role,
    Context: ConnectionContext,
    F: FnOnce(Context::Connection<Counterpart>) -> Fut + Send,
    Fut: Future<Output = Result<()>> + Send,
{
    async fn handle_connection_close(self, connection: ConnectionTo<Counterpart>) -> Result<()> {
        let Some(callback) = connection.shared().begin_close_callback() else { return Ok(()) };
        let result = (self.close)(Context::of(connection)).await;
        callback.end(&result);
        result
    }
}
