//! The protocol connector: the highest client first, and one of version 1 if the agent speaks no more.

#[cfg(feature = "unstable_protocol_v2")]
mod fallback;

use std::fmt;

use greenroom_protocol::{Error, Result};

use crate::component::{ConnectTo, DynConnectTo};
use crate::options::ConnectionOptions;
use crate::role::acp::{Agent, Client};

/// Makes a client for one attempt.
type MakeClient = Box<dyn FnMut() -> DynConnectTo<Agent> + Send>;

/// A client with an implementation for each protocol version, for an agent of any of them.
///
/// The highest implementation starts. If an agent answers the `initialize` of version 2 with version 1,
/// the implementation of version 1 takes over: on the same connection, if it would send an `initialize`
/// that says exactly what the agent has heard already, and else on a new one. So clients and transport are
/// factories; each is called once for an attempt, the one of version 1 twice if its first client does not
/// say the same.
///
/// An agent's error is the client's error, and no reason to try version 1. Once an implementation has the
/// connection, every message passes both ways unchanged and in order.
#[must_use = "a connector does nothing until it is connected"]
pub struct ClientProtocolConnector {
    v1: Option<MakeClient>,
    #[cfg(feature = "unstable_protocol_v2")]
    v2: Option<MakeClient>,
    options: ConnectionOptions,
}

impl Client {
    /// A client that speaks more than one protocol version.
    pub fn protocol_connector(self) -> ClientProtocolConnector {
        ClientProtocolConnector::new()
    }
}

impl ClientProtocolConnector {
    /// A connector without implementations.
    pub fn new() -> Self {
        Self {
            v1: None,
            #[cfg(feature = "unstable_protocol_v2")]
            v2: None,
            options: ConnectionOptions::default(),
        }
    }

    /// Adds the implementation of version 1, in place of an earlier one.
    pub fn with_v1<C>(mut self, client: impl FnMut() -> C + Send + 'static) -> Self
    where
        C: ConnectTo<Agent>,
    {
        self.v1 = Some(boxed(client));
        self
    }

    /// Adds the implementation of version 2, in place of an earlier one. Its first message has to be the
    /// request `initialize`.
    #[cfg(feature = "unstable_protocol_v2")]
    pub fn with_v2<C>(mut self, client: impl FnMut() -> C + Send + 'static) -> Self
    where
        C: ConnectTo<Agent>,
    {
        self.v2 = Some(boxed(client));
        self
    }

    /// Sets limits of what stands between client and agent: `incoming_credit` and `restart`. The rest is
    /// for the implementations to set.
    pub fn options(mut self, options: ConnectionOptions) -> Self {
        self.options = options;
        self
    }

    /// Connects a client to the agent that `transport` leads to, and drives both until they are done.
    ///
    /// A client that gives way is dropped before another one starts; so is its connection, unless it is
    /// taken over. What the agent says before its answer to `initialize` reaches no client: its requests
    /// are refused with `-32600`.
    ///
    /// Cancel-safety: dropping the future ends client and connection at once.
    ///
    /// # Errors
    /// `-32600` without an implementation, or when the first message of a client of version 2 is no
    /// `initialize`; that a transport does not open; that the agent ended before it answered; else what
    /// ended the client or the connection.
    ///
    /// # Panics
    /// With what a factory panics with, and outside a tokio runtime with time enabled.
    pub async fn connect_to<C>(self, transport: impl FnMut() -> C + Send + 'static) -> Result<()>
    where
        C: ConnectTo<Client>,
    {
        let mut transport = transport;
        #[cfg(feature = "unstable_protocol_v2")]
        if let Some(v2) = self.v2 {
            return fallback::connect(v2, self.v1, transport, &self.options).await;
        }
        match self.v1 {
            Some(mut v1) => v1().connect_to(transport()).await,
            None => Err(Error::invalid_request()
                .data("this connector has no client: add one with `with_v1` or `with_v2` before connecting")),
        }
    }
}

fn boxed<C: ConnectTo<Agent>>(mut client: impl FnMut() -> C + Send + 'static) -> MakeClient {
    Box::new(move || DynConnectTo::new(client()))
}

impl Default for ClientProtocolConnector {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ClientProtocolConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ClientProtocolConnector");
        shown.field("v1", &self.v1.is_some());
        #[cfg(feature = "unstable_protocol_v2")]
        shown.field("v2", &self.v2.is_some());
        shown.finish_non_exhaustive()
    }
}
