//! Supervised actor trees for the Agent Client Protocol (ACP).
//!
//! The front door: everything an application needs, under one name. [`concepts`] explains it, one
//! chapter for each idea; begin with [`concepts::connections`] or [`concepts::acp_basics`]. See the
//! crates below for how it works: `greenroom-protocol` (frames, ids, errors), `greenroom-actors` (the
//! trees), `greenroom-transports` (bytes).
//!
//! Documentation that says "spec §…" means the wire and interface rules that this crate was built from;
//! the number is that of the rule. Where it matters to an application, the rule stands beside it.

pub mod concepts;

pub use greenroom_actors::*;
#[doc(hidden)]
pub use greenroom_protocol::__private;
#[cfg(feature = "socket")]
pub use greenroom_transports::Socket;
#[cfg(feature = "stdio")]
pub use greenroom_transports::Stdio;
#[cfg(feature = "process")]
pub use greenroom_transports::{AcpAgent, AcpAgentConfig};
pub use greenroom_transports::{ByteStreams, Lines};

/// ACP over HTTP with SSE, and over WebSocket.
///
/// - Feature `http-client`: [`HttpClient`](http::HttpClient).
/// - Feature `http-server`: [`AcpHttpServer`](http::AcpHttpServer), and with `http-axum` its
///   `into_router`.
#[cfg(any(feature = "http-client", feature = "http-server"))]
pub mod http {
    #[cfg(feature = "http-server")]
    pub use greenroom_transports::{
        AcpFuture, AcpHttpServer, AcpService, AllowedHosts, BearerToken, CorsOptions, ResponseBody, RunningServer,
        ServerLimits, ServerOptions,
    };
    #[cfg(feature = "http-client")]
    pub use greenroom_transports::{HttpClient, HttpClientBuilder, HttpClientError, HttpClientOptions};
}

/// Compiles the programs of the README.
#[cfg(all(doctest, feature = "process", feature = "stdio"))]
#[doc = include_str!("../../README.md")]
struct Readme;
