//! Actors that have nothing to do: how they are called for again, and the clock of their supervisor.

use std::sync::Arc;
use std::task::{Wake, Waker};

use ractor::{ActorRef, MessagingErr};
use tokio::task::JoinHandle;
use tokio::time::Duration;

use super::supervisor::ConnectionMessage;

/// A message that the supervisor gets later, unless this is aborted.
pub(super) type Timer = JoinHandle<Result<(), MessagingErr<ConnectionMessage>>>;

/// Tells the supervisor `message` after `after`.
pub(super) fn timer(after: Duration, supervisor: &ActorRef<ConnectionMessage>, message: ConnectionMessage) -> Timer {
    let target = supervisor.clone();
    tokio::spawn(async move {
        tokio::time::sleep(after).await;
        target.cast(message)
    })
}

/// Calls for an actor that ended because it had nothing to do.
struct Demand {
    supervisor: ActorRef<ConnectionMessage>,
    child: usize,
}

impl Wake for Demand {
    fn wake(self: Arc<Self>) {
        // Without a supervisor the connection is over, and its guard has emptied the mailboxes.
        let _ = self.supervisor.cast(ConnectionMessage::Wanted(self.child));
    }
}

/// What wakes child number `child` of `supervisor` when it has ended because it had nothing to do.
pub(super) fn demand(supervisor: &ActorRef<ConnectionMessage>, child: usize) -> Waker {
    Waker::from(Arc::new(Demand { supervisor: supervisor.clone(), child }))
}
