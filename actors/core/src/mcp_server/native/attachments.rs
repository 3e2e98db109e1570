//! Servers that belong to one session.
//!
//! They can be reached before the request that declares them is sent, and for the rest of the
//! connection once it succeeded. If it fails, if what runs beside them fails, or if nobody waits for
//! it any more, they are removed.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use greenroom_protocol::schema::{McpServerAcp, McpServerAcpId};
use greenroom_protocol::{Error, RemoteStyle, Result};
use tokio::sync::watch;

use super::super::context::{McpConnectionContext, McpConnectionTo};
use super::super::server::McpServer;
use super::operation::{Execute, Parts, Stop};
use super::registration::Registration;
use super::service::{McpRequest, McpRequestContext, McpService};
use crate::connection_to::ConnectionTo;
use crate::role::Role;

/// An id that no other server has, on whatever connection.
pub(super) fn fresh_id() -> McpServerAcpId {
    McpServerAcpId::new(uuid::Uuid::new_v4().to_string())
}

/// Runs operations with this service.
pub(super) fn execute_with<C: Role>(service: Arc<dyn McpService<C>>, counterpart: C) -> Execute {
    Arc::new(move |request: McpRequest, parts: Parts| {
        let Parts { call, cancellation, operation, notifications } = parts;
        let context =
            McpConnectionContext::Acp { server_id: call.server_id.clone(), request_id: call.request_id.clone() };
        let connection = ConnectionTo::new(notifications.connection.clone(), counterpart.clone());
        let context = McpRequestContext {
            server_id: call.server_id,
            request_id: call.request_id,
            metadata: Arc::new(call.metadata),
            cancellation,
            operation,
            connection: McpConnectionTo::new(context, connection),
            notifications,
        };
        service.execute(request, context)
    })
}

/// Servers that a session is going to have.
pub(crate) struct Attachments<C: Role> {
    planned: Vec<(McpServerAcpId, Arc<dyn McpService<C>>)>,
}

impl<C: Role> Default for Attachments<C> {
    fn default() -> Self {
        Self { planned: Vec::new() }
    }
}

impl<C: Role> Attachments<C> {
    /// Adds a server. Returns its declaration and what runs beside it.
    pub(crate) fn plan<Run>(&mut self, server: McpServer<C, Run>) -> (McpServerAcp, Run) {
        let id = fresh_id();
        self.planned.push((id.clone(), server.service));
        (McpServerAcp::new(server.name, id), server.run)
    }

    /// Makes the servers reachable for the agent, which is at `to`.
    ///
    /// # Errors
    /// When the connection is ending or over.
    pub(crate) fn attach(self, connection: &ConnectionTo<C>, to: RemoteStyle) -> Result<Attached> {
        let shared = connection.shared();
        let mut group = Group::default();
        for (id, service) in self.planned {
            let execute = execute_with(service, connection.counterpart());
            match shared.servers.open(shared, id, to, execute) {
                Ok(registration) => group.registrations.push(registration),
                Err(error) => {
                    group.close();
                    return Err(error);
                }
            }
        }
        Ok(Attached { group: Arc::new(group), kept: false })
    }
}

/// The servers of one session.
#[derive(Default)]
struct Group {
    registrations: Vec<Arc<Registration>>,
    closed: watch::Sender<bool>,
}

impl Group {
    fn close(&self) {
        for registration in &self.registrations {
            registration.close(Stop::Removed);
        }
        self.closed.send_replace(true);
    }

    async fn settled(&self) {
        for registration in &self.registrations {
            registration.settled().await;
        }
    }
}

/// Servers that can be reached. Dropping it removes them.
pub(crate) struct Attached {
    group: Arc<Group>,
    kept: bool,
}

impl Attached {
    /// What runs beside the servers, for as long as they can be reached or still clean up. When it
    /// fails they are removed, and nothing else happens.
    pub(crate) fn beside<F>(&self, work: F) -> impl Future<Output = Result<()>> + Send + use<F>
    where
        F: Future<Output = Result<()>> + Send,
    {
        let group = self.group.clone();
        async move {
            let mut closed = group.closed.subscribe();
            let removed = async {
                let _ = closed.wait_for(|closed| *closed).await;
                group.settled().await;
            };
            let result = tokio::select! {
                biased;
                result = AssertUnwindSafe(work).catch_unwind() => result,
                () = removed => return Ok(()),
            };
            // What the panic said went to the panic hook; it may quote payload.
            let result = result.unwrap_or_else(|_panic| Err(Error::internal_error().data("a runner panicked")));
            if let Err(error) = result {
                tracing::warn!(code = i32::from(error.code), "what runs beside the MCP servers of a session failed");
                group.close();
            }
            Ok(())
        }
    }

    /// The answer to the request that declares the servers: with a good one they stay.
    pub(crate) fn answered(mut self, good: bool) {
        self.kept = good;
    }

    /// Removes the servers, and waits until they have cleaned up. Cancel-safe.
    pub(crate) async fn remove(&self) {
        self.group.close();
        self.group.settled().await;
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if !self.kept {
            self.group.close();
        }
    }
}
