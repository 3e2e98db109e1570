//! The handler that sees the updates of coordinated sessions, and only puts them into the queue.

use greenroom_protocol::schema::v2::UpdateSessionNotification;
use greenroom_protocol::{BoxFuture, JsonRpcMessage, RemoteStyle, Result};

use super::actor::{Event, Wanted};
use crate::connection_to::ConnectionTo;
use crate::dispatch::Handled;
use crate::handlers::{Delivery, Entry, Interest};
use crate::role::HasPeer;
use crate::role::acp::Agent;
use crate::runtime::Mailbox;

/// Takes the updates of sessions that are wanted; all others are somebody else's.
pub(super) struct Observer {
    pub(super) wanted: Wanted,
    pub(super) events: Mailbox<Event>,
    pub(super) peer: RemoteStyle,
}

impl Observer {
    fn look(&self, delivery: Delivery) -> Handled<Delivery> {
        let wanted = delivery.session_id().is_some_and(|id| self.wanted.lock().contains(&*id));
        let size = delivery.size();
        let Delivery::Notification(call) = delivery else { return Handled::No { message: delivery, retry: false } };
        if !wanted {
            return Handled::No { message: Delivery::Notification(call), retry: false };
        }
        match UpdateSessionNotification::parse_params(call.method(), call.params_text()) {
            Ok(notification) => {
                // A coordination that is over wants nothing any more.
                let _ = self.events.send(Event::Update(notification.session_id, Box::new(notification.update), size));
            }
            Err(error) => {
                // Never answered; the reason may quote payload and stays out.
                let code = i32::from(error.code);
                tracing::warn!(method = call.method(), code, "a malformed notification was ignored");
            }
        }
        Handled::Yes
    }
}

impl<C: HasPeer<Agent>> Entry<C> for Observer {
    fn interest(&self) -> Interest {
        Interest::Notifications(UpdateSessionNotification::matches_method, self.peer)
    }

    fn handle<'a>(
        &'a mut self,
        delivery: Delivery,
        _connection: ConnectionTo<C>,
    ) -> BoxFuture<'a, Result<Handled<Delivery>>> {
        Box::pin(std::future::ready(Ok(self.look(delivery))))
    }
}
