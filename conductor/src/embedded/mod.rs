//! The components of the chain that needs no other program: an arrow proxy in front of an echo
//! agent.

mod arrow;
mod echo;

pub use arrow::arrow_proxy;
pub use echo::echo_agent;
