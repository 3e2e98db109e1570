//! The types of the protocol: version 1 flat and as [`v1`], version 2 as `v2` (feature
//! `unstable_protocol_v2`), and the messages between a conductor and its proxies.
//!
//! The types come from the schema crate. Every request and notification among them implements the
//! message traits, so that it can be sent and handled by its type.

mod implement;
mod messages_v1;
#[cfg(feature = "unstable_protocol_v2")]
mod messages_v2;
mod older;
mod proxy;

pub use agent_client_protocol_schema::v1::*;
pub use agent_client_protocol_schema::{IntoMaybeUndefined, IntoOption, MaybeUndefined, ProtocolVersion};

pub use proxy::{InitializeProxyRequest, METHOD_INITIALIZE_PROXY, METHOD_SUCCESSOR_MESSAGE, SuccessorMessage};

/// Protocol version 1.
pub mod v1 {
    pub use agent_client_protocol_schema::v1::*;

    pub use super::proxy::InitializeProxyRequest;
}

/// Protocol version 2.
#[cfg(feature = "unstable_protocol_v2")]
pub mod v2 {
    pub use agent_client_protocol_schema::v2::*;

    pub use super::proxy::v2::InitializeProxyRequest;
}
