//! The agent's half: serves sessions of version 2. And what both sides know of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use greenroom::{ConnectionTo, Error, HasPeer, Responder, Result, Role, UntypedMessage};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::yield_now;

use super::super::ledger::Ledger;

/// Things that are said again when a session is resumed.
const REPLAY: u64 = 6;

/// A session of this soak, as both sides know it.
pub(super) struct Session {
    /// What the agent says in it.
    pub(super) said: Arc<Ledger>,
    /// What the client wants in it: prompts and options.
    pub(super) wanted: Arc<Ledger>,
    /// Turns of which the client has seen the end.
    pub(super) ended: watch::Sender<u64>,
    /// How often the agent was told to cancel.
    pub(super) cancelled: AtomicU64,
    /// Whether prompts are worked on. Turns that go on see that it is closed.
    open: AtomicBool,
    /// Turns that have not ended.
    turns: watch::Sender<u64>,
    /// One turn at a time.
    turn: tokio::sync::Mutex<()>,
}

impl Session {
    fn new(id: &str) -> Self {
        Self {
            said: Arc::new(Ledger::new(format!("session {id} of version 2"))),
            wanted: Arc::new(Ledger::new(format!("requests of session {id}"))),
            ended: watch::Sender::new(0),
            cancelled: AtomicU64::new(0),
            open: AtomicBool::new(true),
            turns: watch::Sender::new(0),
            turn: tokio::sync::Mutex::new(()),
        }
    }
}

/// Every session that was ever opened.
#[derive(Clone, Default)]
pub(super) struct Sessions {
    all: Arc<Mutex<HashMap<String, Arc<Session>>>>,
}

impl Sessions {
    pub(super) fn books(&self) -> Vec<Arc<Ledger>> {
        self.all.lock().values().flat_map(|session| [session.said.clone(), session.wanted.clone()]).collect()
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Session>> {
        self.all.lock().get(id).cloned()
    }

    fn add(&self) -> String {
        let mut all = self.all.lock();
        let id = format!("s{}", all.len());
        all.insert(id.clone(), Arc::new(Session::new(&id)));
        id
    }

    /// Handles a request of the client, or gives it back. Whatever is cut off has not begun.
    pub(super) async fn serve<C: Role + HasPeer<C>>(
        &self,
        request: UntypedMessage,
        responder: Responder,
        connection: &ConnectionTo<C>,
    ) -> Result<Option<(UntypedMessage, Responder)>> {
        let id = request.params["sessionId"].as_str().unwrap_or_default().to_owned();
        let session = self.get(&id);
        let work = || Work { id: id.clone(), session: session.clone().unwrap_or_else(|| Arc::new(Session::new(""))) };
        match (request.method.as_str(), session.is_some()) {
            ("initialize", _) => {
                yield_now().await;
                let info = json!({ "name": "chaos", "version": "1" });
                responder.respond(json!({ "protocolVersion": 2, "info": info, "capabilities": { "session": {} } }))?;
            }
            ("session/new", _) | ("session/fork", true) => {
                yield_now().await;
                responder.respond(json!({ "sessionId": self.add() }))?;
            }
            ("session/resume", true) => {
                yield_now().await;
                work().replay(connection)?;
                responder.respond(json!({}))?;
            }
            ("session/prompt", true) => {
                let text = request.params["prompt"][0]["text"].as_str().unwrap_or_default();
                let (number, steps) = text.split_once(' ').ok_or_else(Error::invalid_params)?;
                let (number, steps) = (parsed(number)?, parsed(steps)?);
                let work = work();
                work.session.wanted.arrived(number);
                yield_now().await;
                responder.respond(json!({ "messageId": number.to_string() }))?;
                let worker = connection.clone();
                work.session.turns.send_modify(|turns| *turns += 1);
                connection.spawn(async move { work.turn(steps, &worker).await })?;
            }
            ("session/set_config_option", true) => {
                let chosen = request.params["value"].as_str().unwrap_or_default();
                work().session.wanted.arrived(parsed(chosen)?);
                yield_now().await;
                let options = json!([{ "value": chosen, "name": chosen }]);
                let option = json!({
                    "configId": "n", "name": "Number", "type": "select", "currentValue": chosen, "options": options,
                });
                responder.respond(json!({ "configOptions": [option] }))?;
            }
            ("session/close", true) => {
                yield_now().await;
                let (work, worker) = (work(), connection.clone());
                work.session.open.store(false, Ordering::SeqCst);
                connection.spawn(async move {
                    work.farewell(&worker).await?;
                    responder.respond(json!({}))
                })?;
            }
            _ => return Ok(Some((request, responder))),
        }
        Ok(None)
    }

    /// Handles a notification of the client; false when it is not about sessions.
    pub(super) fn note(&self, notification: &UntypedMessage) -> bool {
        if notification.method != "session/cancel" {
            return false;
        }
        if let Some(session) = self.get(notification.params["sessionId"].as_str().unwrap_or_default()) {
            session.cancelled.fetch_add(1, Ordering::SeqCst);
        }
        true
    }
}

fn parsed(text: &str) -> Result<u64> {
    text.parse().map_err(|_| Error::invalid_params().data("a number"))
}

/// What the agent does in one session.
struct Work {
    id: String,
    session: Arc<Session>,
}

impl Work {
    /// One turn. Its last word is that the session is idle, and why.
    async fn turn<C: Role + HasPeer<C>>(&self, steps: u64, connection: &ConnectionTo<C>) -> Result<()> {
        let _turn = self.session.turn.lock().await;
        let cancels = || self.session.cancelled.load(Ordering::SeqCst);
        let before = cancels();
        self.say(connection, json!({ "sessionUpdate": "state_update", "state": "running" }))?;
        let mut reason = "end_turn";
        for step in 0..steps {
            if cancels() > before || !self.session.open.load(Ordering::SeqCst) {
                reason = "cancelled";
                break;
            }
            if step % 9 == 4 {
                self.say(connection, json!({ "sessionUpdate": "state_update", "state": "requires_action" }))?;
                self.ask(connection).await?;
            } else {
                self.say(connection, chunk(step))?;
            }
            if step % 5 == 3 {
                yield_now().await;
            }
        }
        let end = json!({ "sessionUpdate": "state_update", "state": "idle", "stopReason": reason });
        self.say(connection, end)?;
        self.session.turns.send_modify(|turns| *turns -= 1);
        Ok(())
    }

    /// Says again what was said, and the state.
    fn replay<C: Role + HasPeer<C>>(&self, connection: &ConnectionTo<C>) -> Result<()> {
        self.session.open.store(true, Ordering::SeqCst);
        (0..REPLAY).try_for_each(|step| self.say(connection, chunk(step)))?;
        // A state, and not the end of a turn: it has no reason.
        self.say(connection, json!({ "sessionUpdate": "state_update", "state": "idle" }))
    }

    /// The last words before a session is closed, when all of its turns have ended.
    async fn farewell<C: Role + HasPeer<C>>(&self, connection: &ConnectionTo<C>) -> Result<()> {
        // The sender lives in the session, so waiting cannot fail.
        let _ = self.session.turns.subscribe().wait_for(|turns| *turns == 0).await;
        self.say(connection, chunk(0))
    }

    fn say<C: Role + HasPeer<C>>(&self, connection: &ConnectionTo<C>, update: Value) -> Result<()> {
        let number = self.session.said.sending(false);
        let params = json!({ "sessionId": self.id, "update": update, "_meta": { "n": number } });
        connection.send_notification(UntypedMessage::new("session/update", params)?)
    }

    async fn ask<C: Role + HasPeer<C>>(&self, connection: &ConnectionTo<C>) -> Result<()> {
        let number = self.session.said.sending(true);
        let option = json!({ "optionId": number.to_string(), "name": "Yes", "kind": "allow_once" });
        let params = json!({
            "sessionId": self.id, "title": "May I?", "options": [option], "_meta": { "n": number },
        });
        let request = UntypedMessage::new("session/request_permission", params)?;
        let answer = connection.send_request(request).block_task().await;
        self.session.said.settled(number, &answer.map(|answer| decided(&answer, number)));
        Ok(())
    }
}

fn chunk(step: u64) -> Value {
    let content = json!({ "type": "text", "text": "x".repeat(usize::try_from(step).unwrap_or(0)) });
    json!({ "sessionUpdate": "agent_message_chunk", "messageId": "m", "content": content })
}

/// The number that a decision is about. One that was cancelled is a decision too.
fn decided(answer: &Value, number: u64) -> Value {
    match answer["outcome"]["optionId"].as_str() {
        Some(chosen) => json!({ "n": chosen.parse::<u64>().ok() }),
        None if answer["outcome"]["outcome"] == "cancelled" => json!({ "n": number }),
        None => answer.clone(),
    }
}
