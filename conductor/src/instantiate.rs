//! Starting the components of a chain, when the first initialize has come.

use greenroom::schema::v1::InitializeRequest;
use greenroom::{
    AcpAgent, Agent, BoxFuture, Client, Conductor, ConnectTo, DynConnectTo, Error, JsonRpcMessage as _, Proxy, Result,
};
use greenroom_protocol::Frame;

use crate::component::sealed::Started;
use crate::component::{AgentOnly, CommandLineComponents, Component, Components, ConductorHostRole, ProxiesAndAgent};

/// What a typed instantiator returns: the request to send on, the proxies, the agent.
pub type ProxiesAndAgentFor = (InitializeRequest, Vec<DynConnectTo<Conductor>>, DynConnectTo<Client>);

/// What a typed instantiator of proxies returns: the request to send on, and the proxies.
pub type ProxiesFor = (InitializeRequest, Vec<DynConnectTo<Conductor>>);

/// Starts the proxies and the agent of a chain. Called once for each connection, lazily, with the
/// first initialize.
pub trait InstantiateProxiesAndAgent: Send {
    /// Chooses and creates the components. The request may be changed.
    fn instantiate_proxies_and_agent(
        self: Box<Self>,
        request: InitializeRequest,
    ) -> BoxFuture<'static, Result<ProxiesAndAgentFor>>;

    /// Components that do not depend on the request need not parse it, whatever its version.
    #[doc(hidden)]
    fn fixed(self: Box<Self>) -> Fixed<Box<dyn InstantiateProxiesAndAgent>>;
}

/// Starts the proxies of a chain that is a proxy itself.
pub trait InstantiateProxies: Send {
    /// Chooses and creates the components. The request may be changed.
    fn instantiate_proxies(self: Box<Self>, request: InitializeRequest) -> BoxFuture<'static, Result<ProxiesFor>>;

    /// As in [`InstantiateProxiesAndAgent`].
    #[doc(hidden)]
    fn fixed(self: Box<Self>) -> Fixed<Box<dyn InstantiateProxies>>;
}

/// Whether the components are known without the request.
#[doc(hidden)]
#[derive(Debug)]
pub enum Fixed<I> {
    /// These.
    Known(Box<Started>),
    /// Ask, with the typed request.
    Ask(I),
}

fn known<I>(proxies: Vec<Component>, agent: Option<Component>) -> Fixed<I> {
    Fixed::Known(Box::new(Started(Components { proxies, agent, params: None })))
}

fn named(proxies: Vec<DynConnectTo<Conductor>>) -> Vec<Component> {
    proxies.into_iter().enumerate().map(|(index, proxy)| Component::once(format!("proxy-{index}"), proxy)).collect()
}

impl InstantiateProxiesAndAgent for ProxiesAndAgent {
    fn instantiate_proxies_and_agent(
        self: Box<Self>,
        request: InitializeRequest,
    ) -> BoxFuture<'static, Result<ProxiesAndAgentFor>> {
        Box::pin(std::future::ready(Ok((request, self.proxies, self.agent))))
    }

    fn fixed(self: Box<Self>) -> Fixed<Box<dyn InstantiateProxiesAndAgent>> {
        known(named(self.proxies), Some(Component::once("agent", self.agent)))
    }
}

impl<A: ConnectTo<Client> + 'static> InstantiateProxiesAndAgent for AgentOnly<A> {
    fn instantiate_proxies_and_agent(
        self: Box<Self>,
        request: InitializeRequest,
    ) -> BoxFuture<'static, Result<ProxiesAndAgentFor>> {
        Box::pin(std::future::ready(Ok((request, Vec::new(), DynConnectTo::new(self.0)))))
    }

    fn fixed(self: Box<Self>) -> Fixed<Box<dyn InstantiateProxiesAndAgent>> {
        known(Vec::new(), Some(Component::once("agent", DynConnectTo::<Client>::new(self.0))))
    }
}

/// The last program is the agent.
fn split(mut programs: Vec<AcpAgent>) -> Result<(Vec<AcpAgent>, AcpAgent)> {
    let agent = programs.pop().ok_or_else(|| Error::invalid_params().data("a chain needs an agent"))?;
    Ok((programs, agent))
}

impl InstantiateProxiesAndAgent for CommandLineComponents {
    fn instantiate_proxies_and_agent(
        self: Box<Self>,
        request: InitializeRequest,
    ) -> BoxFuture<'static, Result<ProxiesAndAgentFor>> {
        let components = split(self.0).map(|(proxies, agent)| {
            let proxies = proxies.into_iter().map(DynConnectTo::new).collect();
            (request, proxies, DynConnectTo::new(agent))
        });
        Box::pin(std::future::ready(components))
    }

    fn fixed(self: Box<Self>) -> Fixed<Box<dyn InstantiateProxiesAndAgent>> {
        if self.0.is_empty() {
            return Fixed::Ask(self);
        }
        let mut programs: Vec<Component> = self.0.into_iter().map(Component::program).collect();
        let agent = programs.pop();
        known(programs, agent)
    }
}

impl InstantiateProxies for CommandLineComponents {
    fn instantiate_proxies(self: Box<Self>, request: InitializeRequest) -> BoxFuture<'static, Result<ProxiesFor>> {
        let proxies = self.0.into_iter().map(DynConnectTo::new).collect();
        Box::pin(std::future::ready(Ok((request, proxies))))
    }

    fn fixed(self: Box<Self>) -> Fixed<Box<dyn InstantiateProxies>> {
        known(self.0.into_iter().map(Component::program).collect(), None)
    }
}

impl<T: ConnectTo<Conductor> + 'static> InstantiateProxies for Vec<T> {
    fn instantiate_proxies(self: Box<Self>, request: InitializeRequest) -> BoxFuture<'static, Result<ProxiesFor>> {
        let proxies = self.into_iter().map(DynConnectTo::new).collect();
        Box::pin(std::future::ready(Ok((request, proxies))))
    }

    fn fixed(self: Box<Self>) -> Fixed<Box<dyn InstantiateProxies>> {
        known(named(self.into_iter().map(DynConnectTo::new).collect()), None)
    }
}

impl<F, Fut> InstantiateProxiesAndAgent for F
where
    F: FnOnce(InitializeRequest) -> Fut + Send + 'static,
    Fut: Future<Output = Result<ProxiesAndAgentFor>> + Send + 'static,
{
    fn instantiate_proxies_and_agent(
        self: Box<Self>,
        request: InitializeRequest,
    ) -> BoxFuture<'static, Result<ProxiesAndAgentFor>> {
        Box::pin(self(request))
    }

    fn fixed(self: Box<Self>) -> Fixed<Box<dyn InstantiateProxiesAndAgent>> {
        Fixed::Ask(self)
    }
}

impl<F, Fut> InstantiateProxies for F
where
    F: FnOnce(InitializeRequest) -> Fut + Send + 'static,
    Fut: Future<Output = Result<ProxiesFor>> + Send + 'static,
{
    fn instantiate_proxies(self: Box<Self>, request: InitializeRequest) -> BoxFuture<'static, Result<ProxiesFor>> {
        Box::pin(self(request))
    }

    fn fixed(self: Box<Self>) -> Fixed<Box<dyn InstantiateProxies>> {
        Fixed::Ask(self)
    }
}

/// The typed request, and its params as they came.
fn typed(initialize: &Frame) -> Result<InitializeRequest> {
    InitializeRequest::parse_params(
        greenroom_protocol::method::INITIALIZE,
        initialize.part(initialize.envelope().params),
    )
}

/// Other params, if the instantiator changed the request.
fn changed(before: &InitializeRequest, after: &InitializeRequest) -> Result<Option<bytes::Bytes>> {
    if before == after { Ok(None) } else { Ok(Some(after.params_text()?.into())) }
}

impl ConductorHostRole for Agent {
    type Instantiator = Box<dyn InstantiateProxiesAndAgent>;

    const ENDS_IN_AGENT: bool = true;

    fn instantiate(instantiator: Self::Instantiator, initialize: Frame) -> BoxFuture<'static, Result<Started>> {
        let ask = match instantiator.fixed() {
            Fixed::Known(started) => return Box::pin(std::future::ready(Ok(*started))),
            Fixed::Ask(ask) => ask,
        };
        Box::pin(async move {
            let request = typed(&initialize)?;
            let (after, proxies, agent) = ask.instantiate_proxies_and_agent(request.clone()).await?;
            let params = changed(&request, &after)?;
            let agent = Some(Component::once("agent", agent));
            Ok(Started(Components { proxies: named(proxies), agent, params }))
        })
    }
}

impl ConductorHostRole for Proxy {
    type Instantiator = Box<dyn InstantiateProxies>;

    const ENDS_IN_AGENT: bool = false;

    fn instantiate(instantiator: Self::Instantiator, initialize: Frame) -> BoxFuture<'static, Result<Started>> {
        let ask = match instantiator.fixed() {
            Fixed::Known(started) => return Box::pin(std::future::ready(Ok(*started))),
            Fixed::Ask(ask) => ask,
        };
        Box::pin(async move {
            let request = typed(&initialize)?;
            let (after, proxies) = ask.instantiate_proxies(request.clone()).await?;
            let params = changed(&request, &after)?;
            Ok(Started(Components { proxies: named(proxies), agent: None, params }))
        })
    }
}
