//! HTTP by hand: what is sent is exactly what the test says.

use std::collections::HashMap;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("utf-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("json")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Status and text, to compare at once.
    pub(crate) fn is(&self, status: u16, text: &str) {
        assert_eq!((self.status, self.text()), (status, text));
    }
}

/// A socket with what was read from it.
pub(crate) struct Socket {
    pub(crate) stream: BufReader<TcpStream>,
}

impl Socket {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        Self { stream: BufReader::new(TcpStream::connect(address).await.expect("the server listens")) }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(bytes.as_ref()).await.expect("the server reads");
    }

    pub(crate) async fn line(&mut self) -> String {
        let mut line = Vec::new();
        loop {
            let byte = self.stream.read_u8().await.expect("the server answers");
            if byte == b'\n' {
                break;
            }
            line.push(byte);
        }
        String::from_utf8(line).expect("ascii").trim_end_matches('\r').to_owned()
    }

    /// Status and headers of an answer.
    pub(crate) async fn head(&mut self) -> (u16, HashMap<String, String>) {
        let first = self.line().await;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status line: {first}"));
        let mut headers = HashMap::new();
        loop {
            let line = self.line().await;
            if line.is_empty() {
                return (status, headers);
            }
            let (name, value) = line.split_once(':').expect("a header");
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
    }

    /// The next chunk of a chunked body; empty at its end.
    pub(crate) async fn chunk(&mut self) -> Vec<u8> {
        let size = usize::from_str_radix(&self.line().await, 16).expect("the size of a chunk");
        let mut chunk = vec![0; size];
        self.stream.read_exact(&mut chunk).await.expect("a chunk");
        assert_eq!(self.line().await, "");
        chunk
    }

    pub(crate) async fn answer(&mut self) -> Answer {
        let (status, headers) = self.head().await;
        let mut body = Vec::new();
        if headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked") {
            loop {
                let chunk = self.chunk().await;
                if chunk.is_empty() {
                    break;
                }
                body.extend(chunk);
            }
        } else if let Some(length) = headers.get("content-length") {
            body = vec![0; length.parse().expect("a length")];
            self.stream.read_exact(&mut body).await.expect("a body");
        }
        Answer { status, headers, body }
    }

    /// Whether the server has closed the socket, having said nothing more.
    pub(crate) async fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).await.is_ok_and(|_| rest.is_empty())
    }
}

/// A request; what is not said is left out.
pub(crate) struct Request {
    method: &'static str,
    path: String,
    headers: String,
    body: Vec<u8>,
    has_host: bool,
}

pub(crate) fn request(method: &'static str) -> Request {
    Request { method, path: "/acp".to_owned(), headers: String::new(), body: Vec::new(), has_host: true }
}

/// A POST with the right content type.
pub(crate) fn post(body: impl AsRef<[u8]>) -> Request {
    request("POST").header("Content-Type", "application/json").body(body)
}

/// A GET that wants a stream.
pub(crate) fn listen(connection: &str) -> Request {
    request("GET").header("Accept", "text/event-stream").header("Acp-Connection-Id", connection)
}

impl Request {
    pub(crate) fn path(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers += &format!("{name}: {value}\r\n");
        self
    }

    pub(crate) fn connection(self, id: &str) -> Self {
        self.header("Acp-Connection-Id", id)
    }

    pub(crate) fn session(self, id: &str) -> Self {
        self.header("Acp-Session-Id", id)
    }

    pub(crate) fn host(mut self, host: &str) -> Self {
        self.has_host = false;
        self.header("Host", host)
    }

    pub(crate) fn without_host(mut self) -> Self {
        self.has_host = false;
        self
    }

    pub(crate) fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n{}", self.method, self.path, self.headers);
        if self.has_host {
            head += "Host: 127.0.0.1\r\n";
        }
        if self.method == "POST" || !self.body.is_empty() {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        head += "\r\n";
        [head.as_bytes(), &self.body].concat()
    }

    pub(crate) async fn send(&self, address: SocketAddr) -> Answer {
        let mut socket = Socket::open(address).await;
        socket.send(self.bytes()).await;
        socket.answer().await
    }
}

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;

/// Opens a connection and returns its id.
pub(crate) async fn connect(address: SocketAddr) -> String {
    let answer = post(INITIALIZE).send(address).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.header("acp-connection-id").expect("an id").to_owned()
}

/// Posts to a connection; the server must accept.
pub(crate) async fn say(address: SocketAddr, connection: &str, body: &str) {
    post(body).connection(connection).send(address).await.is(202, "");
}
