//! The servers that are attached to one connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom_protocol::schema::McpServerAcpId;
use greenroom_protocol::{RemoteStyle, Result};
use parking_lot::Mutex;
use ractor::ActorRef;
use tokio::time::{Duration, Instant, timeout_at};

use super::operation::{Execute, Stop};
use super::registration::Registration;
use super::supervisor::ServersMessage;
use crate::connection::{ConnectionMessage, Shared};
use crate::runtime::Node;

/// See the module documentation. Part of what the whole connection knows.
#[derive(Default)]
pub(crate) struct ConnectionServers {
    open: Mutex<Open>,
    count: AtomicUsize,
}

#[derive(Default)]
struct Open {
    registrations: Vec<Arc<Registration>>,
    /// Opened, and not seen by the supervisor yet.
    fresh: Vec<Arc<Registration>>,
    opened: u64,
    supervisor: Option<ActorRef<ServersMessage>>,
    node: Option<Arc<Node>>,
    closed: bool,
}

impl ConnectionServers {
    /// Opens a registration, whose actor starts in a moment.
    ///
    /// # Errors
    /// When the connection is ending or over.
    pub(super) fn open(
        &self,
        connection: &Arc<Shared>,
        id: McpServerAcpId,
        to: RemoteStyle,
        execute: Execute,
    ) -> Result<Arc<Registration>> {
        let (registration, supervisor) = {
            let mut open = self.open.lock();
            if open.closed {
                return Err(connection.closed_error());
            }
            open.opened += 1;
            let name = format!("server-{}", open.opened);
            let node =
                open.node.get_or_insert_with(|| connection.node.child("mcp", "mcp-servers")).child(&name, "mcp-server");
            let registration = Registration::new(connection, id, to, execute, node);
            open.registrations.push(registration.clone());
            open.fresh.push(registration.clone());
            self.count.store(open.registrations.len(), Ordering::Release);
            (registration, open.supervisor.clone())
        };
        let told = supervisor.is_some_and(|supervisor| supervisor.cast(ServersMessage::Opened).is_ok());
        // A connection that has no supervisor yet looks here when it starts.
        if !told && let Some(supervisor) = connection.supervisor.get() {
            let _ = supervisor.cast(ConnectionMessage::ServerOpened);
        }
        Ok(registration)
    }

    /// Whether there is none: most connections have none and should not pay for looking.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// The server with this id.
    pub(super) fn find(&self, id: &str) -> Option<Arc<Registration>> {
        self.open.lock().registrations.iter().find(|known| *known.id.0 == *id).cloned()
    }

    /// The connection is ending: nothing more is admitted, and what runs is stopped.
    pub(crate) fn shut_down(&self) {
        let registrations = {
            let mut open = self.open.lock();
            open.closed = true;
            open.registrations.clone()
        };
        for registration in registrations {
            registration.close(Stop::ShuttingDown);
        }
    }

    /// Waits until no operation runs, for a bounded time. Cancel-safe.
    pub(crate) async fn settled(&self, limit: Duration) {
        let until = Instant::now() + limit;
        let registrations = self.open.lock().registrations.clone();
        for registration in registrations {
            if timeout_at(until, registration.settled()).await.is_err() {
                tracing::warn!("operations of MCP servers did not end in time");
                return;
            }
        }
    }

    /// The connection is over, and the actors with it.
    pub(crate) fn close_all(&self) {
        let registrations = {
            let mut open = self.open.lock();
            open.closed = true;
            open.supervisor = None;
            open.fresh.clear();
            self.count.store(0, Ordering::Release);
            std::mem::take(&mut open.registrations)
        };
        // Dropped outside of the lock: a service may do anything.
        for registration in registrations {
            registration.close(Stop::ShuttingDown);
            registration.fail();
            registration.node().kill();
        }
    }

    // --- for the supervisor ---------------------------------------------------------------------

    /// A supervisor takes over: every server, to be started.
    pub(super) fn supervised_by(&self, supervisor: ActorRef<ServersMessage>) -> Vec<Arc<Registration>> {
        let mut open = self.open.lock();
        open.supervisor = Some(supervisor);
        open.fresh.clear();
        open.registrations.clone()
    }

    /// The servers that were opened since.
    pub(super) fn fresh(&self) -> Vec<Arc<Registration>> {
        std::mem::take(&mut self.open.lock().fresh)
    }

    /// A server whose actor did not start.
    pub(super) fn again(&self, registration: Arc<Registration>) {
        self.open.lock().fresh.push(registration);
    }

    /// A server whose actor ended.
    pub(super) fn forget(&self, ended: &Arc<Registration>) {
        let node = {
            let mut open = self.open.lock();
            open.registrations.retain(|known| !Arc::ptr_eq(known, ended));
            self.count.store(open.registrations.len(), Ordering::Release);
            open.node.clone()
        };
        if let Some(node) = node {
            node.disown(ended.node());
        }
    }

    /// Where the supervisor stands in the tree, once there is a server.
    pub(crate) fn node(&self) -> Option<Arc<Node>> {
        self.open.lock().node.clone()
    }
}
