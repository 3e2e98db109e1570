//! Chains of proxies and agents of the Agent Client Protocol (ACP).
//!
//! [`Router`] is the pure core: it decides where every frame of a chain goes, under which id and
//! in which spelling. It has no runtime, no clock and no I/O; whoever drives it moves the bytes.

#![allow(clippy::result_large_err, reason = "the public fields of the one error type are documented interface")]

mod router;

pub use router::{Action, Batches, ChainShape, Hop, Instantiated, Mode, ProxyDialect, Router, dropped};
