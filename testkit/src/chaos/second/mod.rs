//! A soak of protocol version 2: the same two trees, with sessions of that version.
//!
//! - `agent` serves sessions: prompts are accepted and worked off one after the other, resumes
//!   replay, a close ends what still runs.
//! - `client` opens, resumes, forks, prompts, cancels, sets options and closes, and compares.
//! - `shared` has several parts of the client use the same sessions.

mod agent;
mod client;
mod shared;

use std::sync::Arc;

use greenroom::link::Link;
use greenroom::runtime::Node;
use greenroom::schema::{ProtocolVersion, v2};
use greenroom::{
    Agent, Client, Connection, ConnectionOptions, ConnectionTo, Dispatch, HandleDispatchFrom, Handled, Responder,
    Result, RunWithConnectionTo, UntypedMessage, V2ConnectionTo, on_receive_notification, on_receive_request,
};
use ractor::ActorCell;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use self::agent::Sessions;
use self::shared::{Doomed, Shared};
use super::ending::Reader;
use super::ledger::{Ledger, is_interrupted};
use super::random::Random;
use super::report::Report;
use super::workload::Worker;

/// Sessions of a run, beside the other traffic.
const SESSIONS: u64 = 3;

/// Parts of the client that share sessions.
const VIEWS: u64 = 3;

/// What both sides know in a run of version 2.
#[derive(Clone, Default)]
pub(super) struct Second {
    sessions: Sessions,
    shared: Shared,
}

impl Second {
    /// The books of every session that was ever opened.
    pub(super) fn books(&self) -> Vec<Arc<Ledger>> {
        let mut books = self.sessions.books();
        books.push(self.shared.books());
        books
    }

    /// Whether nobody holds a session that somebody let go of.
    pub(super) fn is_settled(&self) -> bool {
        self.shared.is_closed()
    }

    /// The side that serves sessions: its handlers run inside its dispatch actor, and get the
    /// protocol-neutral handle.
    pub(super) async fn start_linked(
        &self,
        link: Link,
        worker: Worker,
        options: ConnectionOptions,
        parent: ActorCell,
    ) -> Result<Connection<Client>> {
        let (asked, told, notes) = (self.clone(), self.clone(), worker.clone());
        Agent
            .builder()
            .with_v2_protocol_guard()
            .options(options)
            .on_receive_request(
                async move |request: UntypedMessage, responder: Responder, cx: ConnectionTo<Client>| {
                    let Some((request, responder)) = asked.sessions.serve(request, responder, &cx).await? else {
                        return Ok(Handled::Yes);
                    };
                    let Some((request, responder)) = asked.shared.serve(request, responder, &cx)? else {
                        return Ok(Handled::Yes);
                    };
                    worker.serve(request, responder, cx).await
                },
                on_receive_request!(),
            )
            .on_receive_notification(
                async move |note: UntypedMessage, cx| {
                    if told.sessions.note(&note) {
                        return Ok(Handled::Yes);
                    }
                    notes.note(note, cx).await
                },
                on_receive_notification!(),
            )
            .spawn_linked(link, parent)
            .await
    }

    /// The side that uses sessions: its handlers run in the future of its caller.
    pub(super) async fn drive(
        &self,
        link: Link,
        worker: Worker,
        options: ConnectionOptions,
        tell: oneshot::Sender<(ConnectionTo<Agent>, V2ConnectionTo<Agent>)>,
        finished: oneshot::Receiver<()>,
    ) -> Result<()> {
        let (updates, permissions) = (self.sessions.clone(), self.sessions.clone());
        let (give, neutral) = oneshot::channel();
        Client
            .v2()
            .options(options)
            .on_receive_notification(
                async move |update: v2::UpdateSessionNotification, cx: V2ConnectionTo<Agent>| {
                    updates.updated(update, cx).await
                },
                on_receive_notification!(),
            )
            .on_receive_request(
                async move |request: v2::RequestPermissionRequest, responder, cx: V2ConnectionTo<Agent>| {
                    permissions.decide(&request, responder, &cx).await
                },
                on_receive_request!(),
            )
            .with_handler(Rest { worker })
            .with_runner(Neutral { give })
            .connect_with(link, async move |cx: V2ConnectionTo<Agent>| {
                if let Ok(raw) = neutral.await {
                    let _ = tell.send((raw, cx));
                }
                let _ = finished.await;
                Ok(())
            })
            .await
    }

    /// Does the handshake, as often as the agent's handler is cut off.
    pub(super) async fn greet(&self, connection: &V2ConnectionTo<Agent>) -> Result<()> {
        loop {
            let hello = v2::InitializeRequest::new(ProtocolVersion::V2, v2::Implementation::new("chaos", "1"));
            match connection.send_request(hello).block_task().await {
                Err(error) if is_interrupted(&error) => {}
                outcome => return outcome.map(drop),
            }
        }
    }

    /// A coordination of sessions that has to fail, and nothing else with it. It has to be the
    /// connection's first.
    pub(super) async fn doom(&self, connection: &V2ConnectionTo<Agent>, seed: u64) -> Result<JoinSet<Report>> {
        let doomed = Doomed::open(connection, &self.shared).await?;
        let mut failing = JoinSet::new();
        failing.spawn(doomed.fail(seed));
        Ok(failing)
    }

    /// Lets the client use sessions until the agent has said `messages` things in them. What is
    /// still open in the end is read by somebody.
    pub(super) fn converse(
        &self,
        connection: &V2ConnectionTo<Agent>,
        messages: u64,
        random: &mut Random,
        into: &mut JoinSet<Result<Option<Reader>>>,
    ) -> Result<()> {
        for _ in 0..SESSIONS {
            let talk =
                client::converse(connection.clone(), self.sessions.clone(), messages / SESSIONS, random.number());
            into.spawn(async move { talk.await.map(|()| None) });
        }
        let shared = connection.coordinate_sessions(shared::FOLDER)?;
        for _ in 0..VIEWS {
            into.spawn(self.shared.clone().view(shared.clone(), random.number()));
        }
        Ok(())
    }
}

/// Gives what is left to the worker.
struct Rest {
    worker: Worker,
}

impl HandleDispatchFrom<Agent> for Rest {
    async fn handle_dispatch_from(&mut self, message: Dispatch, cx: ConnectionTo<Agent>) -> Result<Handled<Dispatch>> {
        match message {
            Dispatch::Request(request, responder) => Ok(match self.worker.serve(request, responder, cx).await? {
                Handled::Yes => Handled::Yes,
                Handled::No { message: (request, responder), retry } => {
                    Handled::No { message: Dispatch::Request(request, responder), retry }
                }
            }),
            Dispatch::Notification(note) => Ok(match self.worker.note(note, cx).await? {
                Handled::Yes => Handled::Yes,
                Handled::No { message: (note, _), retry } => {
                    Handled::No { message: Dispatch::Notification(note), retry }
                }
            }),
            message => Ok(Handled::No { message, retry: false }),
        }
    }
}

/// Tells the protocol-neutral handle, which the plain traffic of a run uses.
struct Neutral {
    give: oneshot::Sender<ConnectionTo<Agent>>,
}

impl RunWithConnectionTo<Agent> for Neutral {
    async fn run_with_connection_to(self, connection: ConnectionTo<Agent>) -> Result<()> {
        let _ = self.give.send(connection);
        Ok(())
    }
}

/// The actors of the sessions of a connection that are there now.
fn actors_of(tree: &Arc<Node>, kind: &str) -> Vec<Arc<Node>> {
    tree.flatten().into_iter().filter(|node| node.kind() == kind).collect()
}
