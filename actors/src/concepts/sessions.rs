//! Sessions: opening, reading, restoring and cancelling them.
//!
#![doc = include_str!("sessions.md")]
