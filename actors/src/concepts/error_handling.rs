//! Errors: where they come from, where they go, and what they may say.
//!
#![doc = include_str!("error_handling.md")]
