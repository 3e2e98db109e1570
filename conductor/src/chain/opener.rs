//! Starting the components of a chain: each becomes a supervised connection below the chain.

use std::sync::Arc;

use greenroom::link::Link;
use greenroom::runtime::{LiveCount, Mailbox, Node};
use greenroom::{ConnectionOptions, Error, Inbound, OnEnd, Outlet, RawConnection, Result, program_name};
use ractor::ActorCell;

use super::message::{Opened, Traffic};
use crate::component::{Component, Components};
use crate::router::{Hop, Instantiated, ProxyDialect};

/// What is needed to hang a connection below a chain.
#[derive(Clone)]
pub(super) struct Opener {
    pub(super) traffic: Mailbox<Traffic>,
    pub(super) node: Arc<Node>,
    pub(super) live: LiveCount,
    pub(super) options: ConnectionOptions,
    pub(super) dialects: Option<Vec<ProxyDialect>>,
}

impl Opener {
    /// Opens one connection. What it says goes into the traffic, its end too.
    pub(super) async fn connect(
        &self,
        hop: Hop,
        generation: u32,
        name: &str,
        link: Link,
        chain: ActorCell,
    ) -> Result<RawConnection> {
        let traffic = self.traffic.clone();
        let outlet: Outlet = Arc::new(move |item: Inbound| drop(traffic.send(Traffic::Inbound(hop, generation, item))));
        let traffic = self.traffic.clone();
        let on_end: OnEnd = Box::new(move |result| drop(traffic.send(Traffic::Ended(hop, generation, result))));
        let kind = if hop == Hop::Client { "upstream" } else { "component" };
        let node = self.node.child(name, kind);
        let started =
            RawConnection::start(link, outlet, on_end, node.clone(), self.live.clone(), &self.options, Some(chain));
        let started = started.await;
        if started.is_err() {
            self.node.disown(&node);
        }
        started
    }

    /// Starts every component, from left to right. If one cannot be started, the others are ended
    /// again.
    pub(super) async fn open(&self, components: &mut Components, chain: ActorCell) -> Result<Opened> {
        let proxies = components.proxies.len();
        let mut connections = Vec::with_capacity(proxies + 1);
        let all = components.proxies.iter_mut().chain(components.agent.as_mut());
        for (index, component) in all.enumerate() {
            match self.component(index, 0, component, chain.clone()).await {
                Ok(connection) => connections.push(connection),
                Err(error) => {
                    for connection in &connections {
                        connection.kill();
                    }
                    return Err(error);
                }
            }
        }
        let dialects = match &self.dialects {
            Some(dialects) if dialects.len() == proxies => dialects.clone(),
            _ => vec![ProxyDialect::Auto; proxies],
        };
        let instantiated = Instantiated { proxies: Some(dialects), params: components.params.take() };
        Ok(Opened { instantiated, connections })
    }

    /// Starts component number `index`, the first time or anew.
    pub(super) async fn component(
        &self,
        index: usize,
        generation: u32,
        component: &mut Component,
        chain: ActorCell,
    ) -> Result<RawConnection> {
        let name = format!("component-{index}");
        let Some(link) = component.link() else {
            return Err(Error::internal_error()
                .data(format!("component {} cannot be started anew", program_name(&component.name))));
        };
        self.connect(Hop::Component(index), generation, &name, link, chain).await
    }
}
