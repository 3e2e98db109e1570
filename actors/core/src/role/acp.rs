//! The roles of the Agent Client Protocol.

use greenroom_protocol::Error;

use super::{HasPeer, Nature, RemoteStyle, Role, RoleId, own_peer, plain_role};
use crate::builder::Builder;
use crate::component::ConnectTo;
use crate::connection_to::ConnectionTo;
use crate::dispatch::{Dispatch, Handled};
pub use crate::negotiation::{AgentProtocolRouter, ClientProtocolConnector, ProxyProtocolRouter};

plain_role!(
    /// The editor or command line: opens sessions and sends prompts.
    Client, Agent, V1Client
);
plain_role!(
    /// Stands between a client and an agent, below a conductor. What none of its handlers takes
    /// passes on to the other side, params and result byte for byte.
    Proxy, Conductor, V1Proxy
);

impl Client {
    /// Connects a client without handlers and runs `main` in the foreground: as
    /// [`Builder::connect_with`].
    ///
    /// # Errors
    /// As there.
    pub async fn connect_with<R>(
        self,
        agent: impl ConnectTo<Client>,
        main: impl AsyncFnOnce(ConnectionTo<Agent>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.builder().connect_with(agent, main).await
    }
}

/// The AI agent: answers prompts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Agent;

own_peer!(Agent, V1Agent);

impl Role for Agent {
    type Counterpart = Client;

    fn counterpart(&self) -> Client {
        Client
    }

    fn role_id(&self) -> RoleId {
        RoleId::from_singleton(self)
    }

    /// A notification of a session that nobody handles yet may be offered again: its handler may
    /// be on its way.
    async fn default_handle_dispatch_from(
        &self,
        message: Dispatch,
        _connection: ConnectionTo<Self>,
    ) -> Result<Handled<Dispatch>, Error> {
        let retry = matches!(message, Dispatch::Notification(_)) && message.has_field("sessionId");
        Ok(Handled::No { message, retry })
    }

    fn nature(&self) -> Nature {
        Nature::Agent
    }
}

/// Runs a chain of proxies: what a proxy is connected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Conductor;

impl Conductor {
    /// A builder for an endpoint that plays this role.
    #[must_use]
    pub fn builder(self) -> Builder<Self> {
        Builder::new(self)
    }
}

impl Role for Conductor {
    type Counterpart = Proxy;

    fn counterpart(&self) -> Proxy {
        Proxy
    }

    fn role_id(&self) -> RoleId {
        RoleId::from_singleton(self)
    }

    async fn default_handle_dispatch_from(
        &self,
        message: Dispatch,
        connection: ConnectionTo<Self>,
    ) -> Result<Handled<Dispatch>, Error> {
        crate::proxy::default_handle(message, &connection)
    }

    fn nature(&self) -> Nature {
        Nature::Conductor
    }
}

impl HasPeer<Client> for Conductor {
    fn remote_style(&self, _peer: Client) -> RemoteStyle {
        RemoteStyle::Predecessor
    }
}

impl HasPeer<Agent> for Conductor {
    fn remote_style(&self, _peer: Agent) -> RemoteStyle {
        RemoteStyle::Successor
    }
}
