//! Work that runs beside a connection for as long as it lasts.

use greenroom_protocol::Result;

use crate::connection_to::{ConnectionContext, ConnectionTo};
use crate::role::Role;

/// Runs beside a connection. An error ends the connection; `Ok` does not. See
/// [`Builder::with_runner`](crate::Builder::with_runner).
pub trait RunWithConnectionTo<Counterpart: Role>: Send {
    /// The work. It may wait for responses.
    ///
    /// Cancel-safety: dropped at an `.await` when the connection ends.
    ///
    /// # Errors
    /// An error ends the connection with
    /// [`HandlerError`](crate::ConnectionTermination::HandlerError).
    fn run_with_connection_to(self, connection: ConnectionTo<Counterpart>) -> impl Future<Output = Result<()>> + Send;
}

/// Nothing to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullRun;

impl<Counterpart: Role> RunWithConnectionTo<Counterpart> for NullRun {
    async fn run_with_connection_to(self, _connection: ConnectionTo<Counterpart>) -> Result<()> {
        Ok(())
    }
}

/// Two runners at the same time.
#[derive(Debug)]
pub struct ChainRun<A, B> {
    first: A,
    second: B,
}

impl<A, B> ChainRun<A, B> {
    /// Runs both in one task; the first error wins and drops the other.
    #[must_use]
    pub fn new(first: A, second: B) -> Self {
        Self { first, second }
    }
}

impl<Counterpart, A, B> RunWithConnectionTo<Counterpart> for ChainRun<A, B>
where
    Counterpart: Role,
    A: RunWithConnectionTo<Counterpart>,
    B: RunWithConnectionTo<Counterpart>,
{
    async fn run_with_connection_to(self, connection: ConnectionTo<Counterpart>) -> Result<()> {
        let first = self.first.run_with_connection_to(connection.clone());
        let second = self.second.run_with_connection_to(connection);
        futures_util::future::try_join(first, second).await.map(|((), ())| ())
    }
}

/// A closure as a runner.
pub(crate) struct SpawnedRun<F, Context> {
    pub(crate) run: F,
    pub(crate) _context: std::marker::PhantomData<fn(Context)>,
}

impl<Counterpart, F, Fut, Context> RunWithConnectionTo<Counterpart> for SpawnedRun<F, Context>
where
    Counterpart: Role,
    Context: ConnectionContext,
    F: FnOnce(Context::Connection<Counterpart>) -> Fut + Send,
    Fut: Future<Output = Result<()>> + Send,
{
    async fn run_with_connection_to(self, connection: ConnectionTo<Counterpart>) -> Result<()> {
        (self.run)(Context::of(connection)).await
    }
}
