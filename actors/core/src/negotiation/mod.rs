//! Components that serve more than one protocol version: routers in front of agents and proxies, and
//! the connector of clients. The rules are in `greenroom_protocol::selection` and `fallback`; here
//! they meet links.

mod connector;
mod router;

pub use connector::ClientProtocolConnector;
pub use router::{AgentProtocolRouter, ProxyProtocolRouter};
