//! The handlers of both sides, and the books of everything that is said.

use std::sync::Arc;

use greenroom::{ConnectionTo, Error, Responder, Result, Role, UntypedMessage};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::super::ledger::Ledger;

/// A request with this method never gets an answer.
pub(super) const STUCK: &str = "_stuck";

/// One flow of numbered messages: one direction of one stream.
#[derive(Clone)]
pub(super) struct Lane {
    number: usize,
    /// The session whose stream it uses; `None` for the stream of the connection.
    session: Option<Arc<str>>,
    pub(super) ledger: Arc<Ledger>,
}

impl Lane {
    /// A message of this lane.
    pub(super) fn message(&self, method: &str, number: u64) -> Result<UntypedMessage> {
        let text = "x".repeat(usize::try_from(number % 300).unwrap_or(0));
        let mut params = json!({ "lane": self.number, "n": number, "text": text });
        if let Some(session) = &self.session {
            params["sessionId"] = (**session).into();
        }
        UntypedMessage::new(method, params)
    }
}

/// What all connections of a run share.
#[derive(Clone, Default)]
pub(super) struct Desk {
    lanes: Arc<Mutex<Vec<Arc<Ledger>>>>,
    /// Messages of lanes that nobody knows.
    strays: Arc<Mutex<Vec<String>>>,
    kept: Arc<Mutex<Vec<Responder>>>,
    stuck: Arc<watch::Sender<usize>>,
}

impl Desk {
    /// Opens the books of another lane.
    pub(super) fn lane(&self, name: String, session: Option<Arc<str>>) -> Lane {
        let ledger = Arc::new(Ledger::new(name));
        let mut lanes = self.lanes.lock();
        lanes.push(ledger.clone());
        Lane { number: lanes.len() - 1, session, ledger }
    }

    fn arrived(&self, params: &Value) {
        let number = params["n"].as_u64();
        let ledger =
            params["lane"].as_u64().and_then(|lane| self.lanes.lock().get(usize::try_from(lane).ok()?).cloned());
        match (number, ledger) {
            (Some(number), Some(ledger)) => ledger.arrived(number),
            _ => self.strays.lock().push(format!("a message of no lane came: {params}")),
        }
    }

    /// Handles a request.
    pub(super) async fn serve<C: Role>(
        &self,
        request: UntypedMessage,
        responder: Responder,
        connection: ConnectionTo<C>,
    ) -> Result<()> {
        if request.method == STUCK {
            self.kept.lock().push(responder);
            self.stuck.send_modify(|count| *count += 1);
            return Ok(());
        }
        if request.method != "_work" {
            return responder.respond_with_error(Error::method_not_found());
        }
        self.arrived(&request.params);
        let number = request.params["n"].as_u64().unwrap_or(u64::MAX);
        let answer = json!({ "n": number });
        match number % 3 {
            0 => tokio::task::yield_now().await,
            1 => {
                return connection.spawn(async move {
                    tokio::task::yield_now().await;
                    responder.respond(answer)
                });
            }
            _ => {}
        }
        responder.respond(answer)
    }

    /// Handles a notification.
    pub(super) fn note(&self, note: &UntypedMessage) {
        self.arrived(&note.params);
    }

    /// What came and belongs nowhere.
    pub(super) fn strays(&self) -> Vec<String> {
        std::mem::take(&mut *self.strays.lock())
    }

    /// Waits until this many requests are stuck here.
    pub(super) async fn stuck(&self, count: usize) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.stuck.subscribe().wait_for(|stuck| *stuck >= count).await;
    }

    /// Gives up the requests that are stuck.
    pub(super) fn release(&self) {
        // Dropped outside of the lock: dropping answers.
        let kept = std::mem::take(&mut *self.kept.lock());
        drop(kept);
    }
}
