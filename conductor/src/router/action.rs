//! What the router tells its driver, and how a chain is described to it.

use std::fmt;

use bytes::Bytes;
use greenroom_protocol::Batches;
use greenroom_protocol::{Dialect, Frame, Outbound};

/// One connection of the conductor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hop {
    /// Upstream: the client, or the outer conductor in proxy mode.
    Client,
    /// A component, counted from the left. In agent mode the last one is the agent.
    Component(usize),
}

/// What stands at the right end of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The last component is an agent; upstream is a client.
    Agent,
    /// All components are proxies; upstream is an outer conductor, which also carries the
    /// traffic of the right end, inside successor envelopes.
    Proxy,
}

/// How to address one proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyDialect {
    /// Find out by asking: the legacy name first for protocol version 1, else the modern one.
    #[default]
    Auto,
    /// Always `_proxy/…`.
    Legacy,
    /// Always `proxy/…`.
    Modern,
}

impl ProxyDialect {
    /// The fixed spelling; `None` for [`ProxyDialect::Auto`].
    pub(super) const fn fixed(self) -> Option<Dialect> {
        match self {
            Self::Auto => None,
            Self::Legacy => Some(Dialect::Legacy),
            Self::Modern => Some(Dialect::Modern),
        }
    }
}

/// Which components form the chain, and its switches.
#[derive(Clone, Debug)]
pub struct ChainShape {
    /// What stands at the right end.
    pub mode: Mode,
    /// The proxies from left to right. In agent mode the agent comes on top of these, so
    /// `Hop::Component(proxies.len())` is the agent.
    pub proxies: Vec<ProxyDialect>,
    /// Whether JSON arrays are accepted, on every hop.
    pub batches: Batches,
    /// The lowest protocol version that the chain serves, 1 or 2. With 1, a request for version
    /// 0 counts as one for version 1; with 2, a request for less is answered `-32022`.
    pub lowest_version: u16,
}

impl ChainShape {
    /// A chain that ends in an agent.
    #[must_use]
    pub const fn agent(proxies: Vec<ProxyDialect>) -> Self {
        Self { mode: Mode::Agent, proxies, batches: Batches::Accept, lowest_version: 1 }
    }

    /// A chain that is a proxy itself. Without proxies it passes everything on.
    #[must_use]
    pub const fn proxy(proxies: Vec<ProxyDialect>) -> Self {
        Self { mode: Mode::Proxy, proxies, batches: Batches::Accept, lowest_version: 1 }
    }

    /// Number of components, the agent included.
    #[must_use]
    pub const fn components(&self) -> usize {
        match self.mode {
            Mode::Agent => self.proxies.len() + 1,
            Mode::Proxy => self.proxies.len(),
        }
    }
}

/// What came out of starting the components.
#[derive(Clone, Default)]
pub struct Instantiated {
    /// The proxies that were started, when the first request decided over them; `None` when they
    /// are those of the [`ChainShape`].
    pub proxies: Option<Vec<ProxyDialect>>,
    /// Other params for the first initialize, as JSON text; `None` leaves them as they came.
    pub params: Option<Bytes>,
}

/// What the driver has to do, in this order. `Debug` shows sizes only, never content.
#[derive(Clone)]
pub enum Action {
    /// Write the message to this hop.
    Send {
        /// Where to.
        to: Hop,
        /// What.
        message: Outbound,
    },
    /// Start all components, then call [`Router::instantiated`](crate::Router::instantiated).
    /// Asked at most once.
    Instantiate {
        /// The first valid initialize request, exactly as it came.
        initialize: Frame,
    },
    /// Start this component anew, then call [`Router::recreated`](crate::Router::recreated): it
    /// closed, or answers nothing but errors, because it does not know the spelling it was addressed
    /// with first. One that has not closed is to be ended when the new one runs, not before. Asked
    /// at most once a probe.
    Recreate {
        /// Which component.
        component: usize,
    },
    /// Nothing to do: the frame (or one entry of a batch) went nowhere. For counters.
    Drop {
        /// One of the constants in [`dropped`].
        reason: &'static str,
    },
}

impl fmt::Debug for Instantiated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instantiated")
            .field("proxies", &self.proxies)
            .field("params_bytes", &self.params.as_ref().map(Bytes::len))
            .finish()
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send { to, message } => {
                f.debug_struct("Send").field("to", to).field("bytes", &message.len()).finish()
            }
            Self::Instantiate { initialize } => f.debug_struct("Instantiate").field("initialize", initialize).finish(),
            Self::Recreate { component } => f.debug_struct("Recreate").field("component", component).finish(),
            Self::Drop { reason } => f.debug_struct("Drop").field("reason", reason).finish(),
        }
    }
}

/// Why a message went nowhere.
pub mod dropped {
    /// A line that does not start like JSON.
    pub const NOISE: &str = "noise";
    /// A malformed frame that looks like a response; those are never answered.
    pub const MALFORMED_RESPONSE: &str = "malformed response";
    /// A response that no request waits for.
    pub const UNKNOWN_RESPONSE: &str = "unknown response";
    /// A cancellation of an unknown, finished or already cancelled request, or without an id.
    pub const STALE_CANCEL: &str = "stale cancellation";
    /// A notification before the chain was initialised.
    pub const UNINITIALIZED: &str = "notification before initialize";
    /// A notification that may not stand at this place: an envelope from a peer that has no
    /// successor, a nested or broken envelope, an initialize without an id.
    pub const MISPLACED: &str = "misplaced notification";
    /// A notification to a hop that is down.
    pub const CLOSED: &str = "closed hop";
    /// A frame from a component that the chain does not have.
    pub const UNKNOWN_HOP: &str = "unknown hop";
}
