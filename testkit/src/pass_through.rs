//! A proxy that changes nothing.

use greenroom::{Conductor, ConnectTo, Proxy};

/// A proxy without handlers: every message passes on as it is, in both directions and in every version
/// of the protocol.
#[must_use]
pub fn pass_through() -> impl ConnectTo<Conductor> {
    Proxy.builder().without_acp_version_guard().name("pass-through-proxy")
}
