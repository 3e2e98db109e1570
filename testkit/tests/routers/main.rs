//! Protocol routers and the protocol connector over real byte streams. The tables of the rules are
//! tests of the protocol crate; these show that connections follow them, byte for byte.

#[cfg(feature = "unstable_protocol_v2")]
mod agents;
mod breaking;
#[cfg(feature = "unstable_protocol_v2")]
mod connector;
#[cfg(feature = "unstable_protocol_v2")]
mod fallback;
mod programs;
mod proxies;
mod single;
mod support;
