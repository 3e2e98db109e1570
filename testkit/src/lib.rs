//! What tests of ACP programs need: agents and proxies that behave predictably, peers that speak
//! raw bytes from a script, and a monkey that breaks actors.
//!
//! - [`testy()`], [`pass_through()`] and [`arrow`]: components, each also a program of this package;
//!   [`test_binaries`] finds the programs.
//! - [`http_agent`]: an agent behind HTTP for clients of other people, also a program.
//! - [`scripted`]: the far side of a connection, byte for byte.
//! - [`chaos`]: kill, stop, panic and stall any actor of any tree, from a seed that can be
//!   replayed, and prove afterwards that nothing was lost.
//! - [`capture`]: everything that is logged.
//! - [`session_cost`]: what a message costs while thousands of sessions are open.

pub mod capture;
pub mod chaos;
pub mod scripted;
pub mod session_cost;
pub mod test_binaries;
pub mod testy;

mod http_agent;
mod pass_through;
mod program;

pub use greenroom_conductor::embedded::arrow_proxy as arrow;
pub use http_agent::http_agent;
pub use pass_through::pass_through;
pub use program::run;
pub use testy::testy;
