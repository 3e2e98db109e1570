//! Supervision: the tree of a connection, what survives what, and breaking it on purpose.
//!
#![doc = include_str!("supervision.md")]
