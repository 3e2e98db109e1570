//! Connections: starting them, using them, and how they end.
//!
#![doc = include_str!("connections.md")]
