//! A connection that hangs below an actor of its host.

use std::fmt;
use std::sync::Arc;

use greenroom_protocol::Result;
use ractor::ActorCell;
use tokio::sync::watch;

use crate::connection::{End, Started};
use crate::connection_to::ConnectionTo;
use crate::role::Role;
use crate::runtime::{Node, Snapshot};

/// A running connection, supervised by an actor of the embedding program.
///
/// Dropping the handle leaves the connection alone: its supervisor owns it. Ending the supervisor
/// ends the connection, whatever it was doing.
pub struct Connection<Counterpart: Role> {
    connection: ConnectionTo<Counterpart>,
    supervisor: ActorCell,
    end: watch::Receiver<End>,
}

impl<Counterpart: Role> Connection<Counterpart> {
    pub(crate) fn new(started: Started, counterpart: Counterpart) -> Self {
        let connection = ConnectionTo::new(started.shared, counterpart);
        Self { connection, supervisor: started.supervisor, end: started.end }
    }

    /// The handle that application code uses.
    #[must_use]
    pub fn connection(&self) -> &ConnectionTo<Counterpart> {
        &self.connection
    }

    /// The actor that supervises the connection, for linking or monitoring. Killing or
    /// stopping it ends the connection at once; what waits is not written.
    #[must_use]
    pub fn actor(&self) -> &ActorCell {
        &self.supervisor
    }

    /// The live tree of the connection's actors: as [`ConnectionTo::tree`].
    #[must_use]
    pub fn tree(&self) -> Arc<Node> {
        self.connection.tree()
    }

    /// A picture of the connection's actors: as [`ConnectionTo::snapshot`].
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.connection.snapshot()
    }

    /// Lets everything published so far leave, then ends the connection. Nothing can be sent from
    /// now on. Returns at once; wait with [`closed`](Self::closed). The termination that this leaves
    /// is [`IncomingClosed`](crate::ConnectionTermination::IncomingClosed).
    pub fn finish(&self) {
        self.connection.shared().seal();
    }

    /// Waits until the connection is over and nothing of it is left: no actor, no task.
    /// Cancel-safe.
    ///
    /// Can be called any number of times, before and after the end. Callbacks of requests that
    /// failed with the connection are waited for too, 5 s at the longest.
    ///
    /// # Errors
    /// What ended the connection, unless both sides were done.
    pub async fn closed(&self) -> Result<()> {
        closed(&self.end, &self.connection.shared().live).await
    }
}

/// Waits for the end of a connection, then until nothing of it is left.
pub(crate) async fn closed(end: &watch::Receiver<End>, live: &crate::runtime::LiveCount) -> Result<()> {
    let mut end = end.clone();
    let result = match end.wait_for(Option::is_some).await {
        Ok(result) => result.clone().unwrap_or(Ok(())),
        Err(_) => Ok(()),
    };
    live.none().await;
    result
}

impl<Counterpart: Role> fmt::Debug for Connection<Counterpart> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("connection", &self.connection).finish_non_exhaustive()
    }
}
