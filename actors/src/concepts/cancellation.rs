//! Cancellation: asking a peer to stop one request, and being asked.
//!
#![doc = include_str!("cancellation.md")]
