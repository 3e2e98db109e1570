//! A deterministic agent, for tests of clients, proxies and conductors.
//!
//! A prompt is a [`TestyCommand`], as plain text or as JSON; `help` lists them. Sessions are named
//! `session-1`, `session-2` and so on, and an id is never used again. Prompts run beside the
//! dispatch loop, so one that waits holds nothing up.
//!
//! Each version of the protocol has an implementation of its own: [`agent_v1`] and, with the
//! feature `unstable_protocol_v2`, `agent_v2`. [`testy`] is what the program of this name serves.

mod command;
mod root;
mod v1;

#[cfg(feature = "unstable_protocol_v2")]
mod v2;

use greenroom::{Client, ConnectTo};

pub use command::{TestyCommand, TestyScenario};
pub use v1::agent_v1;

#[cfg(feature = "unstable_protocol_v2")]
pub use v2::agent_v2;

/// The agent of the program `testy`: of both versions of the protocol, as the client's initialize
/// selects. Without the feature `unstable_protocol_v2` it is [`agent_v1`].
#[cfg(feature = "unstable_protocol_v2")]
#[must_use]
pub fn testy() -> impl ConnectTo<Client> {
    greenroom::Agent.protocol_router().with_v1(agent_v1()).with_v2(agent_v2())
}

/// The agent of the program `testy`: [`agent_v1`]. With the feature `unstable_protocol_v2` it speaks
/// both versions.
#[cfg(not(feature = "unstable_protocol_v2"))]
#[must_use]
pub fn testy() -> impl ConnectTo<Client> {
    agent_v1()
}
