//! The test agent: every request, command and scenario of protocol version 1, the baseline of version
//! 2, and both in one program.

mod commands;
mod elicitations;
mod paths;
mod scenarios;
mod sessions;
mod support;

#[cfg(feature = "unstable_protocol_v2")]
mod v2;
#[cfg(feature = "unstable_protocol_v2")]
mod versions;
