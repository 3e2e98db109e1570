//! The handle of a server that serves a listener.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use greenroom_actors::runtime::{Node, Snapshot};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::AcpHttpServer;
use super::listener::ListenerStage;
use super::options::ServerOptions;
use super::root::{Root, RootMessage};

/// A server that runs. Dropping it ends everything at once.
pub struct RunningServer {
    root: Arc<Root>,
    address: SocketAddr,
    finish: watch::Sender<bool>,
    stopped: watch::Receiver<bool>,
}

impl RunningServer {
    pub(super) async fn start(server: AcpHttpServer, listener: TcpListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        admit(&server.options, address)?;
        let service = server.into_service();
        let root = service.root.clone();
        let (finish, finishing) = watch::channel(false);
        let (ended, stopped) = watch::channel(false);
        let stage = ListenerStage::new(listener, service, &root.options.limits, finishing);
        let actor = root.actor(None).await.map_err(|_| io::Error::other("the server did not start"))?;
        let (begun, begins) = oneshot::channel();
        let _ = actor.cast(RootMessage::Listen(Box::new(stage), begun, ended));
        let server = Self { root, address, finish, stopped };
        // From here on, a future that is dropped ends the server with its handle.
        begins.await.map_err(|_| io::Error::other("the server did not start"))?;
        Ok(server)
    }

    /// Where the server listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The live tree of the server's actors.
    #[must_use]
    pub fn tree(&self) -> Arc<Node> {
        self.root.node.clone()
    }

    /// A picture of the server's actors: status, restarts, mailboxes.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.root.node.snapshot()
    }

    /// Number of ACP connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.root.registry.len()
    }

    /// Number of actors of the server and its connections; those of the agents come on top.
    #[must_use]
    pub fn actors(&self) -> usize {
        self.root.live.now()
    }

    /// Waits until the listener is no more. Cancel-safe.
    pub(super) async fn stopped(&self) {
        let mut stopped = self.stopped.clone();
        // An error means that the server's supervisor is gone, and with it the listener.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }

    /// Drains, then ends: no socket and no connection is accepted any more, every agent gets the
    /// end of its input, answers what it has accepted, and ends; its streams get what is queued and
    /// end, its WebSocket is closed with code 1001. What is not done within
    /// [`ServerLimits::shutdown`](super::ServerLimits::shutdown) is cut off, so that an open stream
    /// never blocks this. Nothing is left afterwards: no actor, no socket.
    pub async fn shutdown(self) {
        let deadline = Instant::now() + self.root.options.limits.shutdown;
        self.finish.send_replace(true);
        self.root.registry.finish();
        let drained = async {
            self.root.registry.none().await;
            self.stopped().await;
        };
        if tokio::time::timeout_at(deadline, drained).await.is_err() {
            tracing::warn!(connections = self.connections(), "the shutdown took too long: the rest is cut off");
        }
        self.root.kill();
        self.root.live.none().await;
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.root.kill();
    }
}

/// Refuses to let other machines in by accident.
fn admit(options: &ServerOptions, address: SocketAddr) -> io::Result<()> {
    let is_safe = address.ip().is_loopback() || options.bearer_token.is_some() || options.allow_remote_without_token;
    if is_safe {
        return Ok(());
    }
    let text = "other machines reach this address: set a bearer token, or allow remote clients without one";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

impl fmt::Debug for RunningServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningServer").field("address", &self.address).finish_non_exhaustive()
    }
}
