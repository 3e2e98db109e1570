//! The server: ACP agents behind one HTTP endpoint.

mod agent;
mod answer;
mod connection;
mod cors;
mod draft;
mod get;
mod listener;
mod message;
mod options;
mod post;
mod registry;
mod replay;
mod root;
mod running;
mod security;
mod service;
mod sse;
mod stream;
mod supervisor;
mod table;
mod upgraded;
mod websocket;

use std::fmt;
use std::io;
use std::sync::Arc;

use greenroom_actors::{Client, ConnectTo, DynConnectTo};
use tokio::net::TcpListener;

pub use answer::ResponseBody;
pub use options::{AllowedHosts, BearerToken, CorsOptions, ServerLimits, ServerOptions};
pub use running::RunningServer;
pub use service::{AcpFuture, AcpService};

use root::{Factory, Root};

/// Where a host asks whether the server is there.
const HEALTH_PATH: &str = "/health";

/// Serves agents over HTTP with SSE and over WebSocket, one agent for each connection.
///
/// Every connection is a supervised tree that outlives its sockets: a socket that breaks takes
/// nothing with it but itself. See [`ServerOptions`] for who may connect, and how much.
pub struct AcpHttpServer {
    factory: Factory,
    options: ServerOptions,
}

impl AcpHttpServer {
    /// A server that makes an agent for each connection. A factory that panics costs only the
    /// request that needed it.
    pub fn new<F, C>(factory: F) -> Self
    where
        F: Fn() -> C + Send + Sync + 'static,
        C: ConnectTo<Client>,
    {
        Self { factory: Arc::new(move || DynConnectTo::new(factory())), options: ServerOptions::default() }
    }

    /// Replaces all options.
    #[must_use]
    pub fn with_options(mut self, options: ServerOptions) -> Self {
        self.options = options;
        self
    }

    /// The server as a service, for a host that has sockets of its own.
    ///
    /// # Panics
    /// When the path does not start with `/`, or is `/health` while the health endpoint is on.
    #[must_use]
    pub fn into_service(self) -> AcpService {
        self.options.check();
        AcpService { root: Arc::new(Root::new(self.factory, self.options)) }
    }

    /// The server as a router of axum.
    ///
    /// # Panics
    /// As [`into_service`](Self::into_service).
    #[cfg(feature = "axum")]
    pub fn into_router(self) -> axum::Router {
        let (path, has_health) = (self.options.path.clone(), self.options.health_endpoint);
        let service = self.into_service();
        let router = axum::Router::new().route_service(&path, service.clone());
        if has_health { router.route_service(HEALTH_PATH, service) } else { router }
    }

    /// Serves a listener until the future is dropped; then everything ends at once.
    ///
    /// # Errors
    /// When the listener can be reached by other machines, no token is set, and that was not asked
    /// for; when the listener breaks.
    ///
    /// # Panics
    /// As [`into_service`](Self::into_service).
    pub async fn serve(self, listener: TcpListener) -> io::Result<()> {
        self.serve_until(listener, std::future::pending()).await
    }

    /// Serves a listener until `shutdown` is done, then drains: see [`RunningServer::shutdown`].
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    ///
    /// # Panics
    /// As [`into_service`](Self::into_service).
    pub async fn serve_until(self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let server = self.start(listener).await?;
        tokio::select! {
            () = shutdown => server.shutdown().await,
            () = server.stopped() => return Err(io::Error::other("the listener died too often")),
        }
        Ok(())
    }

    /// Starts serving a listener, and returns at once. Dropping the handle ends everything.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    ///
    /// # Panics
    /// As [`into_service`](Self::into_service).
    pub async fn start(self, listener: TcpListener) -> io::Result<RunningServer> {
        RunningServer::start(self, listener).await
    }
}

impl fmt::Debug for AcpHttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcpHttpServer").field("options", &self.options).finish_non_exhaustive()
    }
}
