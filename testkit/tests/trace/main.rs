//! Recordings of chains: what is in them, and that the chain does not notice them.

mod failing;
mod flow;
mod support;
