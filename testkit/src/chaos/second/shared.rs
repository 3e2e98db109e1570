//! Sessions that several parts of the client use: whoever loads them gets everything from the start,
//! and the last one that lets go closes them.

use std::collections::HashMap;
use std::sync::Arc;

use greenroom::coordination::{SharedSession, SharedSessions};
use greenroom::runtime::Node;
use greenroom::schema::v2;
use greenroom::{Agent, ConnectionTo, Error, HasPeer, Responder, Result, Role, UntypedMessage, V2ConnectionTo};
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::yield_now;

use super::super::ending::Reader;
use super::super::ledger::Ledger;
use super::super::monkey::{FaultKind, Monkey};
use super::super::random::Random;
use super::super::report::Report;
use super::actors_of;

/// The kind of the actor that shares sessions.
const COORDINATION: &str = "coordination";

/// Where shared sessions work. Those of the coordination that has to fail work elsewhere.
pub(super) const FOLDER: &str = "/shared";

/// The session that is kept.
const LAST: &str = "last";

/// Sessions that are shared.
const SESSIONS: u64 = 3;

/// Updates of a session: as many are replayed as come later.
const HISTORY: u64 = 8;

/// Loads of each part of the client.
const LOADS: u64 = 12;

/// What the agent knows of a session: how often it was resumed, and whether it is open.
type Known = HashMap<String, (u64, bool)>;

/// The agent's half, and what is wrong.
#[derive(Clone)]
pub(super) struct Shared {
    known: Arc<Mutex<Known>>,
    books: Arc<Ledger>,
}

impl Default for Shared {
    fn default() -> Self {
        Self { known: Arc::default(), books: Arc::new(Ledger::new("shared sessions")) }
    }
}

impl Shared {
    pub(super) fn books(&self) -> Arc<Ledger> {
        self.books.clone()
    }

    /// Whether every session is closed but the one that is still read.
    pub(super) fn is_closed(&self) -> bool {
        self.known.lock().iter().all(|(session, (_, open))| !open || session == LAST)
    }

    /// Handles a request of the client, or gives it back. Never waits: what is cut off would have
    /// begun.
    pub(super) fn serve<C: Role + HasPeer<C>>(
        &self,
        request: UntypedMessage,
        responder: Responder,
        connection: &ConnectionTo<C>,
    ) -> Result<Option<(UntypedMessage, Responder)>> {
        let session = request.params["sessionId"].as_str().unwrap_or_default().to_owned();
        match request.method.as_str() {
            "session/resume" => {
                let round = {
                    let mut known = self.known.lock();
                    let (round, open) = known.entry(session.clone()).or_default();
                    if std::mem::replace(open, true) {
                        self.books.wrong(format!("{session} was resumed while it was open"));
                    }
                    *round += 1;
                    *round
                };
                let say = |line: u64| {
                    let content = json!({ "type": "text", "text": format!("{round}.{line}") });
                    let update =
                        json!({ "sessionUpdate": "agent_message_chunk", "messageId": "m", "content": content });
                    let params = json!({ "sessionId": session, "update": update });
                    connection.send_notification(UntypedMessage::new("session/update", params)?)
                };
                (0..HISTORY).try_for_each(say)?;
                responder.respond(json!({ "_meta": { "round": round } }))?;
                (HISTORY..2 * HISTORY).try_for_each(say)?;
            }
            "session/close" => {
                let was_open =
                    self.known.lock().get_mut(&session).is_some_and(|(_, open)| std::mem::replace(open, false));
                if !was_open {
                    self.books.wrong(format!("{session} was closed while it was not open"));
                }
                responder.respond(json!({}))?;
            }
            _ => return Ok(Some((request, responder))),
        }
        Ok(None)
    }

    /// One part of the client: loads sessions, reads some of what they say, lets go at any moment.
    /// Keeps the last one, for somebody who reads what never comes.
    pub(super) async fn view(self, sessions: SharedSessions, seed: u64) -> Result<Option<Reader>> {
        let mut random = Random::new(seed);
        for _ in 0..LOADS {
            let mut load = sessions.load(format!("shared-{}", random.below(SESSIONS)));
            if random.once_in(3) {
                for _ in 0..random.below(10) {
                    yield_now().await;
                }
                // Its session may be there already.
                drop(load);
                continue;
            }
            let mut session = (&mut load).await?;
            self.read(&mut session, HISTORY + random.below(HISTORY + 1)).await?;
        }
        let mut last = sessions.load(LAST).await?;
        self.read(&mut last, 2 * HISTORY).await?;
        Ok(Some(Box::pin(async move { last.next_update().await.map(|update| format!("{update:?}").into()) })))
    }

    async fn read(&self, session: &mut SharedSession, lines: u64) -> Result<()> {
        let round = session.response().meta.as_ref().map_or(0, |meta| meta["round"].as_u64().unwrap_or(0));
        for line in 0..lines {
            let update = session.next_update().await?;
            let expected = format!("{round}.{line}");
            if text(&update) != Some(expected.as_str()) {
                self.books.wrong(format!("{:?} instead of {expected}", text(&update)));
            }
        }
        Ok(())
    }
}

fn text(update: &v2::SessionUpdate) -> Option<&str> {
    match update {
        v2::SessionUpdate::AgentMessageChunk(chunk) => match &chunk.content {
            v2::ContentBlock::Text(text) => Some(&text.text),
            _ => None,
        },
        _ => None,
    }
}

/// A coordination that has to fail, and nothing else with it.
pub(super) struct Doomed {
    session: SharedSession,
    coordination: Vec<Arc<Node>>,
    books: Arc<Ledger>,
}

impl Doomed {
    /// Starts it. It has to be the connection's first.
    pub(super) async fn open(connection: &V2ConnectionTo<Agent>, shared: &Shared) -> Result<Self> {
        let sessions = connection.coordinate_sessions("/doomed")?;
        let mut session = sessions.load("doomed").await?;
        shared.read(&mut session, 2 * HISTORY).await?;
        // Nobody is left to close it.
        shared.known.lock().remove("doomed");
        let coordination = actors_of(&connection.tree(), COORDINATION);
        Ok(Self { session, coordination, books: shared.books() })
    }

    /// Breaks its actor until it has failed, and says what was done.
    pub(super) async fn fail(mut self, seed: u64) -> Report {
        let deadly = [FaultKind::Kill, FaultKind::Panic, FaultKind::Stop];
        let attack = Monkey::new(seed).kinds(deadly).attack(self.coordination);
        let end = self.session.next_update().await;
        let mut report = attack.stop().await;
        report.failed_sessions = 1;
        let died = |error: &Error| error.data.as_ref().is_some_and(|data| data.to_string().contains("died too often"));
        if !end.as_ref().is_err_and(died) {
            self.books.wrong(format!("the end of a coordination was {end:?}"));
        }
        report
    }
}
