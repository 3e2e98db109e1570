//! How things work together: one chapter an idea, each with a program.
//!
//! Read [`acp_basics`] and [`connections`] first.

#[doc = include_str!("concepts/acp_basics.md")]
pub mod acp_basics {}

#[doc = include_str!("concepts/callbacks.md")]
pub mod callbacks {}

#[doc = include_str!("concepts/cancellation.md")]
pub mod cancellation {}

#[doc = include_str!("concepts/connections.md")]
pub mod connections {}

#[doc = include_str!("concepts/error_handling.md")]
pub mod error_handling {}

#[doc = include_str!("concepts/ordering.md")]
pub mod ordering {}

#[doc = include_str!("concepts/peers.md")]
pub mod peers {}

#[doc = include_str!("concepts/proxies.md")]
pub mod proxies {}

#[doc = include_str!("concepts/sessions.md")]
pub mod sessions {}
