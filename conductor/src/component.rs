//! The components of a chain, before they run.

use std::fmt;
use std::sync::Arc;

use greenroom::link::Link;
use greenroom::{AcpAgent, Agent, Client, Conductor, ConnectTo, DynConnectTo, Role};

/// Makes a component once more.
type Again = Arc<dyn Fn() -> Link + Send + Sync>;

/// One component: how it is reached, and how it is started anew where that is possible.
pub(crate) struct Component {
    pub(crate) name: String,
    link: Option<Link>,
    again: Option<Again>,
}

impl Component {
    /// A component that exists once.
    pub(crate) fn once<R: Role>(name: impl Into<String>, component: DynConnectTo<R>) -> Self {
        Self { name: name.into(), link: Some(component.into_link()), again: None }
    }

    /// A program, which can be started as often as needed.
    pub(crate) fn program(agent: AcpAgent) -> Self {
        let name = agent.config().command().display().to_string();
        Self { name, link: None, again: Some(Arc::new(move || agent.clone().into_link())) }
    }

    /// The way to the component; a second time only where it can be started anew.
    pub(crate) fn link(&mut self) -> Option<Link> {
        self.link.take().or_else(|| self.again.as_ref().map(|again| again()))
    }
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Component").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The components that one connection gets.
#[derive(Debug, Default)]
pub(crate) struct Components {
    pub(crate) proxies: Vec<Component>,
    /// `None` in proxy mode.
    pub(crate) agent: Option<Component>,
    /// Other params for the first initialize, as JSON text.
    pub(crate) params: Option<bytes::Bytes>,
}

/// An agent behind any number of proxies.
pub struct ProxiesAndAgent {
    pub(crate) proxies: Vec<DynConnectTo<Conductor>>,
    pub(crate) agent: DynConnectTo<Client>,
}

impl ProxiesAndAgent {
    /// A chain of this agent alone.
    pub fn new(agent: impl ConnectTo<Client> + 'static) -> Self {
        Self { proxies: Vec::new(), agent: DynConnectTo::new(agent) }
    }

    /// Adds a proxy to the right of those that are there.
    #[must_use]
    pub fn proxy(mut self, proxy: impl ConnectTo<Conductor> + 'static) -> Self {
        self.proxies.push(DynConnectTo::new(proxy));
        self
    }

    /// Adds proxies to the right of those that are there.
    #[must_use]
    pub fn proxies<P, I>(mut self, proxies: I) -> Self
    where
        P: ConnectTo<Conductor> + 'static,
        I: IntoIterator<Item = P>,
    {
        self.proxies.extend(proxies.into_iter().map(DynConnectTo::new));
        self
    }
}

impl fmt::Debug for ProxiesAndAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxiesAndAgent").field("proxies", &self.proxies).field("agent", &self.agent).finish()
    }
}

/// Programs from left to right. For an agent chain, the last one is the agent.
#[derive(Debug)]
pub struct CommandLineComponents(pub Vec<AcpAgent>);

/// An agent without proxies.
#[derive(Debug)]
pub struct AgentOnly<A>(pub A);

/// Which end of a connection a conductor plays.
pub trait ConductorHostRole: Role + sealed::Sealed {
    /// What starts the components.
    type Instantiator: Send;

    /// Starts the components for the first initialize.
    #[doc(hidden)]
    fn instantiate(
        instantiator: Self::Instantiator,
        initialize: greenroom_protocol::Frame,
    ) -> greenroom::BoxFuture<'static, greenroom::Result<sealed::Started>>;

    /// Whether the right end of the chain is an agent.
    #[doc(hidden)]
    const ENDS_IN_AGENT: bool;
}

/// Keeps the set of roles closed.
#[allow(unreachable_pub, reason = "named by the hidden items of a public trait, reachable by nobody")]
pub(crate) mod sealed {
    /// Implemented for the two roles.
    pub trait Sealed {}

    /// The components, on their way to the chain.
    #[derive(Debug)]
    pub struct Started(pub(crate) super::Components);
}

impl sealed::Sealed for Agent {}
impl sealed::Sealed for greenroom::Proxy {}
