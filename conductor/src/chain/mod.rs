//! The actors of one running chain.

mod end;
mod message;
mod opener;
mod supervisor;
mod traffic;

pub use supervisor::RunningChain;
pub(crate) use supervisor::{ChainSpec, start};
