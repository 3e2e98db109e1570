//! The tasks that an application hands to its connection.
//!
//! Owns: the set of running tasks, which lives outside the actor, so that they survive it.
//! Supervised by: the connection. When it dies: restarted, the tasks go on.
//! A task that panics or fails harms only itself: it is reported, and the requests it had taken
//! over are answered. With `end_on_failure` it ends the connection instead.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use greenroom_protocol::Error;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::message::Task;
use super::shared::Shared;
use crate::runtime::{Flow, Inbox, Stage};
use crate::termination::ConnectionTermination;

/// What the owner of the tasks is told.
pub(crate) enum TaskItem {
    /// Run this.
    Spawn(Task),
    /// A task ended.
    Ended(Result<(), Error>),
}

/// The running tasks. Shared with the connection's guard, which aborts them at the end.
pub(crate) type TaskSet = Arc<Mutex<JoinSet<()>>>;

/// The stage of the tasks' owner.
pub(crate) struct Tasks {
    shared: Arc<Shared>,
    running: TaskSet,
    end_on_error: bool,
}

impl Tasks {
    pub(crate) fn new(shared: Arc<Shared>, running: TaskSet, end_on_error: bool) -> Self {
        Self { shared, running, end_on_error }
    }

    fn spawn(&self, task: Task) {
        let done = self.shared.tasks.clone();
        let live = self.shared.live.enter();
        let mut running = self.running.lock();
        running.spawn(async move {
            let _live = live;
            let result = AssertUnwindSafe(task).catch_unwind().await;
            // The panic's text may hold a payload: it is not repeated.
            let result = result.unwrap_or_else(|_| Err(Error::internal_error().data("a task panicked")));
            let _ = done.send(TaskItem::Ended(result));
        });
        while running.try_join_next().is_some() {}
    }

    fn ended(&self, result: Result<(), Error>) {
        while self.running.lock().try_join_next().is_some() {}
        if let Err(error) = result {
            tracing::warn!(connection = %self.shared.name, code = i32::from(error.code), "a task failed");
            if self.end_on_error {
                self.shared.fail(ConnectionTermination::HandlerError(error));
            }
        }
    }
}

impl Stage for Tasks {
    type Item = TaskItem;

    async fn run(&mut self, inbox: &mut Inbox<TaskItem>) -> Flow {
        while let Some(item) = inbox.take() {
            match item {
                // It was queued when the foreground ended, or later: too late to begin.
                TaskItem::Spawn(task) if self.shared.is_draining() => drop(task),
                TaskItem::Spawn(task) => self.spawn(task),
                TaskItem::Ended(result) => self.ended(result),
            }
        }
        Flow::Idle
    }

    fn quarantine(&mut self, item: TaskItem) {
        drop(item);
    }
}
