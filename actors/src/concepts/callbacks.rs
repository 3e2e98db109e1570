//! Callbacks: handlers, ordered response callbacks, and what they must not do.
//!
#![doc = include_str!("callbacks.md")]
