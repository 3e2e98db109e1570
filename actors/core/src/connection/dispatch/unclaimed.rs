//! Messages that no handler took: kept for a handler to come, passed on, or answered.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use greenroom_protocol::{Error, unhandled};

use super::super::call::DispatchGuard;
use super::{Dispatch, Subject, panicked};
use crate::dispatch::Handled;
use crate::handlers::Delivery;
use crate::mcp_server::answer_unclaimed;
use crate::role::{Nature, Role};
use crate::runtime::Scoped;

impl<C: Role> Dispatch<C> {
    /// No handler took the message. The peer's role decides; then it is kept, if a handler asked
    /// for that, or else the protocol decides.
    pub(super) async fn unclaimed(&mut self, delivery: Delivery, subject: Subject, retry: bool) {
        let result = match self.default_handler(delivery).await {
            Ok(Handled::Yes) => Ok(()),
            Ok(Handled::No { message, retry: again }) if retry | again => {
                return self.park(message, subject).await;
            }
            Ok(Handled::No { message, .. }) => {
                self.fall_back(message).await;
                Ok(())
            }
            Err(error) => Err(error),
        };
        self.conclude(subject, result).await;
    }

    async fn default_handler(&mut self, delivery: Delivery) -> Result<Handled<Delivery>, Error> {
        match self.counterpart.nature() {
            Nature::Plain => Ok(Handled::No { message: delivery, retry: false }),
            Nature::Agent => {
                // A notification of a session whose handler may be on its way. Requests are answered at
                // once: their sender waits.
                let retry = self.parks
                    && matches!(delivery, Delivery::Notification(_))
                    && delivery.session_id().is_some_and(|id| !self.shared.sessions.has_ended(&id));
                Ok(Handled::No { message: delivery, retry })
            }
            Nature::Conductor => crate::proxy::forward(delivery, &self.shared),
            Nature::Custom => {
                let connection = self.connection();
                let (dispatch, _) = delivery.into_dispatch(self.counterpart.role_id())?;
                let method = dispatch.method().to_owned();
                let work = self.counterpart.default_handle_dispatch_from(dispatch, connection);
                let work = AssertUnwindSafe(Scoped::new(self.shared.id, &*method, work)).catch_unwind();
                Ok(match work.await.unwrap_or_else(|_panic| Err(panicked(&method)))? {
                    Handled::Yes => Handled::Yes,
                    Handled::No { message, retry } => Handled::No { message: Delivery::from_dispatch(message)?, retry },
                })
            }
        }
    }

    /// What the protocol says about a message that nobody handles.
    async fn fall_back(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Request(call, open) => {
                let method = call.method().to_owned();
                tracing::debug!(connection = %self.shared.name, method, "nobody handles this request");
                // Only an agent calls MCP servers.
                let calls = self.counterpart.nature() == Nature::Agent;
                let error = calls.then(|| answer_unclaimed(&call)).flatten();
                let endpoint = self.shared.guard.as_ref().map(|guard| guard.endpoint());
                // A peer that is gone needs no answer.
                let _ = open.answer(Err(error.unwrap_or_else(|| unhandled(endpoint, &method, call.params_text()))));
            }
            Delivery::Notification(call) => {
                tracing::debug!(connection = %self.shared.name, method = call.method(), "nobody handles this notification");
            }
            Delivery::Response(response) => {
                let (reply, outcome) = response.into_parts();
                self.settle(&reply, outcome).await;
            }
        }
    }

    /// Keeps a message for a handler that is added later. Somebody waits for a response right now,
    /// so it is not kept.
    async fn park(&mut self, delivery: Delivery, subject: Subject) {
        if matches!(delivery, Delivery::Response(_)) {
            self.fall_back(delivery).await;
            return self.conclude(subject, Ok(())).await;
        }
        // From here on the right to answer guards the request by itself.
        self.conclude(subject, Ok(())).await;
        let evicted = self.parked.push(delivery);
        for delivery in evicted {
            self.given_up += 1;
            // A flood of what nobody handles must not become a flood of warnings.
            if self.given_up.is_power_of_two() {
                tracing::warn!(
                    connection = %self.shared.name,
                    method = delivery.method(),
                    messages = self.given_up,
                    "too many messages wait for a handler: the oldest are given up"
                );
            }
            self.fall_back(delivery).await;
        }
    }

    /// Offers what is parked once more, if a handler was added since; from the oldest on, also when
    /// that happens in the middle. Repeatable: a restart goes on where it was cut.
    pub(super) async fn offer_again(&mut self) {
        loop {
            let generation = self.dynamic.generation();
            if generation != self.seen {
                self.seen = generation;
                // What was offered in vain just now is older than what was not offered yet.
                let older = std::mem::take(&mut self.parked);
                self.retrying.put_before(older);
            }
            let Some(delivery) = self.retrying.pop() else { return };
            let subject = match &delivery {
                Delivery::Request(_, open) => Subject::Request(DispatchGuard::again(open.state().clone())),
                _ => Subject::Notification(delivery.method().into()),
            };
            // It would not be here if nobody had asked to see it again.
            self.offer(delivery, subject, true).await;
        }
    }

    /// Nobody will handle what is still parked: the input has ended.
    pub(super) async fn give_up_parked(&mut self) {
        while let Some(delivery) = self.retrying.pop().or_else(|| self.parked.pop()) {
            self.fall_back(delivery).await;
        }
    }
}
