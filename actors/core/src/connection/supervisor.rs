//! The supervisor of one connection: starts its actors, restarts them, ends the connection in
//! order.
//!
//! Owns: the children, the guard that cleans up however this actor dies. Supervised by: whoever
//! started the connection, or nobody. Children and what their death means: see the table in
//! `design §6`; a budget that is spent fails the connection.
//! It never waits for I/O, user code or another actor: what takes time comes back as a message.

use std::sync::Arc;

use greenroom_protocol::{Error, LocalError, Origin};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::{Mutex, watch};
use tokio::time::Duration;

use super::driver::FinishDriver;
use super::idleness::{Timer, demand, timer};
use super::last_words::{GRACE, LastWords};
use super::pending::PendingItem;
use super::reader::StopInput;
use super::shared::Shared;
use super::tasks::TaskSet;
use crate::handlers::gone;
use crate::mcp_server::supervised;
use crate::runtime::{Child, Children, Death, Live, Mailbox, Outcome, RestartPolicy, death_of};
use crate::session::SessionsSupervisor;
use crate::termination::{Cause, ConnectionTermination};

/// How the connection ended, for whoever drives it.
pub(crate) type End = Option<Result<(), Error>>;

/// What the supervisor is told.
#[derive(Debug)]
pub(crate) enum ConnectionMessage {
    /// The back-off of child number `.0` is over.
    Restart(usize),
    /// There is something to do for child number `.0`, which ended because there was not.
    Wanted(usize),
    /// Time to look which actors have nothing to do.
    Passivate,
    /// End the connection for this reason.
    Fail(ConnectionTermination),
    /// The end of the input was worked off.
    InputEnded(Option<Error>),
    /// The grace time is over.
    GraceOver,
    /// There is a session, and perhaps nobody who supervises it.
    SessionOpened,
    /// There is an MCP server, and perhaps nobody who supervises it.
    #[cfg_attr(not(feature = "unstable_mcp_over_acp"), expect(dead_code, reason = "only attached servers are told"))]
    ServerOpened,
}

#[cfg(feature = "cluster")]
impl ractor::Message for ConnectionMessage {}

/// Which child is which.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seats {
    pub(crate) writer: Option<usize>,
    pub(crate) outgoing: usize,
    pub(crate) driver: Option<usize>,
}

/// Everything that a connection consists of.
pub(crate) struct Kit {
    pub(crate) shared: Arc<Shared>,
    pub(crate) children: Children,
    pub(crate) seats: Seats,
    /// How often the supervisor of the sessions may die.
    pub(crate) restart: RestartPolicy,
    /// How long an actor has nothing to do before it ends.
    pub(crate) passivate_after: Duration,
    pub(crate) tasks: TaskSet,
    pub(crate) pending: Mailbox<PendingItem>,
    pub(crate) finish_driver: Arc<FinishDriver>,
    /// Ends the input when the driver is done.
    pub(crate) stop_input: StopInput,
    pub(crate) last_words: LastWords,
    /// Closes what no other owner closes, for example the other tree's mailbox.
    pub(crate) on_end: Box<dyn Fn() + Send + Sync>,
    pub(crate) end: watch::Sender<End>,
    /// Whether the end of the input ends the connection.
    pub(crate) auto_finish: bool,
}

/// Owns the guard. `ractor` sends an actor's state to its supervisor inside of the event that tells
/// its death; the guard must not depend on when that supervisor, which may be any actor of the
/// embedding program, looks at the event. So it is no state: it is dropped with the actor itself.
#[derive(Default)]
pub(crate) struct ConnectionSupervisor {
    /// Never contended: an actor does one thing at a time.
    guard: Mutex<Option<Guard>>,
}

/// Everything that the supervisor knows. Its `Drop` is the only cleanup, because it is the only
/// thing that runs on every kind of death.
pub(crate) struct Guard {
    kit: Kit,
    timers: Vec<Timer>,
    /// Runs while there are actors that might have nothing to do.
    passivation: Option<Timer>,
    result: Option<Result<(), Error>>,
    input_ended: bool,
    sealed: bool,
    driver_ended: bool,
    has_sessions: bool,
    has_servers: bool,
    /// Set once the connection ends in order for this reason.
    failing: Option<ConnectionTermination>,
    broken: Option<Error>,
    _live: Live,
}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for ConnectionSupervisor {
    type Msg = ConnectionMessage;
    type State = ();
    type Arguments = Kit;

    async fn pre_start(&self, me: ActorRef<ConnectionMessage>, kit: Kit) -> Result<(), ActorProcessingErr> {
        let _ = kit.shared.supervisor.set(me.clone());
        kit.shared.node.started_as(me.get_cell());
        let live = kit.shared.live.enter();
        *self.guard.lock().await = Some(Guard {
            kit,
            timers: Vec::new(),
            passivation: None,
            result: None,
            input_ended: false,
            sealed: false,
            driver_ended: false,
            has_sessions: false,
            has_servers: false,
            failing: None,
            broken: None,
            _live: live,
        });
        Ok(())
    }

    async fn post_start(&self, me: ActorRef<ConnectionMessage>, _state: &mut ()) -> Result<(), ActorProcessingErr> {
        if let Some(guard) = &mut *self.guard.lock().await {
            guard.kit.children.start_all(&me.get_cell()).await?;
            guard.watch_idleness(&me);
            // Servers can be attached before there is anybody to tell.
            guard.start_servers(&me).await;
        }
        Ok(())
    }

    async fn handle(
        &self,
        me: ActorRef<ConnectionMessage>,
        message: ConnectionMessage,
        _state: &mut (),
    ) -> Result<(), ActorProcessingErr> {
        let mut guard = self.guard.lock().await;
        let Some(state) = &mut *guard else { return Ok(()) };
        // Boxed, because it happens rarely and an actor keeps room for its largest future.
        Box::pin(state.told(message, &me)).await;
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<ConnectionMessage>,
        event: SupervisionEvent,
        _state: &mut (),
    ) -> Result<(), ActorProcessingErr> {
        // Consumes the event first: it may hold the lease that a restart needs.
        if let Some(actor) = death_of(event)
            && let Some(state) = &mut *self.guard.lock().await
            && let Some(death) = state.kit.children.died(actor)
        {
            Box::pin(state.death(death, &me)).await;
        }
        Ok(())
    }
}

impl Guard {
    async fn told(&mut self, message: ConnectionMessage, me: &ActorRef<ConnectionMessage>) {
        match message {
            ConnectionMessage::Restart(child) => self.restart(child, me).await,
            ConnectionMessage::Wanted(child) => self.wanted(child, me).await,
            ConnectionMessage::Passivate => self.passivate(me),
            ConnectionMessage::Fail(termination) => self.fail(termination, me),
            ConnectionMessage::InputEnded(error) => self.input_ended(error, me),
            ConnectionMessage::GraceOver => self.grace_over(me),
            ConnectionMessage::SessionOpened => self.start_sessions(me).await,
            ConnectionMessage::ServerOpened => self.start_servers(me).await,
        }
    }

    async fn death(&mut self, death: Death, me: &ActorRef<ConnectionMessage>) {
        match death {
            Death::Restart(child, Duration::ZERO) => self.restart(child, me).await,
            Death::Restart(child, after) => self.later(after, me, ConnectionMessage::Restart(child)),
            Death::Ended(child, outcome) => self.ended(child, outcome, me),
            Death::GaveUp(child) => self.gave_up(child, me),
        }
    }

    async fn restart(&mut self, child: usize, me: &ActorRef<ConnectionMessage>) {
        let failure = self.kit.children.restart(child, &me.get_cell()).await;
        self.started(failure, me);
    }

    /// Starts a child that ended because it had nothing to do.
    async fn wanted(&mut self, child: usize, me: &ActorRef<ConnectionMessage>) {
        let failure = self.kit.children.wanted(child, &me.get_cell()).await;
        self.started(failure, me);
    }

    fn started(&mut self, failure: Option<Death>, me: &ActorRef<ConnectionMessage>) {
        self.watch_idleness(me);
        match failure {
            None => {}
            Some(Death::Restart(child, after)) => {
                self.later(after.max(Duration::from_millis(1)), me, ConnectionMessage::Restart(child))
            }
            Some(Death::Ended(child, outcome)) => self.ended(child, outcome, me),
            Some(Death::GaveUp(child)) => self.gave_up(child, me),
        }
    }

    /// Ends the actors that have nothing to do. No timer runs once all of them have ended: a connection
    /// that is not used costs no processor time.
    fn passivate(&mut self, me: &ActorRef<ConnectionMessage>) {
        let again = self.kit.children.passivate(self.kit.passivate_after, |child| demand(me, child));
        self.passivation = again.map(|after| timer(after, me, ConnectionMessage::Passivate));
    }

    fn watch_idleness(&mut self, me: &ActorRef<ConnectionMessage>) {
        let after = self.kit.passivate_after;
        if self.passivation.is_none() && after < Duration::MAX {
            self.passivation = Some(timer(after, me, ConnectionMessage::Passivate));
        }
    }

    /// Starts the supervisor of the sessions with the first of them.
    async fn start_sessions(&mut self, me: &ActorRef<ConnectionMessage>) {
        let Some(node) = self.kit.shared.sessions.node() else { return };
        if self.has_sessions || self.result.is_some() {
            return;
        }
        self.has_sessions = true;
        let shared = self.kit.shared.clone();
        let child = Child::new(node, self.kit.restart, move |supervisor| {
            let sessions = SessionsSupervisor { connection: shared.clone() };
            Box::pin(async move {
                Actor::spawn_linked(None, sessions, (), supervisor).await.map(|(actor, _)| actor.get_cell())
            })
        });
        self.start_branch(child, me).await;
    }

    /// Starts the supervisor of the attached MCP servers with the first of them.
    async fn start_servers(&mut self, me: &ActorRef<ConnectionMessage>) {
        let shared = self.kit.shared.clone();
        let Some(child) = supervised(&shared, self.kit.restart) else { return };
        if self.has_servers || self.result.is_some() {
            return;
        }
        self.has_servers = true;
        self.start_branch(child, me).await;
    }

    async fn start_branch(&mut self, child: Child, me: &ActorRef<ConnectionMessage>) {
        if let Err(error) = self.kit.children.start(child, &me.get_cell()).await {
            let error = LocalError::new(Origin::Transport, format!("a supervisor did not start: {error}")).into();
            self.fail(ConnectionTermination::TransportError(error), me);
        }
    }

    fn ended(&mut self, child: usize, outcome: Outcome, me: &ActorRef<ConnectionMessage>) {
        let seats = self.kit.seats;
        let ends_output = seats.writer.unwrap_or(seats.outgoing) == child;
        let is_driver = seats.driver == Some(child);
        match outcome {
            Outcome::Finished if ends_output => {
                self.sealed = true;
                if seats.driver.is_some() && !self.driver_ended {
                    // Without a foreground and without a failure, the peer is done, and its work is
                    // waited for.
                    if self.kit.auto_finish && self.failing.is_none() {
                        self.kit.finish_driver.join();
                    } else {
                        self.kit.finish_driver.finish();
                    }
                } else {
                    self.conclude(me);
                }
            }
            Outcome::Finished if is_driver => {
                self.driver_ended = true;
                (self.kit.stop_input)();
                if self.sealed {
                    self.conclude(me);
                }
            }
            Outcome::Finished => {}
            Outcome::Failed(error) => {
                if is_driver {
                    self.driver_ended = true;
                    (self.kit.stop_input)();
                }
                // How the driver ended (a process's exit status, say) explains a broken pipe.
                if is_driver || self.broken.is_none() {
                    self.broken = Some(error);
                }
                // What the peer sent before it broke is still in the pipe: let the reader find
                // the end of it first.
                if self.input_ended || self.sealed {
                    self.conclude(me)
                } else if self.kit.last_words.begin() {
                    self.later(GRACE, me, ConnectionMessage::GraceOver)
                }
            }
        }
    }

    /// Time to write what was accepted, or to hear the end of the input of a broken transport. Only
    /// the second is given again, while there is something to hear.
    fn grace_over(&mut self, me: &ActorRef<ConnectionMessage>) {
        let listening = self.failing.is_none() && !self.input_ended && !self.sealed;
        if listening && self.kit.last_words.still_come() {
            self.later(GRACE, me, ConnectionMessage::GraceOver);
        } else {
            self.conclude(me);
        }
    }

    fn gave_up(&mut self, child: usize, me: &ActorRef<ConnectionMessage>) {
        let path = self.kit.children.node(child).path().to_owned();
        tracing::error!(actor = path, "an actor died too often: the connection ends");
        let error = Error::internal_error().with_origin(Origin::Transport).data(serde_json::json!({
            "reason": "an actor of the connection died too often",
            "actor": self.kit.children.node(child).kind(),
        }));
        self.fail(ConnectionTermination::TransportError(error), me);
        let seats = self.kit.seats;
        if seats.writer == Some(child) || seats.outgoing == child {
            // Nothing can be flushed without it.
            self.conclude(me);
        }
    }

    fn input_ended(&mut self, error: Option<Error>, me: &ActorRef<ConnectionMessage>) {
        self.input_ended = true;
        match error {
            Some(error) => {
                if self.broken.is_none() {
                    self.broken = Some(error);
                }
                self.conclude(me);
            }
            None if self.broken.is_some() => self.conclude(me),
            None => {}
        }
    }

    /// Ends the connection in order: open requests are answered, pending ones fail, what was
    /// accepted is flushed for a bounded time.
    fn fail(&mut self, termination: ConnectionTermination, me: &ActorRef<ConnectionMessage>) {
        if self.failing.is_some() || self.result.is_some() {
            return;
        }
        let shared = self.kit.shared.clone();
        let error = termination.error().cloned();
        self.failing = Some(termination.clone());
        shared.terminate(termination.clone());
        let _ = self.kit.pending.send(PendingItem::FailAll(Cause::Terminated(termination)));
        let reason = gone();
        // What still waits for its handler is answered here: running it would be for nothing.
        shared.begin_drain();
        shared.answer_open_calls(&reason);
        shared.finish_behind_answers();
        if self.broken.is_none() {
            self.broken = error;
        }
        if self.sealed { self.conclude(me) } else { self.later(GRACE, me, ConnectionMessage::GraceOver) }
    }

    /// The end: everything else happens in `Drop`.
    fn conclude(&mut self, me: &ActorRef<ConnectionMessage>) {
        if self.result.is_none() {
            let peer_gone = self.broken.as_ref().is_some_and(|error| error.origin() == Origin::PeerGone);
            let clean = self.failing.is_none() && peer_gone && self.input_ended;
            self.result = Some(match self.broken.take() {
                Some(error) if !clean => Err(error),
                _ => Ok(()),
            });
        }
        me.stop(None);
    }

    fn later(&mut self, after: Duration, me: &ActorRef<ConnectionMessage>, message: ConnectionMessage) {
        self.timers.retain(|timer| !timer.is_finished());
        self.timers.push(timer(after, me, message));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let shared = &self.kit.shared;
        let result = self.result.take().unwrap_or_else(|| {
            Err(Error::internal_error().with_origin(Origin::Terminated).data("the connection's supervisor died"))
        });
        shared.terminate(match (&result, &self.failing) {
            (_, Some(termination)) => termination.clone(),
            (Ok(()), None) if self.kit.auto_finish => ConnectionTermination::IncomingClosed,
            (Ok(()), None) => ConnectionTermination::LocalShutdown,
            (Err(error), None) if error.origin() == Origin::Terminated => ConnectionTermination::Dropped,
            (Err(error), None) => ConnectionTermination::TransportError(error.clone()),
        });
        shared.close_all();
        self.kit.tasks.lock().abort_all();
        (self.kit.on_end)();
        self.kit.children.kill_all();
        for timer in self.timers.iter().chain(&self.passivation) {
            timer.abort();
        }
        self.kit.end.send_replace(Some(result));
    }
}
