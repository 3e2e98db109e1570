//! The router against scripted peers, one file a concern.
//!
//! `harness` feeds single frames and shows the actions as text; `network` connects simulated
//! proxies and ends that speak only their own dialect.

mod harness;
mod network;

mod batch;
mod cancel;
mod closing;
mod delivery;
mod envelope;
mod initialize;
mod matrix;
mod probe;
mod random;
