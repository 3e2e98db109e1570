//! Peers: whom a connection talks to, directly and through a conductor.
//!
#![doc = include_str!("peers.md")]
