//! Accepts sockets, and serves HTTP on each.
//!
//! Owns: the listening socket, the tasks that serve the accepted ones. Supervised by: the server.
//! When it dies: restarted; it and the sockets it had accepted go on. The tasks hold no ACP
//! connection, so a task that dies takes only its socket with it.

use std::io;
use std::sync::Arc;

use greenroom_actors::runtime::{Flow, Inbox, Stage};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Duration;

use super::options::ServerLimits;
use super::service::AcpService;

/// Wait after an accept that failed because the process or the machine has no more sockets.
const EXHAUSTED: Duration = Duration::from_millis(50);

/// Bytes of a request head, and of what hyper reads ahead.
const HEAD: usize = 64 * 1024;

/// The stage that accepts.
pub(super) struct ListenerStage {
    listener: Option<TcpListener>,
    service: AcpService,
    http: Arc<auto::Builder<TokioExecutor>>,
    tasks: JoinSet<()>,
    sockets: usize,
    /// True when no more sockets are accepted, and each served one ends after its current request.
    finish: watch::Receiver<bool>,
}

impl ListenerStage {
    pub(super) fn new(
        listener: TcpListener,
        service: AcpService,
        limits: &ServerLimits,
        finish: watch::Receiver<bool>,
    ) -> Self {
        let mut http = auto::Builder::new(TokioExecutor::new());
        http.http1().timer(TokioTimer::new()).header_read_timeout(limits.header_deadline).max_buf_size(HEAD);
        http.http2()
            .timer(TokioTimer::new())
            .max_header_list_size(HEAD as u32)
            .keep_alive_interval(Some(Duration::from_secs(20)));
        Self {
            listener: Some(listener),
            service,
            http: Arc::new(http),
            tasks: JoinSet::new(),
            sockets: limits.sockets,
            finish,
        }
    }

    async fn accepted(&mut self, accepted: io::Result<TcpStream>) {
        match accepted {
            Ok(socket) => self.serve(socket),
            // The client gave up meanwhile: nothing is wrong with the listener.
            Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) => {
            }
            Err(error) => {
                tracing::warn!(kind = ?error.kind(), "no socket could be accepted");
                tokio::time::sleep(EXHAUSTED).await;
            }
        }
    }

    fn serve(&mut self, socket: TcpStream) {
        // Messages are small and must not wait for an acknowledgement.
        let _ = socket.set_nodelay(true);
        let (http, service, mut finish) = (self.http.clone(), self.service.clone(), self.finish.clone());
        self.tasks.spawn(async move {
            let connection = http.serve_connection_with_upgrades(TokioIo::new(socket), service);
            let mut connection = std::pin::pin!(connection);
            // How a socket ended is of no interest: nothing depends on it.
            tokio::select! {
                _ = connection.as_mut() => return,
                () = finishing(&mut finish) => connection.as_mut().graceful_shutdown(),
            }
            let _ = connection.await;
        });
    }
}

/// Waits until no more sockets are accepted. Cancel-safe.
async fn finishing(finish: &mut watch::Receiver<bool>) {
    // An error means that the handle of the server is gone; then its actors are killed.
    let _ = finish.wait_for(|finish| *finish).await;
}

impl Stage for ListenerStage {
    type Item = std::convert::Infallible;

    async fn run(&mut self, _inbox: &mut Inbox<Self::Item>) -> Flow {
        let mut finish = self.finish.clone();
        let Some(listener) = self.listener.as_ref().filter(|_| !*finish.borrow()) else {
            self.listener = None;
            while self.tasks.join_next().await.is_some() {}
            return Flow::Finished;
        };
        let has_room = self.tasks.len() < self.sockets;
        tokio::select! {
            accepted = listener.accept(), if has_room => self.accepted(accepted.map(|(socket, _)| socket)).await,
            Some(_) = self.tasks.join_next() => {}
            () = finishing(&mut finish) => {}
        }
        Flow::Again
    }

    fn quarantine(&mut self, item: Self::Item) {
        match item {}
    }
}
