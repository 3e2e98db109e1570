//! One WebSocket: messages of its client to the agent, and back.
//!
//! Owns: the socket, what waits to be written. Supervised by: the connection, which ends with it.
//! When it dies: restarted; messages and halves of messages are in its leased state.
//! Ordering promise: as the agent and the client said them. Reading never waits for writing.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream as _;
use futures_sink::Sink as _;
use greenroom_actors::Inbound;
use greenroom_actors::runtime::{Flow, Inbox, Permit, Stage};
use greenroom_protocol::{Batches, Frame, FrameKind, ReplyLimit, malformed_reply};
use hyper::upgrade::OnUpgrade;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message, Utf8Bytes};

use super::connection::{Connection, OVERFLOW};
use super::options::ServerLimits;
use super::upgraded::Io;

/// A WebSocket that is up.
pub(super) type Socket = WebSocketStream<Io>;

/// Bytes that the socket's own buffer may hold before it is flushed.
const AHEAD: usize = 64 * 1024;

/// First size of the socket's read buffer: idle connections must cost little.
const READ: usize = 4 * 1024;

/// Messages that are read between two looks at the control messages.
const READS_PER_RUN: usize = 64;

/// How long a client may take to answer our close.
const CLOSE: std::time::Duration = std::time::Duration::from_secs(1);

/// Waits until the server has let go of the socket. `None` when it never does.
pub(super) async fn upgrade(socket: OnUpgrade, limits: &ServerLimits) -> Option<Socket> {
    let upgraded = socket.await.ok()?;
    let config = WebSocketConfig::default()
        .read_buffer_size(READ)
        .write_buffer_size(0)
        .max_message_size(Some(limits.websocket_message))
        .max_frame_size(Some(limits.websocket_frame));
    let (socket, read) = Io::new(upgraded);
    // Copied, because it is short, and what it is a part of is the whole read buffer of HTTP.
    Some(WebSocketStream::from_partially_read(socket, read.to_vec(), Role::Server, Some(config)).await)
}

/// A message that waits to be written.
struct Waiting {
    text: Utf8Bytes,
    permit: Option<Permit>,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Nothing comes after what waits; then the close is sent.
    Ending,
    /// The close is on its way; the client has until then to answer it.
    Closing(Instant),
    Over,
}

/// The stage of one WebSocket.
pub(super) struct WebSocketStage {
    socket: Socket,
    connection: Arc<Connection>,
    waiting: VecDeque<Waiting>,
    /// Bytes in `waiting`.
    bytes: usize,
    /// Bytes in the socket's buffer, and the permits of those messages.
    ahead: usize,
    permits: Vec<Permit>,
    state: State,
    code: CloseCode,
    /// Whether the agent may be sent more than was read.
    has_room: bool,
    refusals: ReplyLimit,
    started: Instant,
}

/// What woke the stage.
enum Event {
    Read(Message),
    Broken(SocketError),
    Gone,
    Flushed,
    More,
}

impl WebSocketStage {
    pub(super) fn new(socket: Socket, connection: Arc<Connection>) -> Self {
        Self {
            socket,
            connection,
            waiting: VecDeque::new(),
            bytes: 0,
            ahead: 0,
            permits: Vec::new(),
            state: State::Open,
            code: CloseCode::Normal,
            has_room: true,
            refusals: ReplyLimit::default(),
            started: Instant::now(),
        }
    }

    /// Takes what the agent said.
    fn take(&mut self, inbox: &mut Inbox<Inbound>) {
        while let Some(item) = inbox.begin() {
            match item {
                Inbound::Frame(frame, permit) => {
                    let (text, permit) = (frame.text().clone(), permit.take());
                    inbox.commit();
                    self.queue(text, permit);
                }
                Inbound::Eof(_) => {
                    inbox.commit();
                    if self.connection.is_shutting_down() {
                        self.code = CloseCode::Away;
                    }
                    self.end();
                }
            }
        }
    }

    fn queue(&mut self, text: bytes::Bytes, permit: Option<Permit>) {
        if self.state != State::Open {
            return;
        }
        // Frames are UTF-8 as they come; only what is malformed may not be.
        let Ok(text) = Utf8Bytes::try_from(text) else { return };
        self.bytes += text.len();
        self.waiting.push_back(Waiting { text, permit });
        if self.bytes > self.connection.options.limits.stream_cap {
            tracing::warn!("a WebSocket is not read: its connection ends");
            self.code = CloseCode::Again;
            self.connection.fail(OVERFLOW);
            self.end();
        }
    }

    fn end(&mut self) {
        if self.state == State::Open {
            self.state = State::Ending;
        }
    }

    /// Moves what waits into the socket's buffer, as far as there is room, and the close behind it.
    fn feed(&mut self, cx: &mut Context<'_>) -> Result<(), SocketError> {
        while self.ahead < AHEAD {
            if self.waiting.is_empty() && self.state != State::Ending {
                return Ok(());
            }
            if self.socket_mut().poll_ready(cx)?.is_pending() {
                return Ok(());
            }
            match self.waiting.pop_front() {
                Some(Waiting { text, permit }) => {
                    self.bytes -= text.len();
                    self.ahead += text.len();
                    self.permits.extend(permit);
                    self.socket_mut().start_send(Message::Text(text))?;
                }
                None => {
                    let reason = if self.code == CloseCode::Again { OVERFLOW } else { "" };
                    let close = CloseFrame { code: self.code, reason: Utf8Bytes::from_static(reason) };
                    self.state = State::Closing(Instant::now() + CLOSE);
                    self.ahead += 1;
                    self.socket_mut().start_send(Message::Close(Some(close)))?;
                }
            }
        }
        Ok(())
    }

    fn socket_mut(&mut self) -> Pin<&mut Socket> {
        Pin::new(&mut self.socket)
    }

    /// Writes and reads until something has to be done.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        loop {
            if let Err(error) = self.feed(cx) {
                return Poll::Ready(Event::Broken(error));
            }
            if self.ahead == 0 {
                break;
            }
            match self.socket_mut().poll_flush(cx) {
                Poll::Ready(Ok(())) => {
                    self.ahead = 0;
                    self.permits.clear();
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Event::Broken(error)),
                Poll::Pending => break,
            }
        }
        // At the end, what the client says is not passed on.
        if !self.has_room && self.state == State::Open {
            return Poll::Pending;
        }
        match self.socket_mut().poll_next(cx) {
            Poll::Ready(Some(Ok(message))) => Poll::Ready(Event::Read(message)),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Event::Broken(error)),
            Poll::Ready(None) => Poll::Ready(Event::Gone),
            Poll::Pending => Poll::Pending,
        }
    }

    async fn event(&mut self, inbox: &Inbox<Inbound>) -> Event {
        let deadline = if let State::Closing(deadline) = self.state { Some(deadline) } else { None };
        let connection = self.connection.clone();
        let is_full = !self.has_room;
        tokio::select! {
            event = poll_fn(|cx| self.poll_event(cx)) => event,
            () = inbox.more() => Event::More,
            () = connection.room(), if is_full => Event::Flushed,
            () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => Event::Gone,
        }
    }

    fn read(&mut self, message: Message) {
        match message {
            Message::Text(text) => self.forward(text.into()),
            // The library answers pings and closes.
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            Message::Close(_) => self.closed_by_client(),
        }
    }

    /// The library has put its answer into the socket's buffer, or this is the answer to ours.
    fn closed_by_client(&mut self) {
        self.waiting.clear();
        self.bytes = 0;
        self.ahead += 1;
        if !matches!(self.state, State::Closing(_)) {
            self.state = State::Closing(Instant::now() + CLOSE);
        }
    }

    fn forward(&mut self, text: bytes::Bytes) {
        if self.state != State::Open {
            return;
        }
        let frame = Frame::parse(text);
        if self.connection.options.batches == Batches::Reject && frame.kind() == FrameKind::Batch {
            let refused = frame.without_batch();
            if let Some(reply) = malformed_reply(&refused).filter(|_| self.refusals.allow(self.started.elapsed())) {
                self.queue(reply.into_text(), None);
            }
            return;
        }
        // An agent that has ended has said so, and its last words are on their way.
        let _ = self.connection.forward(frame);
        self.has_room = self.connection.has_room();
    }

    /// The socket broke. What the client can still be told, it is told.
    fn broken(&mut self, error: &SocketError) {
        self.code = match error {
            SocketError::Capacity(CapacityError::MessageTooLong { .. }) => CloseCode::Size,
            SocketError::Utf8(_) => CloseCode::Invalid,
            SocketError::Protocol(_) => CloseCode::Protocol,
            _ => return self.state = State::Over,
        };
        self.waiting.clear();
        self.bytes = 0;
        self.state = if self.state == State::Open { State::Ending } else { State::Over };
    }
}

impl Stage for WebSocketStage {
    type Item = Inbound;

    async fn run(&mut self, inbox: &mut Inbox<Inbound>) -> Flow {
        for _ in 0..READS_PER_RUN {
            if self.state == State::Over {
                return Flow::Finished;
            }
            self.take(inbox);
            match self.event(inbox).await {
                Event::Read(message) => self.read(message),
                Event::Broken(error) => self.broken(&error),
                Event::Gone => self.state = State::Over,
                Event::Flushed => self.has_room = true,
                Event::More => return Flow::Again,
            }
        }
        Flow::Again
    }

    fn quarantine(&mut self, _item: Inbound) {
        self.connection.fail("a message of the agent could not be written");
        self.end();
    }
}
