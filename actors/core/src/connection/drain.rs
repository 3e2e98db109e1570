//! The foreground is done: what stops at once, and what is still completed.
//!
//! Nothing new begins: no handler, no task, no close callback. The input is still read, and
//! discarded, so that a peer that writes before it reads can take our output. A close callback that
//! runs already is completed, and what it sends still leaves.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use greenroom_protocol::Error;
use tokio::sync::watch;

use super::message::Step;
use super::shared::Shared;
use super::supervisor::ConnectionMessage;
use crate::handlers::gone;

/// The close callbacks of one connection.
#[derive(Default)]
pub(crate) struct CloseCallbacks {
    progress: watch::Sender<Progress>,
}

#[derive(Default)]
struct Progress {
    begun: bool,
    underway: usize,
    failed: Option<Error>,
}

/// A close callback at work. Dropped before its end, it failed.
pub(crate) struct CloseCallback {
    shared: Arc<Shared>,
    ended: bool,
}

impl CloseCallback {
    /// The callback is done.
    pub(crate) fn end(mut self, result: &Result<(), Error>) {
        self.ended = true;
        self.leave(result.as_ref().err().cloned());
    }

    fn leave(&self, error: Option<Error>) {
        self.shared.close_callbacks.progress.send_modify(|progress| {
            progress.underway -= 1;
            if progress.failed.is_none() {
                progress.failed = error;
            }
        });
    }
}

impl Drop for CloseCallback {
    fn drop(&mut self) {
        if !self.ended {
            self.leave(Some(Error::internal_error().data("a close callback panicked")));
        }
    }
}

impl Shared {
    /// A close callback begins, unless nothing may begin any more. What began goes on to the last
    /// of the callbacks.
    pub(crate) fn begin_close_callback(self: &Arc<Self>) -> Option<CloseCallback> {
        let mut begins = true;
        self.close_callbacks.progress.send_if_modified(|progress| {
            begins = progress.begun || !self.is_draining();
            if begins {
                progress.begun = true;
                progress.underway += 1;
            }
            false
        });
        begins.then(|| CloseCallback { shared: self.clone(), ended: false })
    }

    /// Waits until no close callback is at work, and returns the first error of those that were.
    /// Cancel-safe.
    pub(crate) async fn close_callbacks_done(&self) -> Option<Error> {
        let mut progress = self.close_callbacks.progress.subscribe();
        // The sender lives as long as this future borrows it.
        let done = progress.wait_for(|progress| progress.underway == 0).await;
        done.ok().and_then(|progress| progress.failed.clone())
    }

    /// Nothing new begins. What was read and not worked off is dropped, and so is what comes.
    pub(crate) fn begin_drain(&self) {
        if self.draining.swap(true, Ordering::AcqRel) {
            return;
        }
        self.servers.shut_down();
        // Handlers may hang: reading must not wait for what they hold.
        self.in_credit.lift();
        for step in self.steps.close() {
            self.undone(step);
        }
        // Those behind a handler that is still at work.
        self.undispatched.end(self);
    }

    /// What becomes of a step that nobody works off any more.
    pub(crate) fn undone(&self, step: Step) {
        match step {
            Step::Eof(end) => self.input_ended(end.error),
            // Those of its entries that were dispatched may be answered.
            Step::BatchDispatched(batch, _) => batch.dispatched(self),
            // A connection that fails waits for the answers of all that counts as open. One that was
            // shut down says nothing any more.
            Step::Request(_, call) if self.termination.borrow().is_some() => drop(call.answer(Err(gone()))),
            Step::Request(..) | Step::Notification(_) | Step::Response(..) | Step::HandlerAdded => {}
        }
    }

    /// Whether nothing new begins.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// This side is done: what was published leaves, and nothing after it.
    pub(crate) fn finish(&self) {
        self.begin_drain();
        self.seal();
        // Dropped outside of the mailbox's lock.
        drop(self.tasks.close());
    }

    /// As [`finish`](Self::finish), when every open request was answered or is being answered right
    /// now.
    pub(crate) fn finish_behind_answers(&self) {
        self.begin_drain();
        drop(self.tasks.close());
        self.seal_behind_answers();
    }

    /// Tells the supervisor that the end of the input was worked off.
    pub(crate) fn input_ended(&self, error: Option<Error>) {
        if let Some(supervisor) = self.supervisor.get() {
            let _ = supervisor.cast(ConnectionMessage::InputEnded(error));
        }
    }
}
