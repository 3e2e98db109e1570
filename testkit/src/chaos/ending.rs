//! The last act of a run: what waits when a connection is ended must fail, soon and with a reason.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use greenroom::{ConnectionTo, Error, HasPeer, Result, Role, is_connection_terminated, is_incoming_transport_closed};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::workload::stuck_request;

/// Requests of each side that wait when the end comes.
pub(super) const STUCK: usize = 50;

/// What waits must have failed by then.
const SOON: Duration = Duration::from_secs(1);

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The supervisor of the linked connection is killed.
    KillLinked,
    /// The supervisor of the linked connection is stopped.
    StopLinked,
    /// The supervisor of the connection that its caller drives is killed.
    KillDriven,
    /// The supervisor of the connection that its caller drives is stopped.
    StopDriven,
    /// Both supervisors are killed.
    KillBoth,
    /// The actor above the linked connection is killed.
    KillParent,
    /// The future of the driven connection is dropped.
    DropDriven,
    /// The foreground of the driven connection is done.
    Finish,
}

impl Ending {
    /// Every ending.
    pub const ALL: [Self; 8] = [
        Self::KillLinked,
        Self::StopLinked,
        Self::KillDriven,
        Self::StopDriven,
        Self::KillBoth,
        Self::KillParent,
        Self::DropDriven,
        Self::Finish,
    ];

    /// Seeds that follow each other end in different ways.
    pub(super) fn of(seed: u64) -> Self {
        let count = Self::ALL.len() as u64;
        Self::ALL[usize::try_from(seed % count).unwrap_or(0)]
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Reads what a session says next. In the end that is nothing.
pub(super) type Reader = Pin<Box<dyn Future<Output = Result<Value>> + Send>>;

/// Requests that wait for answers that never come.
pub(super) struct Waiting {
    side: &'static str,
    requests: JoinSet<Result<Value>>,
}

impl Waiting {
    /// Sends them.
    pub(super) fn send<C: Role + HasPeer<C>>(side: &'static str, connection: &ConnectionTo<C>) -> Result<Self> {
        let mut requests = JoinSet::new();
        for _ in 0..STUCK {
            requests.spawn(connection.send_request(stuck_request()?).block_task());
        }
        Ok(Self { side, requests })
    }

    /// Waits for the next message of a session as well.
    pub(super) fn read(&mut self, session: Reader) {
        self.requests.spawn(session);
    }

    /// Expects that each fails soon, with an error that says that the connection is over. Returns
    /// what is wrong.
    pub(super) async fn fail(mut self) -> Vec<String> {
        let mut faults = Vec::new();
        let deadline = Instant::now() + SOON;
        loop {
            match tokio::time::timeout_at(deadline, self.requests.join_next()).await {
                Ok(None) => return faults,
                Ok(Some(Ok(outcome))) => faults.extend(unexplained(self.side, &outcome)),
                Ok(Some(Err(broken))) => faults.push(format!("{}: an awaiter broke: {broken}", self.side)),
                Err(_late) => {
                    faults.push(format!("{}: {} requests still wait after the end", self.side, self.requests.len()));
                    return faults;
                }
            }
        }
    }
}

/// Expects that a request after the end fails at once, with a reason.
pub(super) async fn late_request<C: Role + HasPeer<C>>(
    side: &'static str,
    connection: &ConnectionTo<C>,
) -> Result<Option<String>> {
    let request = connection.send_request(stuck_request()?).block_task();
    // No time at all: it has failed before it is polled.
    Ok(match timeout(Duration::ZERO, request).await {
        Ok(outcome) => unexplained(side, &outcome),
        Err(_) => Some(format!("{side}: a request after the end waits")),
    })
}

/// What is wrong with the outcome of a request that never got an answer.
pub(super) fn unexplained(side: &str, outcome: &Result<Value>) -> Option<String> {
    match outcome {
        Err(error) if is_over(error) => None,
        other => Some(format!("{side}: a stuck request ended with {other:?}")),
    }
}

/// Whether an error says that the connection is over.
pub(super) fn is_over(error: &Error) -> bool {
    is_connection_terminated(error) || is_incoming_transport_closed(error)
}
