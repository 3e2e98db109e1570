//! The coordinator of one session: what the agent says, the ends of turns and their deadlines, in
//! one order.
//!
//! Owns: the open turns, the way to the reader. Supervised by: the connection's sessions.
//! When it dies: restarted as often as `ConnectionOptions::session_restart` allows, the queue goes on; then
//! only this session fails, with an error that its reader gets.
//! What the agent says while a coordinator has nothing to do is handed to the reader without waking
//! it (`SessionEntry::deliver`): nothing is to be put in order then, and a message does not have to
//! bring the coordinators of thousands of sessions into the processor's caches.
//! Ordering promise: the reader sees messages and ends of turns in wire order; an end that was given
//! up because of its deadline is not followed by another one.

use std::sync::Weak;

use greenroom_protocol::schema::StopReason;
use greenroom_protocol::{Error, Result};
use tokio::time::Duration;

use super::entry::SessionEntry;
use super::queue::Event;
use super::turns::Turns;
use crate::connection::{Shared, TaskItem};
use crate::handlers::Delivery;
use crate::request::RequestCancellationHandle;
use crate::runtime::{Flow, Inbox, Stage};

/// What a coordinator is told.
pub(crate) enum SessionItem {
    /// The agent said something.
    Message(Box<Delivery>),
    /// A prompt is about to be sent.
    TurnBegan(u64, RequestCancellationHandle),
    /// The answer to a prompt.
    TurnEnded(u64, Result<StopReason>),
    /// The work of the session is cancelled.
    Cancel,
    /// The time that a cancelled turn had is over.
    Overdue(u64),
    /// From now on messages go to somebody else, beginning with those that nobody read.
    Forward(Forward),
    /// Nothing more comes, for this reason.
    End(Error),
}

/// Takes a message of the session instead of its reader.
pub(crate) type Forward = Box<dyn Fn(Delivery) -> Result<()> + Send>;

/// The stage of a session's coordinator.
pub(crate) struct Coordinator {
    connection: Weak<Shared>,
    /// The number of the session in logs: its id may mean something to somebody.
    number: u64,
    /// The way to the reader. Gone when nobody knows the session any more.
    entry: Weak<SessionEntry>,
    turns: Turns<RequestCancellationHandle>,
    forward: Option<Forward>,
    cap: usize,
    deadline: Duration,
}

impl Coordinator {
    pub(super) fn new(
        connection: Weak<Shared>,
        number: u64,
        entry: Weak<SessionEntry>,
        cap: usize,
        deadline: Duration,
    ) -> Self {
        Self { connection, number, entry, turns: Turns::default(), forward: None, cap, deadline }
    }

    fn message(&mut self, mut delivery: Box<Delivery>) {
        if let Some(forward) = &self.forward {
            if let Err(error) = forward(*delivery) {
                tracing::warn!(session = self.number, code = i32::from(error.code), "a message was not passed on");
            }
            return;
        }
        // The reader takes its time, and the connection must not wait for it.
        delivery.release_credit();
        if let Err(Event::Message(delivery)) = self.tell_reader(Event::Message(delivery)) {
            // A request is answered by dropping its right to be answered.
            tracing::warn!(session = self.number, method = delivery.method(), "nobody reads this session any more");
        }
    }

    fn tell_reader(&self, event: Event) -> std::result::Result<(), Event> {
        match self.entry.upgrade() {
            Some(entry) => entry.queue().push(event, self.cap),
            None => Err(event),
        }
    }

    fn stop(&mut self, outcome: Result<StopReason>) {
        // A queue that has ended tells its own reason.
        let _ = self.tell_reader(Event::Stop(Box::new(outcome)));
    }

    fn cancel(&mut self) {
        for turn in self.turns.cancel() {
            let (entry, deadline) = (self.entry.clone(), self.deadline);
            let Some(connection) = self.connection.upgrade() else { return };
            let _ = connection.tasks.send(TaskItem::Spawn(Box::pin(async move {
                tokio::time::sleep(deadline).await;
                if let Some(entry) = entry.upgrade() {
                    let _ = entry.tell(SessionItem::Overdue(turn));
                }
                Ok(())
            })));
        }
    }

    fn overdue(&mut self, turn: u64) {
        let Some(handle) = self.turns.overdue(turn) else { return };
        // The other way to say it; the answer comes too late for anybody in any case.
        let _ = handle.cancel();
        tracing::warn!(session = self.number, "a cancelled turn did not end in time");
        self.stop(Err(Error::request_cancelled().data(serde_json::json!({
            "reason": "the agent did not end the cancelled turn in time",
            "milliseconds": u64::try_from(self.deadline.as_millis()).unwrap_or(u64::MAX),
        }))));
    }

    fn forward_to(&mut self, forward: Forward) {
        self.forward = Some(forward);
        let Some(entry) = self.entry.upgrade() else { return };
        entry.queue().forward();
        while let Some(event) = entry.queue().take() {
            if let Event::Message(delivery) = event {
                self.message(delivery);
            }
        }
    }
}

impl Stage for Coordinator {
    type Item = SessionItem;

    async fn run(&mut self, inbox: &mut Inbox<SessionItem>) -> Flow {
        while let Some(item) = inbox.take() {
            match item {
                SessionItem::Message(delivery) => self.message(delivery),
                SessionItem::TurnBegan(turn, handle) => self.turns.begin(turn, handle),
                SessionItem::TurnEnded(turn, outcome) => {
                    if self.turns.end(turn) {
                        self.stop(outcome);
                    }
                }
                SessionItem::Cancel => self.cancel(),
                SessionItem::Overdue(turn) => self.overdue(turn),
                SessionItem::Forward(forward) => self.forward_to(forward),
                SessionItem::End(error) => {
                    if let Some(entry) = self.entry.upgrade() {
                        entry.queue().end(error);
                    }
                    return Flow::Finished;
                }
            }
            if let Some(entry) = self.entry.upgrade() {
                entry.done();
            }
        }
        Flow::Idle
    }

    fn quarantine(&mut self, item: SessionItem) {
        drop(item);
    }
}
