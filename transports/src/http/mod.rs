//! ACP over HTTP: requests by POST and answers over SSE, or both over one WebSocket.
//!
//! One endpoint, `/acp` by default. `headers` and `scope` are what both sides have to agree on.

#[cfg(feature = "client")]
pub(crate) mod client;
mod headers;
mod scope;
#[cfg(feature = "service")]
mod server;

#[cfg(feature = "service")]
pub use server::{
    AcpFuture, AcpHttpServer, AcpService, AllowedHosts, BearerToken, CorsOptions, ResponseBody, RunningServer,
    ServerLimits, ServerOptions,
};
