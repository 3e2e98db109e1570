//! The short way of a proxy: what nobody of this process wants to see is passed on at once.

use super::super::call::DispatchGuard;
use super::{Dispatch, Subject};
use crate::handlers::Delivery;
use crate::proxy::{forward_notification, forward_request};
use crate::role::{Nature, Role};

impl<C: Role> Dispatch<C> {
    /// Passes a message on, where its sender's role alone decides about it, and passes on: no
    /// handler, session or server of this process could take it. It ends as it would after handlers
    /// that did not want it. Whoever is added meanwhile gets the next message, as ever.
    ///
    /// Gives back what has to go the long way.
    pub(super) fn pass_on(&mut self, delivery: Delivery) -> Option<Delivery> {
        let decides = self.counterpart.nature() == Nature::Conductor
            && self.dynamic.is_empty()
            && self.shared.sessions.is_empty()
            && self.shared.servers.is_empty()
            && self.plans.of(&delivery).is_empty();
        match delivery {
            Delivery::Request(call, open) if decides => {
                let guard = DispatchGuard::new(open.state().clone());
                forward_request(call, open, &self.shared);
                guard.finish(Ok(()));
            }
            Delivery::Notification(mut call) if decides => {
                if let Err(error) = forward_notification(&mut call, &self.shared) {
                    self.log_failure(&Subject::Notification(call.method().into()), &error);
                }
            }
            other => return Some(other),
        }
        None
    }
}
