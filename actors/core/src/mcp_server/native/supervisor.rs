//! Supervises the servers that are attached to one connection.
//!
//! Owns: nothing that must survive; the servers are in the connection's table. Supervised by: the
//! connection. Starts with the first server.
//! When it dies: the actors of its servers die with it; restarted, it starts them again, and each
//! goes on where it was. Operations do not notice. When the actor of a server dies: restarted up to
//! three times in a minute, then that server is gone and no other.

use std::collections::HashMap;
use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::time::Duration;

use super::registration::Registration;
use crate::connection::Shared;
use crate::runtime::{Child, Children, Death, Live, RestartPolicy, death_of};

/// Three deaths are forgiven; the fourth in a minute is the server's end.
const RESTART: RestartPolicy = RestartPolicy { deaths: 3, window: Duration::from_secs(60) };

/// When a server's actor is started again that did not start.
const AGAIN: Duration = Duration::from_millis(100);

/// What the supervisor is told.
#[derive(Debug)]
pub(crate) enum ServersMessage {
    /// There are new servers in the table.
    Opened,
    /// The back-off of child number `.0` is over.
    Restart(usize),
}

#[cfg(feature = "cluster")]
impl ractor::Message for ServersMessage {}

/// The supervisor's actor.
struct ServersSupervisor {
    connection: Arc<Shared>,
}

/// The supervisor as a child of its connection's, once there is a server.
pub(crate) fn supervised(connection: &Arc<Shared>, policy: RestartPolicy) -> Option<Child> {
    let (node, connection) = (connection.servers.node()?, connection.clone());
    Some(Child::new(node, policy, move |supervisor| {
        let servers = ServersSupervisor { connection: connection.clone() };
        Box::pin(
            async move { Actor::spawn_linked(None, servers, (), supervisor).await.map(|(actor, _)| actor.get_cell()) },
        )
    }))
}

/// Which child is which server.
struct Servers {
    children: Children,
    running: HashMap<usize, Arc<Registration>>,
    _live: Live,
}

impl ServersSupervisor {
    async fn start(&self, registration: Arc<Registration>, me: &ActorRef<ServersMessage>, state: &mut Servers) {
        let child = Child::stage(registration.seat(), RESTART);
        match state.children.start(child, &me.get_cell()).await {
            Ok(index) => drop(state.running.insert(index, registration)),
            // This actor is ending, or the server's last incarnation has not let go yet.
            Err(_) => {
                self.connection.servers.again(registration);
                drop(me.send_after(AGAIN, || ServersMessage::Opened));
            }
        }
    }

    async fn decide(&self, death: Death, me: &ActorRef<ServersMessage>, state: &mut Servers) {
        let mut next = Some(death);
        while let Some(death) = next.take() {
            match death {
                Death::Restart(index, after) if after.is_zero() => {
                    next = state.children.restart(index, &me.get_cell()).await;
                }
                Death::Restart(index, after) => {
                    drop(me.send_after(after, move || ServersMessage::Restart(index)));
                }
                Death::Ended(index, _) => {
                    state.children.remove(index);
                    if let Some(ended) = state.running.remove(&index) {
                        self.connection.servers.forget(&ended);
                    }
                }
                Death::GaveUp(index) => {
                    state.children.remove(index);
                    if let Some(failed) = state.running.remove(&index) {
                        self.gave_up(&failed);
                    }
                }
            }
        }
    }

    fn gave_up(&self, registration: &Arc<Registration>) {
        tracing::error!(actor = registration.node().path(), "the actor of an MCP server died too often");
        registration.fail();
        let last = registration.clone();
        self.connection.spawn_owed(async move { last.wind_up().await });
        self.connection.servers.forget(registration);
    }
}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for ServersSupervisor {
    type Msg = ServersMessage;
    type State = Servers;
    type Arguments = ();

    async fn pre_start(&self, me: ActorRef<ServersMessage>, (): ()) -> Result<Servers, ActorProcessingErr> {
        if let Some(node) = self.connection.servers.node() {
            node.started_as(me.get_cell());
        }
        Ok(Servers {
            children: Children::new(Vec::new()),
            running: HashMap::new(),
            _live: self.connection.live.enter(),
        })
    }

    async fn post_start(&self, me: ActorRef<ServersMessage>, state: &mut Servers) -> Result<(), ActorProcessingErr> {
        for registration in self.connection.servers.supervised_by(me.clone()) {
            self.start(registration, &me, state).await;
        }
        Ok(())
    }

    async fn handle(
        &self,
        me: ActorRef<ServersMessage>,
        message: ServersMessage,
        state: &mut Servers,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ServersMessage::Opened => {
                for registration in self.connection.servers.fresh() {
                    self.start(registration, &me, state).await;
                }
            }
            ServersMessage::Restart(index) => {
                if let Some(death) = state.children.restart(index, &me.get_cell()).await {
                    self.decide(death, &me, state).await;
                }
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<ServersMessage>,
        event: SupervisionEvent,
        state: &mut Servers,
    ) -> Result<(), ActorProcessingErr> {
        // Consumes the event first: it may hold the lease that a restart needs.
        if let Some(death) = death_of(event).and_then(|actor| state.children.died(actor)) {
            self.decide(death, &me, state).await;
        }
        Ok(())
    }
}
