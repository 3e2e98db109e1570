//! The client's half: one conversation, and the handlers of the connection that all of them share.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use greenroom::schema::v2;
use greenroom::{Agent, Error, Handled, Responder, Result, V2ConnectionTo, V2Session};
use serde_json::{Value, json};
use tokio::task::yield_now;

use super::super::ledger::is_interrupted;
use super::super::random::Random;
use super::agent::{Session, Sessions};

type Passed = Handled<(v2::UpdateSessionNotification, V2ConnectionTo<Agent>)>;

impl Sessions {
    /// Notes an update of a conversation; others are somebody else's.
    pub(super) async fn updated(
        &self,
        update: v2::UpdateSessionNotification,
        cx: V2ConnectionTo<Agent>,
    ) -> Result<Passed> {
        let Some(session) = self.get(&update.session_id.0) else {
            return Ok(Handled::No { message: (update, cx), retry: false });
        };
        let number = number_in(update.meta.as_ref());
        session.said.arrived(number);
        if let v2::SessionUpdate::StateUpdate(v2::StateUpdate::Idle(idle)) = update.update
            && idle.stop_reason.is_some()
        {
            session.ended.send_modify(|ended| *ended += 1);
        }
        if number.is_multiple_of(7) {
            yield_now().await;
        }
        Ok(Handled::Yes)
    }

    /// Decides about a permission request: at once, later, or never before it is cancelled.
    pub(super) async fn decide(
        &self,
        request: &v2::RequestPermissionRequest,
        responder: Responder<v2::RequestPermissionResponse>,
        cx: &V2ConnectionTo<Agent>,
    ) -> Result<()> {
        let number = number_in(request.meta.as_ref());
        let session = self.get(&request.session_id.0).ok_or_else(Error::invalid_params)?;
        session.said.arrived(number);
        let chosen = v2::SelectedPermissionOutcome::new(number.to_string());
        let answer = v2::RequestPermissionResponse::new(v2::RequestPermissionOutcome::Selected(chosen));
        if number.is_multiple_of(2) {
            yield_now().await;
            // Cancelling may have answered it already.
            let _ = responder.respond(answer);
            return Ok(());
        }
        cx.spawn(async move {
            for _ in 0..number % 16 {
                yield_now().await;
            }
            let _ = responder.respond(answer);
            Ok(())
        })
    }
}

fn number_in(meta: Option<&v2::Meta>) -> u64 {
    meta.and_then(|meta| meta.get("n")).and_then(Value::as_u64).unwrap_or(u64::MAX)
}

/// Has turns in sessions until the agent has said `messages` things.
pub(super) async fn converse(
    connection: V2ConnectionTo<Agent>,
    sessions: Sessions,
    messages: u64,
    seed: u64,
) -> Result<()> {
    let mut random = Random::new(seed);
    let mut talk = Talk::open(&connection, &sessions).await?;
    let mut before = 0;
    while before + talk.known.said.sent() < messages {
        match random.below(12) {
            0 => talk.resume().await?,
            1 => {
                // A turn may be running: it ends before the close is answered.
                talk.prompt(&mut random).await?;
                talk.close().await?;
                talk.resume().await?;
            }
            2 => {
                talk.close().await?;
                before += talk.known.said.sent();
                talk = talk.fork(&sessions).await?;
            }
            3 | 4 => talk.option().await?,
            _ => {
                talk.prompt(&mut random).await?;
                talk.wait().await;
            }
        }
    }
    talk.close().await
}

/// One session, as its user sees it.
struct Talk {
    session: V2Session<Agent>,
    known: Arc<Session>,
    /// Prompts that were accepted.
    accepted: u64,
    /// How often work was cancelled.
    cancelled: u64,
}

impl Talk {
    async fn open(connection: &V2ConnectionTo<Agent>, sessions: &Sessions) -> Result<Self> {
        let opened = persist(|| connection.build_session("/").start_session().block_task()).await?;
        Self::new(opened.into_session(), sessions)
    }

    fn new(session: V2Session<Agent>, sessions: &Sessions) -> Result<Self> {
        let known = sessions.get(&session.session_id().0).ok_or_else(Error::internal_error)?;
        Ok(Self { session, known, accepted: 0, cancelled: 0 })
    }

    /// Goes on in a copy.
    #[cfg(feature = "unstable_session_fork")]
    async fn fork(&self, sessions: &Sessions) -> Result<Self> {
        let (connection, id) = (self.session.connection(), self.session.session_id());
        let opened = persist(|| connection.fork_session(id.clone(), "/").start_session().block_task()).await?;
        Self::new(opened.into_session(), sessions)
    }

    /// Goes on in a new one.
    #[cfg(not(feature = "unstable_session_fork"))]
    async fn fork(&self, sessions: &Sessions) -> Result<Self> {
        Self::open(self.session.connection(), sessions).await
    }

    /// Whatever is replayed comes before the answer.
    async fn resume(&mut self) -> Result<()> {
        let (connection, id) = (self.session.connection(), self.session.session_id());
        let opened = persist(|| connection.resume_session(id.clone(), "/").start_session().block_task()).await?;
        self.session = opened.into_session();
        self.all_was_heard("a resume was answered");
        Ok(())
    }

    /// Sends some prompts at once, and may cancel the work behind any of them. Each has one outcome.
    async fn prompt(&mut self, random: &mut Random) -> Result<()> {
        let mut prompts = Vec::new();
        for _ in 0..=random.below(3) {
            let number = self.known.wanted.sending(true);
            let steps = 1 + random.below(20);
            prompts.push((number, self.session.send_prompt(format!("{number} {steps}"))));
            if random.once_in(6) {
                self.session.cancel_active_work()?;
                self.cancelled += 1;
            }
        }
        for (number, prompt) in prompts {
            let outcome = prompt.block_task().await;
            self.accepted += u64::from(outcome.is_ok());
            let answer = outcome.map(|answer| json!({ "n": answer.message_id.0.parse::<u64>().ok() }));
            self.known.wanted.settled(number, &answer);
            if random.once_in(6) {
                self.session.cancel_active_work()?;
                self.cancelled += 1;
            }
        }
        Ok(())
    }

    /// Waits for the ends of all turns.
    async fn wait(&self) {
        // The sender lives in `known`, so waiting cannot fail.
        let _ = self.known.ended.subscribe().wait_for(|ended| *ended >= self.accepted).await;
        self.all_was_heard("a turn ended");
    }

    async fn option(&self) -> Result<()> {
        let number = self.known.wanted.sending(true);
        let value = v2::SessionConfigOptionValue::Id { value: number.to_string().into() };
        let outcome = self.session.set_config_option("n", value).block_task().await;
        let outcome = outcome.and_then(|answer| {
            let options = serde_json::to_value(answer.config_options).map_err(Error::into_internal_error)?;
            Ok(json!({ "n": options[0]["currentValue"].as_str().and_then(|text| text.parse::<u64>().ok()) }))
        });
        self.known.wanted.settled(number, &outcome);
        Ok(())
    }

    /// The ends of the turns and the last words come before the answer.
    async fn close(&self) -> Result<()> {
        persist(|| self.session.close().block_task()).await?;
        self.all_was_heard("a session was closed");
        let told = self.known.cancelled.load(Ordering::SeqCst);
        if told != self.cancelled {
            self.known.wanted.wrong(format!("{told} of {} cancellations came", self.cancelled));
        }
        Ok(())
    }

    fn all_was_heard(&self, when: &str) {
        let ended = *self.known.ended.borrow();
        if ended != self.accepted {
            self.known.wanted.wrong(format!("{when}, with {ended} ends for {} prompts", self.accepted));
        }
        if !self.known.said.is_complete() {
            self.known.said.wrong(format!("{when} before everything that comes before it was heard"));
        }
    }
}

/// Asks again as often as the agent's handler is cut off: then it has not begun.
async fn persist<T, F: Future<Output = Result<T>>>(mut ask: impl FnMut() -> F) -> Result<T> {
    loop {
        match ask().await {
            Err(error) if is_interrupted(&error) => {}
            outcome => return outcome,
        }
    }
}
