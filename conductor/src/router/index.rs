//! Which place of a chain is meant.

use std::fmt;

/// A place in a chain, as recordings name it: `Client`, `Proxy(0)`, `Agent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ComponentIndex {
    /// What is left of the chain.
    Client,
    /// A proxy, counted from the left.
    Proxy(usize),
    /// What is right of the proxies: the agent, or beyond the end of a nested chain.
    Agent,
}

impl ComponentIndex {
    /// What is left of this proxy.
    #[must_use]
    pub const fn predecessor_of(proxy_index: usize) -> Self {
        match proxy_index.checked_sub(1) {
            Some(left) => Self::Proxy(left),
            None => Self::Client,
        }
    }

    /// What is right of this proxy in a chain of so many proxies.
    #[must_use]
    pub const fn successor_of(proxy_index: usize, num_proxies: usize) -> Self {
        match proxy_index.checked_add(1) {
            Some(right) if right < num_proxies => Self::Proxy(right),
            _ => Self::Agent,
        }
    }
}

impl fmt::Display for ComponentIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client => f.write_str("Client"),
            Self::Proxy(index) => write!(f, "Proxy({index})"),
            Self::Agent => f.write_str("Agent"),
        }
    }
}
