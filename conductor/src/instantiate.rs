//! Starting the components of a chain, when the first initialize has come.

use greenroom::schema::v1::InitializeRequest;
#[cfg(feature = "unstable_protocol_v2")]
use greenroom::schema::v2;
use greenroom::{
    AcpAgent, Agent, BoxFuture, Client, Conductor, ConnectTo, DynConnectTo, Error, JsonRpcMessage, Proxy, Result,
};
use greenroom_protocol::Frame;

use crate::component::sealed::Started;
use crate::component::{AgentOnly, CommandLineComponents, Component, Components, ConductorHostRole, ProxiesAndAgent};

/// What a typed instantiator returns: the request to send on, the proxies, the agent.
pub type ProxiesAndAgentFor = (InitializeRequest, Vec<DynConnectTo<Conductor>>, DynConnectTo<Client>);

/// What a typed instantiator of proxies returns: the request to send on, and the proxies.
pub type ProxiesFor = (InitializeRequest, Vec<DynConnectTo<Conductor>>);

/// [`ProxiesAndAgentFor`] for the second version of the protocol.
#[cfg(feature = "unstable_protocol_v2")]
pub type ProxiesAndAgentForV2 = (v2::InitializeRequest, Vec<DynConnectTo<Conductor>>, DynConnectTo<Client>);

/// [`ProxiesFor`] for the second version of the protocol.
#[cfg(feature = "unstable_protocol_v2")]
pub type ProxiesForV2 = (v2::InitializeRequest, Vec<DynConnectTo<Conductor>>);

/// Starts the proxies and the agent of a chain. Called once for each connection, lazily, with the
/// first initialize.
pub trait InstantiateProxiesAndAgent: Send {
    /// Chooses and creates the components. The request may be changed.
    fn instantiate_proxies_and_agent(
        self: Box<Self>,
        request: InitializeRequest,
    ) -> BoxFuture<'static, Result<ProxiesAndAgentFor>>;

    /// The same for an initialize of the second version of the protocol.
    ///
    /// # Errors
    /// Without an implementation: the initialize is refused, and the chain stays shut.
    #[cfg(feature = "unstable_protocol_v2")]
    fn instantiate_v2_proxies_and_agent(
        self: Box<Self>,
        _request: v2::InitializeRequest,
    ) -> BoxFuture<'static, Result<ProxiesAndAgentForV2>> {
        Box::pin(std::future::ready(Err(only_version_1())))
    }

    /// Whether the components are known without the request. Then nobody has to parse it, and it is
    /// passed on exactly as it came, whatever its version.
    #[doc(hidden)]
    fn is_fixed(&self) -> bool {
        false
    }

    /// Those components.
    #[doc(hidden)]
    fn into_fixed(self: Box<Self>) -> Option<Box<Started>> {
        None
    }
}

/// Starts the proxies of a chain that is a proxy itself.
pub trait InstantiateProxies: Send {
    /// Chooses and creates the components. The request may be changed.
    fn instantiate_proxies(self: Box<Self>, request: InitializeRequest) -> BoxFuture<'static, Result<ProxiesFor>>;

    /// The same for an initialize of the second version of the protocol.
    ///
    /// # Errors
    /// Without an implementation: the initialize is refused, and the chain stays shut.
    #[cfg(feature = "unstable_protocol_v2")]
    fn instantiate_v2_proxies(
        self: Box<Self>,
        _request: v2::InitializeRequest,
    ) -> BoxFuture<'static, Result<ProxiesForV2>> {
        Box::pin(std::future::ready(Err(only_version_1())))
    }

    /// As in [`InstantiateProxiesAndAgent`].
    #[doc(hidden)]
    fn is_fixed(&self) -> bool {
        false
    }

    /// As in [`InstantiateProxiesAndAgent`].
    #[doc(hidden)]
    fn into_fixed(self: Box<Self>) -> Option<Box<Started>> {
        None
    }
}

#[cfg(feature = "unstable_protocol_v2")]
fn only_version_1() -> Error {
    Error::invalid_request().data("the components of this chain are chosen for protocol version 1 only")
}

fn known(proxies: Vec<Component>, agent: Option<Component>) -> Option<Box<Started>> {
    Some(Box::new(Started(Components { proxies, agent, params: None })))
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

    #[cfg(feature = "unstable_protocol_v2")]
    fn instantiate_v2_proxies_and_agent(
        self: Box<Self>,
        request: v2::InitializeRequest,
    ) -> BoxFuture<'static, Result<ProxiesAndAgentForV2>> {
        Box::pin(std::future::ready(Ok((request, self.proxies, self.agent))))
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn into_fixed(self: Box<Self>) -> Option<Box<Started>> {
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

    #[cfg(feature = "unstable_protocol_v2")]
    fn instantiate_v2_proxies_and_agent(
        self: Box<Self>,
        request: v2::InitializeRequest,
    ) -> BoxFuture<'static, Result<ProxiesAndAgentForV2>> {
        Box::pin(std::future::ready(Ok((request, Vec::new(), DynConnectTo::new(self.0)))))
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn into_fixed(self: Box<Self>) -> Option<Box<Started>> {
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

    #[cfg(feature = "unstable_protocol_v2")]
    fn instantiate_v2_proxies_and_agent(
        self: Box<Self>,
        request: v2::InitializeRequest,
    ) -> BoxFuture<'static, Result<ProxiesAndAgentForV2>> {
        let components = split(self.0).map(|(proxies, agent)| {
            let proxies = proxies.into_iter().map(DynConnectTo::new).collect();
            (request, proxies, DynConnectTo::new(agent))
        });
        Box::pin(std::future::ready(components))
    }

    fn is_fixed(&self) -> bool {
        // Without an agent there is nothing to start; asking says so.
        !self.0.is_empty()
    }

    fn into_fixed(self: Box<Self>) -> Option<Box<Started>> {
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

    #[cfg(feature = "unstable_protocol_v2")]
    fn instantiate_v2_proxies(
        self: Box<Self>,
        request: v2::InitializeRequest,
    ) -> BoxFuture<'static, Result<ProxiesForV2>> {
        let proxies = self.0.into_iter().map(DynConnectTo::new).collect();
        Box::pin(std::future::ready(Ok((request, proxies))))
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn into_fixed(self: Box<Self>) -> Option<Box<Started>> {
        known(self.0.into_iter().map(Component::program).collect(), None)
    }
}

impl<T: ConnectTo<Conductor> + 'static> InstantiateProxies for Vec<T> {
    fn instantiate_proxies(self: Box<Self>, request: InitializeRequest) -> BoxFuture<'static, Result<ProxiesFor>> {
        let proxies = self.into_iter().map(DynConnectTo::new).collect();
        Box::pin(std::future::ready(Ok((request, proxies))))
    }

    #[cfg(feature = "unstable_protocol_v2")]
    fn instantiate_v2_proxies(
        self: Box<Self>,
        request: v2::InitializeRequest,
    ) -> BoxFuture<'static, Result<ProxiesForV2>> {
        let proxies = self.into_iter().map(DynConnectTo::new).collect();
        Box::pin(std::future::ready(Ok((request, proxies))))
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn into_fixed(self: Box<Self>) -> Option<Box<Started>> {
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
}

impl<F, Fut> InstantiateProxies for F
where
    F: FnOnce(InitializeRequest) -> Fut + Send + 'static,
    Fut: Future<Output = Result<ProxiesFor>> + Send + 'static,
{
    fn instantiate_proxies(self: Box<Self>, request: InitializeRequest) -> BoxFuture<'static, Result<ProxiesFor>> {
        Box::pin(self(request))
    }
}

/// The typed request.
fn typed<T: JsonRpcMessage>(initialize: &Frame) -> Result<T> {
    T::parse_params(greenroom_protocol::method::INITIALIZE, initialize.part(initialize.envelope().params))
}

/// Other params, if the instantiator changed the request. Otherwise they stay as they came, with
/// everything that the type does not know.
fn changed<T: JsonRpcMessage + PartialEq>(before: &T, after: &T) -> Result<Option<bytes::Bytes>> {
    if before == after { Ok(None) } else { Ok(Some(after.params_text()?.into())) }
}

/// Whether the request is one of the second version of the protocol, or a later one.
#[cfg(feature = "unstable_protocol_v2")]
fn is_version_2(initialize: &Frame) -> bool {
    #[derive(serde::Deserialize)]
    struct Versioned {
        #[serde(rename = "protocolVersion")]
        version: u16,
    }
    let params = initialize.part(initialize.envelope().params);
    serde_json::from_str::<Versioned>(params).is_ok_and(|params| params.version >= 2)
}

/// Asks for the components with a request of this version, whose version is not for the asked to
/// change.
macro_rules! ask {
    ($request:ty, $initialize:expr, $call:expr) => {{
        let request: $request = typed($initialize)?;
        let mut chosen = $call(request.clone()).await?;
        chosen.0.protocol_version = request.protocol_version.clone();
        let params = changed(&request, &chosen.0)?;
        (chosen, params)
    }};
}

impl ConductorHostRole for Agent {
    type Instantiator = Box<dyn InstantiateProxiesAndAgent>;

    const ENDS_IN_AGENT: bool = true;

    fn instantiate(instantiator: Self::Instantiator, initialize: Frame) -> BoxFuture<'static, Result<Started>> {
        Box::pin(async move {
            if instantiator.is_fixed() {
                return instantiator.into_fixed().map(|started| *started).ok_or_else(Error::internal_error);
            }
            let started = |proxies, agent, params| {
                let agent = Some(Component::once("agent", agent));
                Started(Components { proxies: named(proxies), agent, params })
            };
            #[cfg(feature = "unstable_protocol_v2")]
            if is_version_2(&initialize) {
                let ask = |request| instantiator.instantiate_v2_proxies_and_agent(request);
                let ((_, proxies, agent), params) = ask!(v2::InitializeRequest, &initialize, ask);
                return Ok(started(proxies, agent, params));
            }
            let ask = |request| instantiator.instantiate_proxies_and_agent(request);
            let ((_, proxies, agent), params) = ask!(InitializeRequest, &initialize, ask);
            Ok(started(proxies, agent, params))
        })
    }
}

impl ConductorHostRole for Proxy {
    type Instantiator = Box<dyn InstantiateProxies>;

    const ENDS_IN_AGENT: bool = false;

    fn instantiate(instantiator: Self::Instantiator, initialize: Frame) -> BoxFuture<'static, Result<Started>> {
        Box::pin(async move {
            if instantiator.is_fixed() {
                return instantiator.into_fixed().map(|started| *started).ok_or_else(Error::internal_error);
            }
            let started = |proxies, params| Started(Components { proxies: named(proxies), agent: None, params });
            #[cfg(feature = "unstable_protocol_v2")]
            if is_version_2(&initialize) {
                let ask = |request| instantiator.instantiate_v2_proxies(request);
                let ((_, proxies), params) = ask!(v2::InitializeRequest, &initialize, ask);
                return Ok(started(proxies, params));
            }
            let ask = |request| instantiator.instantiate_proxies(request);
            let ((_, proxies), params) = ask!(InitializeRequest, &initialize, ask);
            Ok(started(proxies, params))
        })
    }
}
