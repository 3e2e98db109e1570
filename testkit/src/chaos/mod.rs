//! Breaking actors on purpose, and proving that it changed nothing.
//!
//! - [`Monkey`] attacks the actors of any trees, from a seed that replays the same decisions.
//! - [`Report`] counts what it did, by kind of actor and kind of fault.
//! - [`Ledger`] knows every message that was sent and finds what is lost, repeated, out of order
//!   or settled twice.
//! - [`Soak`] puts the three together: one run with two connected trees under attack, with plain
//!   messages both ways, sessions of either version of the protocol, and handlers that come and go.
//! - [`HttpSoak`] does the same over real sockets, and breaks those too.
//! - [`Campaign`] does many runs, each in a runtime of its own.

mod campaign;
mod ending;
mod http;
mod lanes;
mod ledger;
mod monkey;
mod parent;
mod random;
mod report;
#[cfg(feature = "unstable_protocol_v2")]
mod second;
mod sessions;
mod soak;
mod traffic;
mod workload;

pub use campaign::{Campaign, Flavour};
pub use ending::Ending;
pub use http::HttpSoak;
pub use ledger::Ledger;
pub use monkey::{Attack, FaultKind, Monkey};
pub use parent::Parent;
pub use random::Random;
pub use report::Report;
pub use soak::{Fault, Protocol, Soak};
