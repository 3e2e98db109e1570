//! Proxies: standing between a client and an agent.
//!
#![doc = include_str!("proxies.md")]
