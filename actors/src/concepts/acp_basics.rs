//! The protocol in short: the messages of one conversation.
//!
#![doc = include_str!("acp_basics.md")]
