//! Leased state: it belongs to a slot, and the running actor only borrows it.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Duration;

/// How long a new actor waits for its predecessor to let go of the state.
///
/// Normally microseconds: the predecessor's state is dropped right after its death. Only a
/// predecessor that hangs in synchronous code holds it longer, and then the connection must fail
/// rather than wait for ever.
const LEASE_LIMIT: Duration = Duration::from_secs(1);

/// Holds the state of an actor between its incarnations.
pub struct Slot<S> {
    state: Arc<Mutex<S>>,
}

/// The state while an actor works on it. Dropping the lease, in whatever way the actor ends,
/// returns the state to its slot as it is.
pub type Lease<S> = OwnedMutexGuard<S>;

/// The predecessor did not let go of the state in time.
#[derive(Debug, PartialEq, Eq)]
pub struct LeaseTimeout;

impl fmt::Display for LeaseTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the previous incarnation still holds the state after {LEASE_LIMIT:?}")
    }
}

impl std::error::Error for LeaseTimeout {}

impl<S> Slot<S> {
    /// A slot with its first state.
    pub fn new(state: S) -> Self {
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Waits until the state is free, and takes it. First come, first served. Cancel-safe.
    ///
    /// # Errors
    /// [`LeaseTimeout`] after one second.
    pub async fn lease(&self) -> Result<Lease<S>, LeaseTimeout> {
        if let Ok(lease) = self.state.clone().try_lock_owned() {
            return Ok(lease);
        }
        tokio::time::timeout(LEASE_LIMIT, self.state.clone().lock_owned()).await.map_err(|_| LeaseTimeout)
    }
}

impl<S> Clone for Slot<S> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone() }
    }
}

impl<S> fmt::Debug for Slot<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leased = self.state.try_lock().is_err();
        f.debug_struct("Slot").field("leased", &leased).finish_non_exhaustive()
    }
}
