//! Lanes of a soak: streams of the agent for which the client has a handler only now and then. What
//! comes in between waits for the next one.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use greenroom::{
    Agent, ConnectionTo, Dispatch, Error, HandleDispatchFrom, Handled, HasPeer, Responder, Result, Role, UntypedMessage,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::ledger::{Ledger, is_interrupted};
use super::random::Random;

/// Asks the agent for a stream.
const STREAM: &str = "lane/stream";

/// What a lane carries: notifications of sessions wait by themselves, requests because a handler
/// says so.
const NOTE: &str = "lane/note";
const ASK: &str = "lane/ask";

/// Messages of one stream. All lanes together stay far below what a connection keeps.
const LENGTH: u64 = 40;

/// The books of every lane, known to both sides by the lane's number.
#[derive(Clone, Default)]
pub(super) struct Lanes {
    all: Arc<Mutex<Vec<Arc<Ledger>>>>,
}

impl Lanes {
    /// Whether a message is one of a lane.
    pub(super) fn takes(message: &UntypedMessage) -> bool {
        matches!(message.method.as_str(), NOTE | ASK)
    }

    /// The books of all lanes.
    pub(super) fn books(&self) -> Vec<Arc<Ledger>> {
        self.all.lock().clone()
    }

    fn add(&self) -> (usize, Arc<Ledger>) {
        let mut all = self.all.lock();
        let ledger = Arc::new(Ledger::new(format!("lane {}", all.len())));
        all.push(ledger.clone());
        (all.len() - 1, ledger)
    }

    /// The agent's half: handles a request for a stream, or gives it back.
    pub(super) fn serve<C: Role + HasPeer<C>>(
        &self,
        request: UntypedMessage,
        responder: Responder,
        connection: &ConnectionTo<C>,
    ) -> Result<Option<(UntypedMessage, Responder)>> {
        let lane = request.params["lane"].as_u64().and_then(|lane| usize::try_from(lane).ok());
        let known = lane.and_then(|lane| Some((lane, self.all.lock().get(lane)?.clone())));
        match known {
            Some((lane, ledger)) if request.method == STREAM => {
                let sender = connection.clone();
                connection.spawn(async move {
                    stream(&sender, lane, ledger).await?;
                    responder.respond(Value::Null)
                })?;
                Ok(None)
            }
            _ => Ok(Some((request, responder))),
        }
    }
}

/// Sends one stream. Requests of it are not waited for: the next handler may be far away.
async fn stream<C: Role + HasPeer<C>>(connection: &ConnectionTo<C>, lane: usize, ledger: Arc<Ledger>) -> Result<()> {
    for step in 0..LENGTH {
        let asks = step % 8 == 5;
        let number = ledger.sending(asks);
        let params = json!({ "sessionId": format!("lane-{lane}"), "n": number });
        if asks {
            let request = connection.send_request(UntypedMessage::new(ASK, params)?);
            let ledger = ledger.clone();
            request.on_receiving_result(async move |outcome| {
                ledger.settled(number, &outcome);
                Ok(())
            })?;
        } else {
            connection.send_notification(UntypedMessage::new(NOTE, params)?)?;
        }
        if step % 3 == 2 {
            yield_now().await;
        }
    }
    Ok(())
}

/// Takes what one lane carries, while it is registered.
struct Taker {
    lane: String,
    ledger: Arc<Ledger>,
}

impl<C: Role> HandleDispatchFrom<C> for Taker {
    async fn handle_dispatch_from(&mut self, message: Dispatch, _: ConnectionTo<C>) -> Result<Handled<Dispatch>> {
        let (Dispatch::Request(asked, _) | Dispatch::Notification(asked)) = &message else {
            return Ok(Handled::No { message, retry: false });
        };
        if !Lanes::takes(asked) || asked.params["sessionId"] != self.lane {
            return Ok(Handled::No { message, retry: false });
        }
        let number = asked.params["n"].as_u64().unwrap_or(u64::MAX);
        self.ledger.arrived(number);
        if number.is_multiple_of(4) {
            yield_now().await;
        }
        if let Dispatch::Request(_, responder) = message {
            responder.respond(json!({ "n": number }))?;
        }
        Ok(Handled::Yes)
    }
}

/// The client's half: streams until the lane has carried `messages`, with a handler that comes and
/// goes.
pub(super) async fn drive(connection: ConnectionTo<Agent>, lanes: Lanes, messages: u64, seed: u64) -> Result<()> {
    let mut random = Random::new(seed);
    let (lane, ledger) = lanes.add();
    let taker = || Taker { lane: format!("lane-{lane}"), ledger: ledger.clone() };
    while ledger.sent() < messages {
        let request = UntypedMessage::new(STREAM, json!({ "lane": lane }))?;
        let mut streaming = pin!(connection.send_request(request).block_task());
        let outcome = loop {
            // One look at the answer: the handler comes and goes meanwhile.
            if let Ok(outcome) = timeout(Duration::ZERO, &mut streaming).await {
                break outcome;
            }
            pause(&mut random).await;
            let guard = connection.add_dynamic_handler(taker())?;
            pause(&mut random).await;
            drop(guard);
        };
        // A request that was cut off began no stream.
        outcome.map(drop).or_else(|error: Error| if is_interrupted(&error) { Ok(()) } else { Err(error) })?;
    }
    let _last = connection.add_dynamic_handler(taker())?;
    while !ledger.is_complete() {
        sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

async fn pause(random: &mut Random) {
    for _ in 0..random.below(12) {
        yield_now().await;
    }
}
