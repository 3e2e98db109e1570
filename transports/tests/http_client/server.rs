//! A server that leaves every answer to the test.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

/// Long enough for a slow machine; only a test that fails waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How long nothing has to happen. Too short can only hide a fault, never show one that is none.
pub(crate) const QUIET: Duration = Duration::from_millis(150);

pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Listens, reads requests and keeps them until the test asks.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    heard: mpsc::UnboundedReceiver<Heard>,
    listening: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(|stream: TcpStream| std::future::ready(Some(Box::new(stream) as Box<dyn Io>))).await
    }

    /// A server that makes something else of each connection first, TLS for example.
    pub(crate) async fn with<F, Fut>(accept: F) -> Self
    where
        F: Fn(TcpStream) -> Fut + Send + 'static,
        Fut: Future<Output = Option<Box<dyn Io>>> + Send,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, heard) = mpsc::unbounded_channel();
        let listening = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let Some(stream) = accept(stream).await else { continue };
                let tell = tell.clone();
                tokio::spawn(async move {
                    if let Some(request) = read_request(stream).await {
                        let _ = tell.send(request);
                    }
                });
            }
        });
        Self { address, heard, listening }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn ws_url(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> Heard {
        timeout(PATIENCE, self.heard.recv()).await.expect("no request came").unwrap()
    }

    /// The next request, which has to be this one.
    pub(crate) async fn expect(&mut self, method: &str) -> Heard {
        let heard = self.next().await;
        assert_eq!(heard.method, method, "{heard:?}");
        heard
    }

    /// Asserts that no request comes.
    pub(crate) async fn stays_quiet(&mut self) {
        if let Ok(Some(heard)) = timeout(QUIET, self.heard.recv()).await {
            panic!("unexpected: {heard:?}");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// One request, not answered yet.
pub(crate) struct Heard {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    stream: BufReader<Box<dyn Io>>,
}

impl std::fmt::Debug for Heard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {:?} {}", self.method, self.target, self.headers, self.body)
    }
}

async fn read_request(stream: Box<dyn Io>) -> Option<Heard> {
    let mut stream = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let mut first = lines.first()?.split(' ').map(str::to_owned);
    let (method, target) = (first.next()?, first.next()?);
    let headers: Vec<_> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, it)| it.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let body = String::from_utf8(body).unwrap();
    Some(Heard { method, target, headers, body, stream })
}

impl Heard {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The method of the JSON-RPC message in the body.
    pub(crate) fn call(&self) -> String {
        self.json()["method"].as_str().unwrap_or("").to_owned()
    }

    pub(crate) async fn answer(mut self, status: u16, headers: &[(&str, &str)], body: &str) {
        let mut text = format!("HTTP/1.1 {status} Status\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.push_str(body);
        self.stream.write_all(text.as_bytes()).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    pub(crate) async fn accepted(self) {
        self.answer(202, &[], "").await;
    }

    /// Answers an `initialize`.
    pub(crate) async fn initialized(self) {
        let id = self.json()["id"].clone();
        let body = serde_json::json!({ "jsonrpc": "2.0", "id": id, "result": { "protocolVersion": 1 } });
        self.answer(200, &[("content-type", "application/json"), ("Acp-Connection-Id", "c-1")], &body.to_string())
            .await;
    }

    /// Opens a stream of events.
    pub(crate) async fn events(mut self) -> Events {
        assert_eq!((self.method.as_str(), self.header("accept")), ("GET", Some("text/event-stream")), "{self:?}");
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        self.stream.write_all(head.as_bytes()).await.unwrap();
        self.stream.flush().await.unwrap();
        Events { stream: self.stream }
    }

    /// The answer that opens a WebSocket, with further or other headers.
    pub(crate) fn upgrade_answer(&self) -> String {
        let accept = derive_accept_key(self.header("sec-websocket-key").unwrap().as_bytes());
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: {accept}\r\n"
        )
    }

    /// Writes exactly this.
    pub(crate) async fn raw(mut self, text: &str) -> BufReader<Box<dyn Io>> {
        self.stream.write_all(text.as_bytes()).await.unwrap();
        self.stream.flush().await.unwrap();
        self.stream
    }

    /// Opens a WebSocket.
    pub(crate) async fn upgraded(self) -> WebSocketStream<BufReader<Box<dyn Io>>> {
        let answer = self.upgrade_answer() + "acp-connection-id: w-1\r\n\r\n";
        WebSocketStream::from_raw_socket(self.raw(&answer).await, Role::Server, None).await
    }
}

/// An open stream of events.
pub(crate) struct Events {
    stream: BufReader<Box<dyn Io>>,
}

impl Events {
    /// Sends one message.
    pub(crate) async fn send(&mut self, message: serde_json::Value) {
        self.write(&format!("data: {message}\n\n")).await;
    }

    /// Sends exactly this, as one chunk.
    pub(crate) async fn write(&mut self, text: &str) {
        self.try_write(text).await.unwrap();
    }

    pub(crate) async fn try_write(&mut self, text: &str) -> std::io::Result<()> {
        self.stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await?;
        self.stream.flush().await
    }

    /// Ends the stream in order.
    pub(crate) async fn end(mut self) {
        self.stream.write_all(b"0\r\n\r\n").await.unwrap();
        self.stream.shutdown().await.unwrap();
    }

    /// Waits until the client reads no further.
    pub(crate) async fn left(mut self) {
        let mut rest = Vec::new();
        let _ = timeout(PATIENCE, self.stream.read_to_end(&mut rest)).await.expect("the stream is still read");
    }
}
