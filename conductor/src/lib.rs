//! Chains of proxies and agents of the Agent Client Protocol (ACP), supervised.
//!
//! [`ConductorImpl`] runs a chain as a tree of actors; [`Router`] is its pure core: it decides
//! where every frame goes, under which id and in which spelling, and has no runtime, no clock and
//! no I/O.

mod chain;
pub mod cli;
mod component;
mod conductor;
pub mod embedded;
mod instantiate;
mod router;
mod runner;
pub mod trace;
pub mod trace_viewer;

pub use chain::RunningChain;
pub use cli::{ConductorArgs, ConductorCommand};
pub use component::{AgentOnly, CommandLineComponents, ConductorHostRole, ProxiesAndAgent};
pub use conductor::ConductorImpl;
pub use greenroom_protocol::Batches;
pub use instantiate::{InstantiateProxies, InstantiateProxiesAndAgent, ProxiesAndAgentFor, ProxiesFor};
#[cfg(feature = "unstable_protocol_v2")]
pub use instantiate::{ProxiesAndAgentForV2, ProxiesForV2};
pub use router::{Action, ChainShape, ComponentIndex, Hop, Instantiated, Mode, ProxyDialect, Router, dropped};
pub use runner::ConductorRunner;
