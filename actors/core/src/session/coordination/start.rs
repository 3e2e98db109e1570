//! Starting a coordination below the sessions of a connection.

use std::path::Path;
use std::sync::{Arc, Weak};

use greenroom_protocol::schema::v2::InitializeRequest;
use greenroom_protocol::{BoxFuture, Error, Result};
use parking_lot::Mutex;
use ractor::{ActorCell, SpawnErr};
use tokio::time::Instant;

use super::actor::{Coordination, Event, State, Wanted};
use super::handle::{Commands, End, Owner, SharedSessions};
use super::observer::Observer;
use crate::component::ConnectTo;
use crate::connection::Shared;
use crate::handlers::Handlers;
use crate::role::HasPeer;
use crate::role::acp::{Agent, Client};
use crate::runtime::{Mailbox, Node, RestartBudget, Seat, Verdict};
use crate::session::member::Member;
use crate::v2::V2ConnectionTo;

impl<Link: HasPeer<Agent>> V2ConnectionTo<Link> {
    /// Shares sessions of this connection between parts of this program: see
    /// [the module](crate::coordination) for the rules. Every load uses the directory `cwd`.
    ///
    /// Updates of the shared sessions go into their logs, unless a handler of the connection that was
    /// registered before takes them: one that wants to see them has to pass them on. Requests of the
    /// agent, for permissions say, reach the handlers of the connection as always.
    ///
    /// One coordination is enough for a connection. Two of them know nothing of each other, and would
    /// close a session that the other one uses.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn coordinate_sessions(&self, cwd: impl AsRef<Path>) -> Result<SharedSessions> {
        let shared = self.raw().shared();
        let (events, commands) = (Mailbox::new(), Mailbox::new());
        let (wanted, end) = (Wanted::default(), End::new());
        let wake = {
            let events = events.clone();
            // A mailbox that is closed has the end in it, or is finished.
            Box::new(move || drop(events.send(Event::Commands)))
        };
        let peer = self.counterpart().remote_style(Agent);
        let mut handlers = Handlers::default();
        handlers.push(Observer { wanted: wanted.clone(), events: events.clone(), peer });
        let observer = self.raw().add_dynamic_handler(handlers)?;
        let owner = Owner::new(Commands { queue: commands.clone(), wake }, end.clone(), shared.id);
        let weak: Weak<Shared> = Arc::downgrade(shared);
        shared.sessions.coordinate(shared, move |number, node| {
            let stage = Coordination {
                connection: weak.clone(),
                counterpart: self.counterpart(),
                number,
                cwd: cwd.as_ref().to_owned(),
                cap: shared.sessions.log_cap(),
                events: events.clone(),
                commands,
                wanted,
                end: end.clone(),
                observer: Some(observer),
                state: State::default(),
            };
            let seat = Seat::new(stage, events.clone(), node.clone(), shared.live.clone());
            let budget = Mutex::new(RestartBudget::new(shared.sessions.restart()));
            Arc::new(CoordinationEntry {
                connection: weak,
                number,
                events,
                seat,
                node,
                budget,
                since: Instant::now(),
                end,
            })
        })?;
        Ok(SharedSessions { owner })
    }
}

/// Connects as a client of protocol version 2, does the handshake, and runs `work` with the sessions
/// that are shared in the directory `cwd`.
///
/// Returns what `work` returned, once every owner is dropped ([`SharedSessions`]): the transport then
/// stops without waiting for answers that are still open. An owner in what `work` returns keeps this
/// from returning.
///
/// Cancel-safe: the connection lives in the returned future; dropping it at any moment, during the
/// handshake too, ends the connection.
///
/// # Errors
/// A failed handshake, the error of `work`, or how the connection ended.
pub async fn with_sessions<T>(
    transport: impl ConnectTo<Client> + 'static,
    initialize: InitializeRequest,
    cwd: impl AsRef<Path>,
    work: impl AsyncFnOnce(SharedSessions) -> Result<T>,
) -> Result<T> {
    Client
        .v2()
        .connect_with(transport, async move |connection: V2ConnectionTo<Agent>| {
            connection.send_request(initialize).block_task().await?;
            let sessions = connection.coordinate_sessions(cwd)?;
            let ended = sessions.ended();
            let outcome = work(sessions).await?;
            ended.await;
            Ok(outcome)
        })
        .await
}

/// One coordination, as the supervisor of the sessions sees it.
struct CoordinationEntry<C: HasPeer<Agent>> {
    connection: Weak<Shared>,
    number: u64,
    events: Mailbox<Event>,
    seat: Seat<Coordination<C>>,
    node: Arc<Node>,
    budget: Mutex<RestartBudget>,
    since: Instant,
    end: Arc<End>,
}

impl<C: HasPeer<Agent>> Member for CoordinationEntry<C> {
    fn number(&self) -> u64 {
        self.number
    }

    fn node(&self) -> &Arc<Node> {
        &self.node
    }

    fn spawn(&self, supervisor: ActorCell) -> BoxFuture<'static, Result<ActorCell, SpawnErr>> {
        self.seat.spawn(supervisor)
    }

    fn death(&self) -> Verdict {
        self.budget.lock().death(self.since.elapsed())
    }

    fn end(&self, error: Error) {
        self.events.send_last(Event::End(error));
    }

    fn fail(&self, error: Error) {
        self.end.set(error);
        drop(self.events.close());
        self.node.kill();
        // The last that knows the stage, which tells everybody when it is dropped.
        if let Some(shared) = self.connection.upgrade() {
            shared.sessions.leave(self.number);
        }
    }

    fn wind_up<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(self.seat.wind_up())
    }
}
