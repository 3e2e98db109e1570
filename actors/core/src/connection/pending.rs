//! The owner of the reply table: everything that fails requests from outside their own dispatch.
//!
//! Owns: nothing itself; the table lives in the connection's shared part, because registering a
//! request must be synchronous and an answer must settle in wire order. Supervised by: the
//! connection. When it dies: restarted, nothing lost.

use std::sync::Arc;

use super::shared::Shared;
use crate::runtime::{Flow, Inbox, Stage};
use crate::termination::Cause;

/// What the owner of the table is told.
pub(crate) enum PendingItem {
    /// Nobody will answer any more.
    FailAll(Cause),
}

/// The stage of the reply table's owner.
pub(crate) struct PendingReplies {
    shared: Arc<Shared>,
}

impl PendingReplies {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl Stage for PendingReplies {
    type Item = PendingItem;

    async fn run(&mut self, inbox: &mut Inbox<PendingItem>) -> Flow {
        while let Some(PendingItem::FailAll(cause)) = inbox.begin() {
            let cause = cause.clone();
            self.shared.fail_pending(cause);
            inbox.commit();
        }
        Flow::Idle
    }

    fn quarantine(&mut self, item: PendingItem) {
        drop(item);
    }
}
