//! Working off the end of the input.

use greenroom_protocol::{BoxFuture, Error};
use tokio::time::{Instant, timeout_at};

use super::Dispatch;
use crate::port::EndOfInput;
use crate::role::Role;
use crate::termination::{Cause, ConnectionTermination};

/// How far the end of the input is worked off. Kept in the leased state, so that a restart in the
/// middle goes on there.
#[derive(Default)]
pub(super) struct EndProgress {
    closing: Option<BoxFuture<'static, Result<(), Error>>>,
    closed: bool,
    drain_until: Option<Instant>,
}

impl<C: Role> Dispatch<C> {
    /// Pending requests fail, close callbacks run, accepted requests get time for their answers.
    /// Repeatable: a restart goes on where it was cut.
    pub(super) async fn end_of_input(&mut self, end: EndOfInput) {
        let EndOfInput { error, exit } = end;
        self.give_up_parked().await;
        let cause = match &error {
            Some(error) => Cause::Terminated(ConnectionTermination::TransportError(error.clone())),
            None => Cause::IncomingClosed(exit),
        };
        self.shared.fail_pending(cause.clone());
        self.shared.sessions.end_all(&cause.to_error("session"));
        self.shared.servers.shut_down();
        if !self.end.closed {
            let connection = self.connection();
            let closing = self.end.closing.get_or_insert_with(|| self.handlers.close(connection));
            let result = closing.await;
            (self.end.closed, self.end.closing) = (true, None);
            if let Err(error) = result {
                self.shared.fail(ConnectionTermination::HandlerError(error));
            }
        }
        self.shared.incoming_closed.send_replace(true);
        if self.auto_finish && error.is_none() {
            let until = *self.end.drain_until.get_or_insert_with(|| Instant::now() + self.drain);
            if timeout_at(until, self.shared.open_count.none()).await.is_err() {
                let open = self.shared.open_count.now();
                tracing::warn!(connection = %self.shared.name, open, "requests were not answered in time");
            }
            self.shared.seal();
        }
        self.shared.input_ended(error);
    }
}
