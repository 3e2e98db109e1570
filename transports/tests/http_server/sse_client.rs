//! A client that reads server-sent events from a raw socket.

use std::net::SocketAddr;

use serde_json::Value;

use super::client::{Answer, Request, Socket, listen};

/// One event or comment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) comment: Option<String>,
}

/// A stream of events.
pub(crate) struct Events {
    pub(crate) socket: Socket,
    pub(crate) headers: std::collections::HashMap<String, String>,
    text: String,
    ended: bool,
}

impl Events {
    /// Opens a stream; gives the answer when it is no stream.
    pub(crate) async fn try_open(address: SocketAddr, request: &Request) -> Result<Self, Answer> {
        let mut socket = Socket::open(address).await;
        socket.send(request.bytes()).await;
        let (status, headers) = socket.head().await;
        if status == 200 {
            return Ok(Self { socket, headers, text: String::new(), ended: false });
        }
        let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        tokio::io::AsyncReadExt::read_exact(&mut socket.stream, &mut body).await.expect("a body");
        Err(Answer { status, headers, body })
    }

    pub(crate) async fn open(address: SocketAddr, request: &Request) -> Self {
        Self::try_open(address, request).await.unwrap_or_else(|answer| panic!("no stream: {answer:?}"))
    }

    pub(crate) async fn connection(address: SocketAddr, id: &str) -> Self {
        Self::open(address, &listen(id)).await
    }

    pub(crate) async fn session(address: SocketAddr, id: &str, session: &str) -> Self {
        Self::open(address, &listen(id).session(session)).await
    }

    /// The next event or comment; `None` at the clean end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                return Some(parse(&block));
            }
            if self.ended {
                assert_eq!(self.text, "", "half an event");
                return None;
            }
            let chunk = self.socket.chunk().await;
            self.ended = chunk.is_empty();
            self.text += std::str::from_utf8(&chunk).expect("utf-8");
        }
    }

    /// The next message; comments are skipped.
    pub(crate) async fn message(&mut self) -> Value {
        serde_json::from_str(&self.data().await).expect("json")
    }

    pub(crate) async fn data(&mut self) -> String {
        loop {
            let event = self.next().await.expect("a message");
            if let Some(data) = event.data {
                return data;
            }
        }
    }

    /// What comes until the end: only comments.
    pub(crate) async fn end(&mut self) -> Vec<String> {
        let mut comments = Vec::new();
        while let Some(event) = self.next().await {
            assert_eq!(event.data, None, "a message after the end");
            comments.extend(event.comment);
        }
        comments
    }
}

fn parse(block: &str) -> Event {
    let mut event = Event { id: None, data: None, comment: None };
    for line in block.lines() {
        if let Some(data) = line.strip_prefix("data: ") {
            match &mut event.data {
                Some(known) => *known += &format!("\n{data}"),
                None => event.data = Some(data.to_owned()),
            }
        } else if let Some(id) = line.strip_prefix("id: ") {
            event.id = Some(id.to_owned());
        } else if let Some(comment) = line.strip_prefix(':') {
            event.comment = Some(comment.trim().to_owned());
        } else {
            assert_eq!(line, "", "a field that nobody asked for");
        }
    }
    event
}
