//! The HTTP client against servers that do exactly what a test says, over real sockets.

mod cancellation;
mod configuration;
mod credentials;
mod endings;
mod forgotten;
mod initialize;
mod lanes;
mod limits;
mod local;
#[cfg(feature = "service")]
mod pair;
mod resume;
mod server;
mod sessions;
mod tls;
mod web_socket;
