//! What the supervisor of the sessions supervises.

use std::sync::Arc;

use greenroom_protocol::{BoxFuture, Error, Result};
use ractor::{ActorCell, SpawnErr};

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
