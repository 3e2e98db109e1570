//! Runs the future that drives a transport: a child process, or a component in this process.
//!
//! Owns: the driver, in its leased state, so that killing this actor does not end the transport.
//! Supervised by: the connection. When the driver ends, so does this actor.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;
use greenroom_protocol::{ConnectionDriver, Error};
use tokio::sync::Notify;
use tokio::time::{Duration, Instant};

use crate::runtime::{Flow, Inbox, Stage};

/// Time for a driver that cannot be asked to end, after the end of its input.
const GRACE: Duration = Duration::from_millis(250);

/// How a driver is told that everything was handed over to it.
#[derive(Default)]
pub(crate) struct FinishDriver {
    told: Notify,
    joins: AtomicBool,
}

impl FinishDriver {
    /// This side is done: a driver that cannot be asked to end is dropped soon.
    pub(crate) fn finish(&self) {
        self.told.notify_one();
    }

    /// The far side is done: its driver is waited for, however long it takes.
    pub(crate) fn join(&self) {
        self.joins.store(true, Ordering::Release);
        self.told.notify_one();
    }
}

/// The stage that polls a driver.
pub(crate) struct Driver {
    driver: Option<ConnectionDriver>,
    finish: Arc<FinishDriver>,
    finishing: bool,
    /// When a driver that cannot be asked to end is dropped.
    deadline: Option<Instant>,
}

impl Driver {
    /// `finish` asks the driver to end by itself.
    pub(crate) fn new(driver: ConnectionDriver, finish: Arc<FinishDriver>) -> Self {
        Self { driver: Some(driver), finish, finishing: false, deadline: None }
    }
}

impl Stage for Driver {
    type Item = std::convert::Infallible;

    async fn run(&mut self, _inbox: &mut Inbox<Self::Item>) -> Flow {
        let Some(driver) = &mut self.driver else { return Flow::Finished };
        loop {
            let deadline = self.deadline;
            tokio::select! {
                biased;
                result = AssertUnwindSafe(&mut *driver).catch_unwind() => {
                    self.driver = None;
                    return match result {
                        Ok(Ok(())) => Flow::Finished,
                        // It was about to be dropped; what it says about that is of no interest.
                        _ if deadline.is_some() => Flow::Finished,
                        Ok(Err(error)) => Flow::Failed(error),
                        // Polling it again would only panic again.
                        Err(_panic) => Flow::Failed(Error::internal_error().data("the transport's driver panicked")),
                    };
                }
                () = self.finish.told.notified(), if !self.finishing => {
                    self.finishing = true;
                    if !driver.request_finish() && !self.finish.joins.load(Ordering::Acquire) {
                        // An opaque driver only sees the end of its input: a component of this
                        // process works off what came before it.
                        self.deadline = Some(Instant::now() + GRACE);
                    }
                }
                () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    self.driver = None;
                    return Flow::Finished;
                }
            }
        }
    }

    fn quarantine(&mut self, item: Self::Item) {
        match item {}
    }
}
