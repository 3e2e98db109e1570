//! A WebSocket client on a raw socket.

use std::net::SocketAddr;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::client::{Answer, Request, Socket, request};

/// A GET that asks for a WebSocket. The key is that of RFC 6455.
pub(crate) fn upgrade() -> Request {
    request("GET")
        .header("Connection", "keep-alive, Upgrade")
        .header("Upgrade", "WebSocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
}

pub(crate) struct Ws {
    pub(crate) socket: WebSocketStream<BufReader<TcpStream>>,
    pub(crate) id: String,
}

impl Ws {
    pub(crate) async fn try_open(address: SocketAddr, request: &Request) -> Result<Self, Answer> {
        let mut socket = Socket::open(address).await;
        socket.send(request.bytes()).await;
        let (status, headers) = socket.head().await;
        if status != 101 {
            let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            let mut body = vec![0; length];
            tokio::io::AsyncReadExt::read_exact(&mut socket.stream, &mut body).await.expect("a body");
            return Err(Answer { status, headers, body });
        }
        assert_eq!(headers["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let id = headers["acp-connection-id"].clone();
        for absent in ["sec-websocket-protocol", "sec-websocket-extensions"] {
            assert!(!headers.contains_key(absent), "{absent}");
        }
        let socket = WebSocketStream::from_raw_socket(socket.stream, Role::Client, None).await;
        Ok(Self { socket, id })
    }

    pub(crate) async fn open(address: SocketAddr) -> Self {
        Self::try_open(address, &upgrade()).await.unwrap_or_else(|answer| panic!("no WebSocket: {answer:?}"))
    }

    pub(crate) async fn send(&mut self, message: impl Into<Message>) {
        self.socket.send(message.into()).await.expect("the server reads");
    }

    /// The next frame that is no ping or pong; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        loop {
            match self.socket.next().await? {
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(message) => return Some(message),
                Err(_) => return None,
            }
        }
    }

    pub(crate) async fn text(&mut self) -> String {
        match self.next().await {
            Some(Message::Text(text)) => text.to_string(),
            other => panic!("no text: {other:?}"),
        }
    }

    pub(crate) async fn message(&mut self) -> Value {
        serde_json::from_str(&self.text().await).expect("json")
    }

    /// The code of the server's close.
    pub(crate) async fn close_code(&mut self) -> Option<u16> {
        match self.next().await {
            Some(Message::Close(frame)) => frame.map(|frame| frame.code.into()),
            other => panic!("no close: {other:?}"),
        }
    }
}
