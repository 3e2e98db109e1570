//! The server of a viewer.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Stdio};
use std::sync::Arc;

use greenroom::runtime::{Node, Snapshot};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Duration, timeout};

use super::http::{Refusal, Wish, answer, decide, read_head};
use super::source::TraceSource;
use super::{TraceViewerConfig, VIEWER_HTML};

/// Connections at once; a page needs two.
const CONNECTIONS: usize = 32;

/// For one request with its answer.
const LIMIT: Duration = Duration::from_secs(30);

/// What the page may do: run what is written in it, and talk to this server.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A viewer that has its port and does not serve yet.
pub struct TraceViewer {
    listener: TcpListener,
    shared: Arc<Shared>,
    open_browser: bool,
}

struct Shared {
    port: u16,
    token: String,
    source: TraceSource,
    tree: Option<Arc<Node>>,
}

impl TraceViewer {
    /// Takes the port and makes up a token.
    ///
    /// # Errors
    /// When the port is taken.
    pub fn bind(source: TraceSource, config: TraceViewerConfig) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, config.port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let token = uuid::Uuid::new_v4().simple().to_string();
        let shared = Arc::new(Shared { port, token, source, tree: None });
        Ok(Self { listener, shared, open_browser: config.open_browser })
    }

    /// Shows this tree of actors too, as it is at each moment.
    #[must_use]
    pub fn with_tree(self, tree: Arc<Node>) -> Self {
        let Shared { port, token, source, .. } = &*self.shared;
        let shared = Shared { port: *port, token: token.clone(), source: source.clone(), tree: Some(tree) };
        Self { shared: Arc::new(shared), ..self }
    }

    /// The address of the page, with the token.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/#token={}", self.shared.port, self.shared.token)
    }

    /// Serves until the future is dropped.
    ///
    /// # Errors
    /// Those of the listening socket. A broken connection harms itself only.
    pub fn run(self) -> impl Future<Output = io::Result<()>> + Send {
        let url = self.open_browser.then(|| self.url());
        async move {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            if let Some(url) = url {
                open(&url);
            }
            let room = Arc::new(Semaphore::new(CONNECTIONS));
            // Dropped with this future, and the connections with it.
            let mut connections = JoinSet::new();
            loop {
                let Ok(place) = room.clone().acquire_owned().await else { return Ok(()) };
                let stream = match listener.accept().await {
                    Ok((stream, _)) => stream,
                    // Out of descriptors, or a client that is gone already: not the end of the server.
                    Err(_) => {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                };
                while connections.try_join_next().is_some() {}
                let shared = self.shared.clone();
                connections.spawn(async move {
                    let _ = timeout(LIMIT, serve(stream, &shared)).await;
                    drop(place);
                });
            }
        }
    }
}

impl fmt::Debug for TraceViewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceViewer").field("port", &self.shared.port).finish_non_exhaustive()
    }
}

/// One connection: one request, one answer.
async fn serve(mut stream: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    let Some(head) = read_head(&mut stream).await? else { return Ok(()) };
    let stream = &mut stream;
    match decide(&head, shared.port, &shared.token) {
        Ok(Wish::Page) => {
            let headers = [("Content-Type", "text/html; charset=utf-8"), ("Content-Security-Policy", POLICY)];
            answer(stream, "200 OK", &headers, VIEWER_HTML.as_bytes()).await
        }
        Ok(Wish::Events(after)) => {
            let reading = shared.clone();
            let read = tokio::task::spawn_blocking(move || reading.source.read(&after)).await;
            match read.map_err(io::Error::other).and_then(|read| read) {
                Ok(page) => {
                    let mut headers = vec![("Content-Type", "application/x-ndjson"), ("X-Cursor", &*page.cursor)];
                    headers.extend(page.more.then_some(("X-More", "1")));
                    headers.extend(page.restarted.then_some(("X-Restarted", "1")));
                    answer(stream, "200 OK", &headers, page.text.as_bytes()).await
                }
                Err(error) => {
                    answer(stream, "500 Internal Server Error", &TEXT, error.kind().to_string().as_bytes()).await
                }
            }
        }
        Ok(Wish::Tree) => match &shared.tree {
            Some(tree) => {
                let text = show(&tree.snapshot()).to_string();
                answer(stream, "200 OK", &[("Content-Type", "application/json")], text.as_bytes()).await
            }
            None => answer(stream, Refusal::Unknown.status(), &TEXT, b"no tree here\n").await,
        },
        Err(refusal) => {
            let mut headers = TEXT.to_vec();
            headers.extend((refusal == Refusal::Method).then_some(("Allow", "GET")));
            answer(stream, refusal.status(), &headers, refusal.status().as_bytes()).await
        }
    }
}

const TEXT: [(&str, &str); 1] = [("Content-Type", "text/plain; charset=utf-8")];

fn show(snapshot: &Snapshot) -> Value {
    json!({
        "path": snapshot.path,
        "kind": snapshot.kind,
        "status": format!("{:?}", snapshot.status),
        "restarts": snapshot.restarts,
        "mailbox_depth": snapshot.mailbox_depth,
        "mailbox_age_ms": u64::try_from(snapshot.mailbox_age.as_millis()).unwrap_or(u64::MAX),
        "in_flight": snapshot.in_flight,
        "children": snapshot.children.iter().map(show).collect::<Vec<_>>(),
    })
}

/// Shows the address in the desktop's browser. Where there is none, the address on stderr stays.
fn open(url: &str) {
    let mut command = if cfg!(target_os = "macos") {
        Command::new("open")
    } else if cfg!(windows) {
        let mut command = Command::new("cmd");
        command.args(["/C", "start", ""]);
        command
    } else {
        Command::new("xdg-open")
    };
    let started = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Ok(mut child) = started {
        // Somebody has to reap it.
        std::thread::spawn(move || child.wait());
    }
}
