//! What the supervisor of the sessions supervises.

use std::sync::Arc;

use greenroom_protocol::{BoxFuture, Error, Result};
use ractor::{ActorCell, SpawnErr};
use tokio::runtime::Handle;

use crate::runtime::{Node, Verdict};

/// An actor below the sessions of a connection, and everything that it needs to be started again.
pub(crate) trait Member: Send + Sync {
    /// Its place among everything that was added to the connection; also its name in logs.
    fn number(&self) -> u64;

    /// Its place in the tree.
    fn node(&self) -> &Arc<Node>;

    /// Starts an incarnation below `supervisor`.
    fn spawn(&self, supervisor: ActorCell) -> BoxFuture<'static, Result<ActorCell, SpawnErr>>;

    /// Decides about a death.
    fn death(&self) -> Verdict;

    /// Nothing more comes: it ends in order, after what came before.
    fn end(&self, error: Error);

    /// It ends although its actor cannot work any more.
    fn fail(&self, error: Error);

    /// Works off what is left, after its end was told and its actor is gone.
    fn wind_up<'a>(&'a self) -> BoxFuture<'a, ()>;
}

/// Ends a member whose actor does not come back: what it was told before is worked off in a task, then it
/// has failed for this reason.
pub(super) fn retire(member: Arc<dyn Member>, error: &Error, runtime: &Handle) {
    member.end(error.clone());
    member.node().kill();
    let last = Last { member, error: error.clone() };
    runtime.spawn(async move { last.member.wind_up().await });
}

/// Tells a reader the end, whatever becomes of the task that hands over what is left.
struct Last {
    member: Arc<dyn Member>,
    error: Error,
}

impl Drop for Last {
    fn drop(&mut self) {
        self.member.fail(self.error.clone());
    }
}
