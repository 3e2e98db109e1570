//! The conductor as a component.

use std::fmt;
use std::path::Path;

use greenroom::link::Link;
use greenroom::{Agent, Batches, ConnectTo, ConnectionOptions, Proxy, Result, Role};
use ractor::ActorCell;

use crate::chain::{ChainSpec, RunningChain, start};
use crate::component::ConductorHostRole;
use crate::instantiate::{InstantiateProxies, InstantiateProxiesAndAgent};
use crate::router::{ChainShape, ProxyDialect};
use crate::trace::{TraceWriter, WriteEvent};

/// Runs a chain of proxies, with or without an agent at its end.
///
/// To its client it looks like an agent ([`new_agent`](Self::new_agent)), or to an outer conductor
/// like a proxy ([`new_proxy`](Self::new_proxy)). The components start with the first initialize.
pub struct ConductorImpl<Host: ConductorHostRole> {
    host: Host,
    name: String,
    instantiator: Host::Instantiator,
    options: ConnectionOptions,
    batches: Batches,
    dialects: Option<Vec<ProxyDialect>>,
    trace: Option<TraceWriter>,
}

impl ConductorImpl<Agent> {
    /// A chain that ends in an agent.
    pub fn new_agent(name: impl ToString, instantiator: impl InstantiateProxiesAndAgent + 'static) -> Self {
        Self::new(Agent, name, Box::new(instantiator))
    }
}

impl ConductorImpl<Proxy> {
    /// A chain that is a proxy of a larger one.
    pub fn new_proxy(name: impl ToString, instantiator: impl InstantiateProxies + 'static) -> Self {
        Self::new(Proxy, name, Box::new(instantiator))
    }
}

impl<Host: ConductorHostRole> ConductorImpl<Host> {
    /// A chain for either role.
    pub fn new(host: Host, name: impl ToString, instantiator: Host::Instantiator) -> Self {
        Self {
            host,
            name: name.to_string(),
            instantiator,
            options: ConnectionOptions::default(),
            batches: Batches::Accept,
            dialects: None,
            trace: None,
        }
    }

    /// Sets limits and policies of every connection of the chain.
    #[must_use]
    pub fn options(mut self, options: ConnectionOptions) -> Self {
        self.options = options;
        self
    }

    /// Whether JSON arrays are taken apart or refused.
    #[must_use]
    pub fn batches(mut self, batches: Batches) -> Self {
        self.batches = batches;
        self
    }

    /// How to address each proxy, from left to right, instead of finding out.
    #[must_use]
    pub fn dialects(mut self, dialects: Vec<ProxyDialect>) -> Self {
        self.dialects = Some(dialects);
        self
    }

    /// Records what passes between the components: see [`trace`](crate::trace). The last of several
    /// destinations counts.
    #[must_use]
    pub fn trace_to(self, destination: impl WriteEvent) -> Self {
        self.with_trace_writer(TraceWriter::new(destination))
    }

    /// As [`trace_to`](Self::trace_to), into a file, which is emptied first.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn trace_to_path(self, path: impl AsRef<Path>) -> std::io::Result<Self> {
        Ok(self.with_trace_writer(TraceWriter::from_path(path)?))
    }

    /// As [`trace_to`](Self::trace_to), with a destination that is ready.
    #[must_use]
    pub fn with_trace_writer(mut self, writer: TraceWriter) -> Self {
        self.trace = Some(writer);
        self
    }

    /// Connects upstream and runs the chain until it is over.
    ///
    /// Dropping the future ends the chain at once, its processes included.
    ///
    /// # Errors
    /// The component that died, with its exit status; a connection that broke.
    pub async fn run(self, transport: impl ConnectTo<Host>) -> Result<()> {
        self.serve(transport.into_link()).await
    }

    /// Starts the chain below an actor of the embedding program and returns at once.
    ///
    /// # Errors
    /// When the transport does not open, or `supervisor` is shutting down.
    pub async fn spawn_linked(self, transport: impl ConnectTo<Host>, supervisor: ActorCell) -> Result<RunningChain> {
        start(self.into_spec(), transport.into_link(), Some(supervisor)).await
    }

    /// Starts the chain and returns at once. It ends when the returned handle is dropped.
    ///
    /// # Errors
    /// When the transport does not open.
    pub async fn start(self, transport: impl ConnectTo<Host>) -> Result<RunningChain> {
        start(self.into_spec(), transport.into_link(), None).await
    }

    async fn serve(self, link: Link) -> Result<()> {
        let chain = start(self.into_spec(), link, None).await?;
        chain.closed().await
    }

    fn into_spec(self) -> ChainSpec {
        let mut shape = if Host::ENDS_IN_AGENT { ChainShape::agent(Vec::new()) } else { ChainShape::proxy(Vec::new()) };
        shape.batches = self.batches;
        let instantiator = self.instantiator;
        ChainSpec {
            name: self.name,
            shape,
            dialects: self.dialects,
            instantiate: Box::new(move |initialize| Host::instantiate(instantiator, initialize)),
            options: self.options,
            trace: self.trace,
        }
    }
}

impl<Host> ConnectTo<Host::Counterpart> for ConductorImpl<Host>
where
    Host: ConductorHostRole,
    Host::Instantiator: 'static,
{
    async fn connect_to(self, client: impl ConnectTo<<Host::Counterpart as Role>::Counterpart>) -> Result<()> {
        self.serve(client.into_link()).await
    }

    fn into_link(self) -> Link {
        Link::component(|link| self.serve(link))
    }
}

impl<Host: ConductorHostRole> fmt::Debug for ConductorImpl<Host> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConductorImpl").field("host", &self.host).field("name", &self.name).finish_non_exhaustive()
    }
}
