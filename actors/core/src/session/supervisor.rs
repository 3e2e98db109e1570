//! Supervises the coordinators of one connection's sessions.
//!
//! Owns: nothing that must survive; the sessions are in the connection's table. Supervised by: the
//! connection. Starts with the first session.
//! When it dies: its coordinators die with it; restarted, it starts them again, and each goes on
//! where it was. When a coordinator dies: restarted as often as `ConnectionOptions::session_restart`
//! allows, then its session fails and no other.

use std::collections::HashMap;
use std::sync::Arc;

use greenroom_protocol::Error;
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::runtime::Handle;

use super::member::{Member, retire};
use super::table::SessionTable;
use crate::connection::Shared;
use crate::runtime::{Live, Outcome, Verdict, death_of};

/// What the supervisor is told.
pub(crate) enum SessionsMessage {
    /// There are new sessions in the table.
    Opened,
    /// The back-off of a coordinator is over.
    Restart(Arc<dyn Member>),
}

#[cfg(feature = "cluster")]
impl ractor::Message for SessionsMessage {}

/// The supervisor's actor.
pub(crate) struct SessionsSupervisor {
    pub(crate) connection: Arc<Shared>,
}

/// Which actor is which session.
pub(crate) struct Sessions {
    running: HashMap<ActorId, Arc<dyn Member>>,
    _live: Live,
}

impl SessionsSupervisor {
    fn table(&self) -> &SessionTable {
        &self.connection.sessions
    }

    async fn start(&self, entry: Arc<dyn Member>, me: &ActorRef<SessionsMessage>, state: &mut Sessions) {
        match entry.spawn(me.get_cell()).await {
            Ok(cell) => drop(state.running.insert(cell.get_id(), entry)),
            Err(_) => self.died(entry, me, state).await,
        }
    }

    async fn died(&self, entry: Arc<dyn Member>, me: &ActorRef<SessionsMessage>, state: &mut Sessions) {
        if entry.node().outcome().is_some() {
            return self.table().left(entry.number());
        }
        match entry.death() {
            Verdict::Restart(after) if after.is_zero() => Box::pin(self.start(entry, me, state)).await,
            Verdict::Restart(after) => {
                let me = me.clone();
                drop(me.send_after(after, move || SessionsMessage::Restart(entry)));
            }
            Verdict::GiveUp => {
                tracing::error!(actor = entry.node().path(), "a coordinator died too often: its session fails");
                let error = Error::internal_error().data("the coordinator of this session died too often");
                entry.node().set_outcome(Outcome::Failed(error.clone()));
                self.table().left(entry.number());
                // It may have had a request in its hands: the reader gets what came before.
                retire(entry, &error, &Handle::current());
            }
        }
    }
}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for SessionsSupervisor {
    type Msg = SessionsMessage;
    type State = Sessions;
    type Arguments = ();

    async fn pre_start(&self, me: ActorRef<SessionsMessage>, (): ()) -> Result<Sessions, ActorProcessingErr> {
        if let Some(node) = self.table().node() {
            node.started_as(me.get_cell());
        }
        Ok(Sessions { running: HashMap::new(), _live: self.connection.live.enter() })
    }

    async fn post_start(&self, me: ActorRef<SessionsMessage>, state: &mut Sessions) -> Result<(), ActorProcessingErr> {
        for entry in self.table().supervised_by(me.clone()) {
            self.start(entry, &me, state).await;
        }
        Ok(())
    }

    async fn handle(
        &self,
        me: ActorRef<SessionsMessage>,
        message: SessionsMessage,
        state: &mut Sessions,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SessionsMessage::Opened => {
                for entry in self.table().fresh() {
                    self.start(entry, &me, state).await;
                }
            }
            SessionsMessage::Restart(entry) => self.start(entry, &me, state).await,
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<SessionsMessage>,
        event: SupervisionEvent,
        state: &mut Sessions,
    ) -> Result<(), ActorProcessingErr> {
        // Consumes the event first: it may hold the lease that a restart needs.
        if let Some(entry) = death_of(event).and_then(|actor| state.running.remove(&actor)) {
            self.died(entry, &me, state).await;
        }
        Ok(())
    }
}
