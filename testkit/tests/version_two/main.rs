//! Protocol version 2 between real connections, and how it meets version 1.
//!
//! Tests named `statement_…` carry the numbers of the list of promises that
//! `testkit/tests/statements` keeps.
#![cfg(feature = "unstable_protocol_v2")]

mod commands;
mod coordination;
mod handshake;
mod proxied;
mod support;
