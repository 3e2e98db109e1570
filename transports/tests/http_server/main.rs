//! The HTTP server, seen from the wire: raw sockets, and one test for each rule.

mod agent;
mod client;
mod sse_client;
mod ws_client;

#[cfg(feature = "axum")]
mod axum_host;
mod cors;
mod delete;
mod get;
mod leaving;
mod limits;
mod overlapping;
mod post;
mod post_batch;
mod post_initialize;
mod post_session;
mod resumption;
mod robustness;
mod routing;
mod security;
mod shutdown;
mod slow_readers;
mod websocket;
