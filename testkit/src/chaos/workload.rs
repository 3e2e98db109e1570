//! What the two sides of a soak say to each other.

use std::sync::Arc;
use std::time::Duration;

use greenroom::{ConnectionTo, Handled, HasPeer, Responder, Result, Role, UntypedMessage};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};

use super::lanes::Lanes;
use super::ledger::Ledger;
use super::random::Random;
use super::sessions::Sessions;

/// Requests of one side that may be under way at once.
const WINDOW: u32 = 64;

/// How a handler works on a request; the method says so.
const WAYS: [&str; 4] = ["work/immediate", "work/yielding", "work/sleeping", "work/spawned"];

/// A request with this method never gets an answer.
const STUCK: &str = "stuck";

/// A notification.
const NOTE: &str = "note";

/// One side's handlers: keeps the other side's books.
#[derive(Clone)]
pub(super) struct Worker {
    /// Messages that come in.
    pub(super) ledger: Arc<Ledger>,
    /// Sessions of the other side.
    pub(super) sessions: Sessions,
    /// Streams that the other side asks for.
    pub(super) lanes: Lanes,
    kept: Arc<Mutex<Vec<Responder>>>,
    stuck: Arc<watch::Sender<usize>>,
}

impl Worker {
    pub(super) fn new(ledger: Arc<Ledger>) -> Self {
        Self {
            ledger,
            sessions: Sessions::default(),
            lanes: Lanes::default(),
            kept: Arc::default(),
            stuck: Arc::new(watch::Sender::new(0)),
        }
    }

    /// Handles a request.
    pub(super) async fn serve<C: Role + HasPeer<C>>(
        &self,
        request: UntypedMessage,
        responder: Responder,
        connection: ConnectionTo<C>,
    ) -> Result<Handled<(UntypedMessage, Responder)>> {
        if Sessions::takes(&request) || Lanes::takes(&request) {
            // A lane's handler may be away for a while.
            let retry = Lanes::takes(&request);
            return Ok(Handled::No { message: (request, responder), retry });
        }
        let Some((request, responder)) = self.sessions.serve(request, responder, &connection).await? else {
            return Ok(Handled::Yes);
        };
        let Some((request, responder)) = self.lanes.serve(request, responder, &connection)? else {
            return Ok(Handled::Yes);
        };
        self.work(request, responder, connection).await?;
        Ok(Handled::Yes)
    }

    async fn work<C: Role>(
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
        let number = number_of(&request);
        self.ledger.arrived(number);
        let answer = json!({ "n": number });
        match request.method.as_str() {
            "work/yielding" => tokio::task::yield_now().await,
            "work/sleeping" => tokio::time::sleep(Duration::from_micros(300)).await,
            "work/spawned" => {
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
    pub(super) async fn note<C: Role>(
        &self,
        notification: UntypedMessage,
        connection: ConnectionTo<C>,
    ) -> Result<Handled<(UntypedMessage, ConnectionTo<C>)>> {
        if Sessions::takes(&notification) || Lanes::takes(&notification) {
            return Ok(Handled::No { message: (notification, connection), retry: false });
        }
        if self.sessions.note(&notification) {
            return Ok(Handled::Yes);
        }
        let number = number_of(&notification);
        self.ledger.arrived(number);
        if number.is_multiple_of(7) {
            tokio::task::yield_now().await;
        }
        Ok(Handled::Yes)
    }

    /// All books, with those of sessions and lanes.
    pub(super) fn books(&self) -> Vec<Arc<Ledger>> {
        let mut books = vec![self.ledger.clone()];
        books.extend(self.sessions.books());
        books.extend(self.lanes.books());
        books
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

fn number_of(message: &UntypedMessage) -> u64 {
    message.params["n"].as_u64().unwrap_or(u64::MAX)
}

/// Sends `count` messages in order, requests of every kind and notifications, and waits for every
/// answer. A third of them are notifications.
pub(super) async fn produce<C: Role + HasPeer<C>>(
    connection: ConnectionTo<C>,
    ledger: Arc<Ledger>,
    count: usize,
    seed: u64,
) -> Result<()> {
    let mut random = Random::new(seed);
    let window = Arc::new(Semaphore::new(WINDOW as usize));
    for _ in 0..count {
        let is_request = !random.once_in(3);
        let number = ledger.sending(is_request);
        if !is_request {
            connection.send_notification(message(NOTE, number)?)?;
            continue;
        }
        // Sleeping holds everything behind it up: it is rare.
        let way = if random.once_in(40) { "work/sleeping" } else { random.pick(&[WAYS[0], WAYS[1], WAYS[3]]) };
        let Ok(place) = window.clone().acquire_owned().await else { break };
        let request = connection.send_request(message(way, number)?);
        let ledger = ledger.clone();
        if random.once_in(8) {
            request.on_receiving_result(async move |outcome| {
                tokio::task::yield_now().await;
                ledger.settled(number, &outcome);
                drop(place);
                Ok(())
            })?;
        } else {
            tokio::spawn(async move {
                ledger.settled(number, &request.block_task().await);
                drop(place);
            });
        }
    }
    // Every place is back when every answer is there.
    let _ = window.acquire_many(WINDOW).await;
    Ok(())
}

/// A request that never gets an answer.
pub(super) fn stuck_request() -> Result<UntypedMessage> {
    UntypedMessage::new(STUCK, Value::Null)
}

fn message(method: &str, number: u64) -> Result<UntypedMessage> {
    UntypedMessage::new(method, json!({ "n": number, "text": "x".repeat(usize::try_from(number % 200).unwrap_or(0)) }))
}
