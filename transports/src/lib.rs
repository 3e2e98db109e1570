//! Everything that turns bytes of the outside world into a [`Link`] of a connection.
//!
//! - [`ByteStreams`] and [`Lines`]: any reader, writer, stream or sink.
//! - [`Stdio`] (feature `stdio`): the stdin and stdout of this process.
//! - [`AcpAgent`] (feature `process`): an agent that runs as a child process.
//! - [`Socket`] (feature `socket`): Unix and TCP sockets.
//! - [`HttpClient`] (feature `client`): an agent behind HTTP with server-sent events, or a WebSocket.
//!
//! On the wire, every message is one line of JSON that ends with a line feed; nothing else is on
//! the stream. The actors that
//! read and write those lines live below this crate; here are only the adapters, which own file
//! descriptors and processes and give them back when they are dropped.

mod byte_streams;
mod connect;
#[cfg(any(feature = "client", feature = "service"))]
mod http;
mod lines;
#[cfg(feature = "process")]
mod process;
#[cfg(feature = "socket")]
mod socket;
#[cfg(feature = "stdio")]
mod stdio;
#[cfg(all(feature = "socket", unix))]
mod unix_socket;

pub use byte_streams::ByteStreams;
pub use connect::AcpAgentCounterpartRole;
pub use greenroom_actors::link::{ByteReader, ByteWriter, Exit, LineDirection, LineTap, Link};
#[cfg(feature = "client")]
pub use http::client::{HttpClient, HttpClientBuilder, HttpClientError, HttpClientOptions};
#[cfg(feature = "service")]
pub use http::{
    AcpFuture, AcpHttpServer, AcpService, AllowedHosts, BearerToken, CorsOptions, ResponseBody, RunningServer,
    ServerLimits, ServerOptions,
};
pub use lines::Lines;
#[cfg(feature = "process")]
pub use process::{AcpAgent, AcpAgentConfig, AgentProcess, Ladder, Rung};
#[cfg(feature = "process")]
pub use process::{Child, ChildStderr, ChildStdin, ChildStdout};
#[cfg(feature = "socket")]
pub use socket::Socket;
#[cfg(feature = "stdio")]
pub use stdio::Stdio;
