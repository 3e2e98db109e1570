//! The programs of the documentation, compiled under the crate name that they use, and run where
//! they can run. A chapter that only shows a fragment has a whole program here that contains it.

extern crate greenroom as agent_client_protocol;

mod cancellation;
#[cfg(unix)]
mod config;
mod connection_drivers;
mod cookbook;
mod core_library;
mod migrating_to_2;
mod ordered_dispatch;
mod raw_responses;
mod sending_requests;
mod transports;
#[cfg(feature = "unstable_protocol_v2")]
mod version_routing;
