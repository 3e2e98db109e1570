//! Sessions in a soak: the agent streams numbered updates and asks for permissions, the client reads
//! them in the session's own order.

use std::collections::HashMap;
use std::sync::Arc;

use greenroom::runtime::Node;
use greenroom::util::MatchDispatch;
use greenroom::{
    ActiveSession, Agent, ConnectionTo, Dispatch, Error, HasPeer, Responder, Result, Role, SessionMessage,
    UntypedMessage,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::ending::Reader;
use super::ledger::{Ledger, is_interrupted};
use super::monkey::{FaultKind, Monkey};
use super::random::Random;
use super::report::Report;

/// The kind of a session's actor.
const COORDINATOR: &str = "session";

const NEW: &str = "session/new";
const PROMPT: &str = "session/prompt";
const CANCEL: &str = "session/cancel";
const UPDATE: &str = "session/update";
const PERMISSION: &str = "session/request_permission";

/// A session of this soak, as both sides know it.
struct Session {
    /// What the agent says in it.
    ledger: Arc<Ledger>,
    /// How often the client cancelled the session's work.
    cancelled: Mutex<u64>,
}

/// The agent's half: opens sessions and works on prompts.
#[derive(Clone, Default)]
pub(super) struct Sessions {
    all: Arc<Mutex<HashMap<String, Arc<Session>>>>,
}

impl Sessions {
    /// Whether a message is one that a session of the client takes.
    pub(super) fn takes(message: &UntypedMessage) -> bool {
        matches!(message.method.as_str(), UPDATE | PERMISSION)
    }

    /// The books of every session that was ever opened.
    pub(super) fn books(&self) -> Vec<Arc<Ledger>> {
        self.all.lock().values().map(|session| session.ledger.clone()).collect()
    }

    fn get(&self, id: &str) -> Result<Arc<Session>> {
        self.all.lock().get(id).cloned().ok_or_else(|| Error::invalid_params().data("no such session"))
    }

    /// Handles a request of the client, or gives it back.
    pub(super) async fn serve<C: Role + HasPeer<C>>(
        &self,
        request: UntypedMessage,
        responder: Responder,
        connection: &ConnectionTo<C>,
    ) -> Result<Option<(UntypedMessage, Responder)>> {
        match request.method.as_str() {
            NEW => {
                let id = {
                    let mut all = self.all.lock();
                    let id = format!("s{}", all.len());
                    let ledger = Arc::new(Ledger::new(format!("session {id}")));
                    all.insert(id.clone(), Arc::new(Session { ledger, cancelled: Mutex::default() }));
                    id
                };
                responder.respond(json!({ "sessionId": id }))?;
            }
            PROMPT => {
                // Whoever is cut off here has not begun the turn: its prompt fails.
                tokio::task::yield_now().await;
                let id = request.params["sessionId"].as_str().unwrap_or_default().to_owned();
                let steps = request.params["prompt"][0]["text"].as_str().and_then(|text| text.parse().ok());
                let turn = Turn {
                    session: self.get(&id)?,
                    id,
                    steps: steps.ok_or_else(|| Error::invalid_params().data("a number of steps"))?,
                };
                let worker = connection.clone();
                connection.spawn(async move {
                    let reason = turn.run(worker).await?;
                    responder.respond(json!({ "stopReason": reason }))
                })?;
            }
            _ => return Ok(Some((request, responder))),
        }
        Ok(None)
    }

    /// Handles a notification of the client; false when it is not about sessions.
    pub(super) fn note(&self, notification: &UntypedMessage) -> bool {
        if notification.method == CANCEL
            && let Ok(session) = self.get(notification.params["sessionId"].as_str().unwrap_or_default())
        {
            *session.cancelled.lock() += 1;
        }
        notification.method == CANCEL
    }
}

/// One turn of the agent.
struct Turn {
    session: Arc<Session>,
    id: String,
    steps: u64,
}

impl Turn {
    /// Says everything, and why the turn ended.
    async fn run<C: Role + HasPeer<C>>(&self, connection: ConnectionTo<C>) -> Result<&'static str> {
        let ledger = &self.session.ledger;
        let before = *self.session.cancelled.lock();
        for step in 0..self.steps {
            if *self.session.cancelled.lock() > before {
                return Ok("cancelled");
            }
            if step % 9 == 4 {
                let number = ledger.sending(true);
                let answer = connection.send_request(self.ask(number)?).block_task().await;
                ledger.settled(number, &answer.map(|answer| decided(&answer, number)));
            } else {
                let number = ledger.sending(false);
                connection.send_notification(self.say(number)?)?;
            }
            if step % 5 == 3 {
                tokio::task::yield_now().await;
            }
        }
        Ok("end_turn")
    }

    fn say(&self, number: u64) -> Result<UntypedMessage> {
        let content = json!({ "type": "text", "text": number.to_string() });
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
        UntypedMessage::new(UPDATE, json!({ "sessionId": self.id, "update": update }))
    }

    fn ask(&self, number: u64) -> Result<UntypedMessage> {
        let option = json!({ "optionId": number.to_string(), "name": "Yes", "kind": "allow_once" });
        let params = json!({
            "sessionId": self.id,
            "toolCall": { "toolCallId": number.to_string() },
            "options": [option],
        });
        UntypedMessage::new(PERMISSION, params)
    }
}

/// The number that a decision is about. One that was cancelled is a decision too.
fn decided(answer: &Value, number: u64) -> Value {
    match answer["outcome"]["optionId"].as_str() {
        Some(chosen) => json!({ "n": chosen.parse::<u64>().ok() }),
        None if answer["outcome"]["outcome"] == "cancelled" => json!({ "n": number }),
        None => answer.clone(),
    }
}

/// The client's half: opens a session and has turns in it until the agent has said `messages` things.
/// Gives the reader of the session, with nothing left to read.
pub(super) async fn converse(
    connection: ConnectionTo<Agent>,
    sessions: Sessions,
    messages: u64,
    seed: u64,
) -> Result<Option<Reader>> {
    let mut random = Random::new(seed);
    let mut session = open(&connection, &mut random).await?;
    let known = sessions.get(&session.session_id().0)?;
    while known.ledger.sent() < messages {
        let steps = 1 + random.below(30);
        let cancel = random.once_in(6).then(|| random.below(steps));
        session.send_prompt(steps)?;
        read_turn(&mut session, &known.ledger, cancel).await?;
        if !known.ledger.is_complete() {
            known.ledger.wrong("a turn ended before everything that belongs to it was read");
        }
    }
    Ok(Some(Box::pin(async move { session.read_update().await.map(|message| format!("{message:?}").into()) })))
}

/// A session that has to fail, and nothing else with it.
pub(super) struct Doomed {
    session: ActiveSession<'static, Agent>,
    coordinator: Vec<Arc<Node>>,
    ledger: Arc<Ledger>,
}

impl Doomed {
    /// Opens it. It has to be the connection's first session.
    pub(super) async fn open(connection: &ConnectionTo<Agent>, sessions: &Sessions, seed: u64) -> Result<Self> {
        let session = open(connection, &mut Random::new(seed)).await?;
        let ledger = sessions.get(&session.session_id().0)?.ledger.clone();
        let coordinator = connection.tree().flatten().into_iter().filter(|node| node.kind() == COORDINATOR).collect();
        Ok(Self { session, coordinator, ledger })
    }

    /// Breaks its coordinator until the session has failed, and says what was done.
    pub(super) async fn fail(mut self, seed: u64) -> Report {
        let deadly = [FaultKind::Kill, FaultKind::Panic, FaultKind::Stop];
        let attack = Monkey::new(seed).kinds(deadly).attack(self.coordinator);
        let end = self.session.read_update().await;
        let mut report = attack.stop().await;
        report.failed_sessions = 1;
        let died = |error: &Error| error.data.as_ref().is_some_and(|data| data.to_string().contains("died too often"));
        if !end.as_ref().is_err_and(died) {
            self.ledger.wrong(format!("its end was {end:?}"));
        }
        report
    }
}

/// Reads up to the end of the turn. Cancels it behind this message, if there is one.
async fn read_turn(session: &mut ActiveSession<'static, Agent>, ledger: &Ledger, cancel: Option<u64>) -> Result<()> {
    let mut read = 0;
    loop {
        match session.read_update().await {
            Ok(SessionMessage::SessionMessage(message)) => take(message, ledger).await?,
            Ok(_stop) => return Ok(()),
            // The agent's handler was cut off: the turn did not begin.
            Err(error) if is_interrupted(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
        if cancel == Some(read) {
            session.cancel()?;
        }
        read += 1;
    }
}

/// Notes a message of the session, and decides what it asks for.
async fn take(message: Dispatch, ledger: &Ledger) -> Result<()> {
    let number = |text: &Value| text.as_str().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
    MatchDispatch::new(message)
        .if_notification(async |note: UntypedMessage| {
            ledger.arrived(number(&note.params["update"]["content"]["text"]));
            Ok(())
        })
        .await
        .if_request(async |request: UntypedMessage, responder: Responder| {
            let chosen = &request.params["options"][0]["optionId"];
            ledger.arrived(number(chosen));
            // Cancelling may have answered it already.
            let _ = responder.respond(json!({ "outcome": { "outcome": "selected", "optionId": chosen } }));
            Ok(())
        })
        .await
        .otherwise_ignore()
}

/// Opens a session, in one way or the other, as often as its request is cut off.
async fn open(connection: &ConnectionTo<Agent>, random: &mut Random) -> Result<ActiveSession<'static, Agent>> {
    loop {
        let builder = connection.build_session("/");
        if random.once_in(2) {
            match builder.block_task().start_session().await {
                Err(error) if is_interrupted(&error) => {}
                outcome => return outcome,
            }
        } else {
            let (give, started) = oneshot::channel();
            builder.on_session_start(async move |session| {
                let _ = give.send(session);
                Ok(())
            })?;
            // An agent that refused drops the callback.
            if let Ok(session) = started.await {
                return Ok(session);
            }
        }
    }
}
