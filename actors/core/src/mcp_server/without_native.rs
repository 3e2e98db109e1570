//! What stands in for MCP over ACP where it is not compiled in: connections have no servers, and
//! sessions no attachments.

use std::marker::PhantomData;
use std::sync::Arc;

use greenroom_protocol::{Error, RemoteStyle, Result};
use tokio::time::Duration;

use crate::connection::{InboundCall, Shared};
use crate::connection_to::ConnectionTo;
use crate::handlers::Delivery;
use crate::role::Role;
use crate::runtime::{Child, RestartPolicy};

/// The servers of one connection.
#[derive(Default)]
pub(crate) struct ConnectionServers {
    _none: (),
}

impl ConnectionServers {
    pub(crate) fn is_empty(&self) -> bool {
        true
    }

    pub(crate) fn take(&self, delivery: Delivery) -> Option<Delivery> {
        Some(delivery)
    }

    pub(crate) fn shut_down(&self) {}

    pub(crate) fn settled(&self, _limit: Duration) -> std::future::Ready<()> {
        std::future::ready(())
    }

    pub(crate) fn close_all(&self) {}
}

pub(crate) fn supervised(_connection: &Arc<Shared>, _policy: RestartPolicy) -> Option<Child> {
    None
}

pub(crate) fn answer_unclaimed(_call: &InboundCall) -> Option<Error> {
    None
}

/// Servers that a session is going to have.
pub(crate) struct Attachments<C: Role> {
    _role: PhantomData<fn(C)>,
}

impl<C: Role> Default for Attachments<C> {
    fn default() -> Self {
        Self { _role: PhantomData }
    }
}

impl<C: Role> Attachments<C> {
    pub(crate) fn attach(self, _connection: &ConnectionTo<C>, _to: RemoteStyle) -> Result<Attached> {
        Ok(Attached)
    }
}

/// Servers that can be reached.
pub(crate) struct Attached;

impl Attached {
    pub(crate) fn beside<F: Future<Output = Result<()>> + Send>(&self, work: F) -> F {
        work
    }

    pub(crate) fn answered(self, _good: bool) {}

    pub(crate) fn remove(&self) -> std::future::Ready<()> {
        std::future::ready(())
    }
}
