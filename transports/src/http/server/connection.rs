//! What the actors of one ACP connection and the requests for it share.
//!
//! The decisions are in `table`; here is who is told about them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use greenroom_actors::runtime::{Credit, Mailbox, Permit};
use greenroom_actors::{EndOfInput, Inbound};
use greenroom_protocol::{Error, Frame, Origin, RawId};
use parking_lot::Mutex;
use ractor::ActorRef;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use super::answer::{Chunk, Refusal};
use super::message::Expected;
use super::options::ServerOptions;
use super::stream::{Deaf, Stream};
use super::supervisor::ConnectionMessage;
use super::table::{Changes, Limits, Table, Unknown};

/// Why a connection ends whose client does not read.
pub(super) const OVERFLOW: &str = "outbound stream overflow: the client does not read";

/// What a frame costs beside its text, in bytes.
const FRAME_COST: usize = 256;

/// How a connection's client reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// By requests and SSE streams.
    Http,
    /// By one WebSocket.
    WebSocket,
}

/// The answer to the first request.
struct Opening {
    id: RawId,
    answer: oneshot::Sender<Frame>,
}

/// One ACP connection. It outlives its sockets.
pub(super) struct Connection {
    pub(super) id: Box<str>,
    pub(super) shape: Shape,
    pub(super) options: Arc<ServerOptions>,
    to_agent: Mailbox<Inbound>,
    credit: Credit,
    table: Mutex<Table>,
    opening: Mutex<Option<Opening>>,
    supervisor: Mutex<Option<ActorRef<ConnectionMessage>>>,
    /// When the client was last heard of.
    heard: Mutex<Instant>,
    /// Requests of the client that are being worked on.
    busy: AtomicUsize,
    agent_ended: AtomicBool,
    shutting_down: AtomicBool,
    /// A stream got an end, or is gone.
    pub(super) drained: Notify,
}

/// Counts a request of the client while it is being worked on.
pub(super) struct Busy(Arc<Connection>);

impl Drop for Busy {
    fn drop(&mut self) {
        *self.0.heard.lock() = Instant::now();
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Connection {
    pub(super) fn new(shape: Shape, options: Arc<ServerOptions>, to_agent: Mailbox<Inbound>) -> Self {
        let limits = Limits::of(&options.limits);
        Self {
            id: uuid::Uuid::new_v4().to_string().into(),
            shape,
            to_agent,
            credit: Credit::new(options.limits.incoming_credit),
            table: Mutex::new(Table::new(limits)),
            opening: Mutex::new(None),
            supervisor: Mutex::new(None),
            heard: Mutex::new(Instant::now()),
            busy: AtomicUsize::new(0),
            agent_ended: AtomicBool::new(false),
            shutting_down: AtomicBool::new(false),
            drained: Notify::new(),
            options,
        }
    }

    pub(super) fn supervised_by(&self, supervisor: ActorRef<ConnectionMessage>) {
        *self.supervisor.lock() = Some(supervisor);
    }

    fn tell(&self, message: ConnectionMessage) {
        if let Some(supervisor) = &*self.supervisor.lock() {
            let _ = supervisor.cast(message);
        }
    }

    // === from the client ===

    /// Notes that the client is there.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        self.busy.fetch_add(1, Ordering::AcqRel);
        Busy(self.clone())
    }

    /// When the client was last heard of; `None` while it is there.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let is_there = self.busy.load(Ordering::Acquire) > 0 || self.table.lock().has_listener();
        (!is_there).then(|| *self.heard.lock())
    }

    /// Waits until the agent has room for more.
    pub(super) async fn room(&self) {
        self.credit.room().await;
    }

    /// Whether the agent has room for more now.
    pub(super) fn has_room(&self) -> bool {
        !self.credit.is_full()
    }

    /// Remembers which answers will come.
    pub(super) fn expect(&self, expected: Vec<Expected>) -> Result<(), Refusal> {
        if self.shape == Shape::WebSocket || self.table.lock().expect(expected) {
            return Ok(());
        }
        Err(Refusal::text(429, "too many requests are open"))
    }

    /// Whether the client may ask for one more session.
    pub(super) fn may_open_session(&self) -> bool {
        self.table.lock().has_room()
    }

    /// Passes a frame to the agent.
    ///
    /// # Errors
    /// When the agent does not listen any more.
    pub(super) fn forward(&self, frame: Frame) -> Result<(), Refusal> {
        let permit = self.credit.take(frame.text().len() + FRAME_COST);
        match self.to_agent.send(Inbound::Frame(frame, Some(permit))) {
            Ok(()) if !self.agent_ended.load(Ordering::Acquire) => Ok(()),
            _ => Err(Refusal::text(500, "agent closed")),
        }
    }

    /// Passes the first frame to the agent; its answer comes back by value.
    pub(super) fn open(&self, frame: Frame, id: RawId) -> Result<oneshot::Receiver<Frame>, Refusal> {
        let (answer, receiver) = oneshot::channel();
        *self.opening.lock() = Some(Opening { id, answer });
        self.forward(frame)?;
        Ok(receiver)
    }

    /// Lets a client listen to the stream of a session, or of the connection.
    pub(super) fn listen(
        self: &Arc<Self>,
        session: Option<&str>,
        last: Option<&str>,
    ) -> Result<mpsc::Receiver<Chunk>, Refusal> {
        let mut table = self.table.lock();
        let stream = match session {
            None => table.connection_stream().clone(),
            Some(session) => table.for_listener(session).map_err(|unknown| match unknown {
                Unknown::Session => Refusal::text(404, "unknown Acp-Session-Id"),
                Unknown::TooMany => Refusal::text(429, "too many sessions"),
            })?,
        };
        self.announce(table.take_changes());
        // Still under the lock, so that a stream that nobody confirmed cannot vanish in between.
        stream.listen(last).map_err(|deaf| match deaf {
            Deaf::Taken => Refusal::text(409, "outbound stream already has a subscriber"),
            Deaf::Gap => Refusal::text(410, "the events after Last-Event-ID are not kept"),
        })
    }

    /// Ends the connection at once.
    pub(super) fn abort(&self) {
        self.tell(ConnectionMessage::Abort);
    }

    /// Ends the input of the agent: what is accepted is answered, then everything ends.
    pub(super) fn finish(&self) {
        self.shutting_down.store(true, Ordering::Release);
        self.end_input(None);
    }

    pub(super) fn end_input(&self, error: Option<Error>) {
        self.to_agent.send_last(Inbound::Eof(EndOfInput { error, exit: None }));
    }

    /// Ends the connection because of a fault of its own. The reason names no payload.
    pub(super) fn fail(&self, reason: &'static str) {
        self.end_input(Some(Error::internal_error().with_origin(Origin::Overflow).data(reason)));
        // At once: a message that comes later must not seem to follow the one that had no room.
        self.end_streams(reason);
        self.tell(ConnectionMessage::Fail(reason));
    }

    // === from the agent ===

    /// Sends a frame of the agent to where it belongs.
    pub(super) fn deliver(self: &Arc<Self>, frame: &Frame, permit: Option<Permit>) {
        if self.answers_opening(frame) {
            return;
        }
        let (stream, changes) = {
            let mut table = self.table.lock();
            (table.target(frame), table.take_changes())
        };
        self.queue(&stream, frame.text().clone(), permit);
        self.announce(changes);
    }

    /// Gives new streams their actors, and ends those of closed sessions.
    fn announce(&self, changes: Changes) {
        for stream in changes.new {
            self.tell(ConnectionMessage::AddStream(stream));
        }
        for stream in changes.closed {
            stream.end("the session was closed");
        }
    }

    fn queue(&self, stream: &Stream, text: Bytes, permit: Option<Permit>) {
        if stream.queue(text, permit).is_err() {
            tracing::warn!("an SSE stream is not read: its connection ends");
            self.fail(OVERFLOW);
        }
    }

    /// Whether this is the answer that opens the connection; then it is taken.
    fn answers_opening(&self, frame: &Frame) -> bool {
        let mut opening = self.opening.lock();
        let Some(waiting) = &*opening else { return false };
        let answers = |frame: &Frame| {
            use greenroom_protocol::FrameKind::{Error, Result};
            matches!(frame.kind(), Result | Error) && frame.raw_id().as_ref() == Some(&waiting.id)
        };
        if !answers(frame) && !frame.entries().iter().any(answers) {
            return false;
        }
        // The grouped answers of a batch settle their requests, too.
        let changes = {
            let mut table = self.table.lock();
            table.settle(frame);
            table.take_changes()
        };
        self.announce(changes);
        match opening.take() {
            Some(waiting) => waiting.answer.send(frame.clone()).is_ok(),
            None => false,
        }
    }

    /// The agent said its last word.
    pub(super) fn agent_ended(&self) {
        self.agent_ended.store(true, Ordering::Release);
        // Whoever waits for the first answer learns that none comes.
        drop(self.opening.lock().take());
        self.end_streams(self.farewell());
        self.tell(ConnectionMessage::AgentEnded);
    }

    /// What is said at the end.
    pub(super) fn farewell(&self) -> &'static str {
        if self.is_shutting_down() { "the server shuts down" } else { "the agent ended" }
    }

    pub(super) fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::Acquire)
    }

    pub(super) fn end_streams(&self, reason: &'static str) {
        for stream in self.table.lock().streams() {
            stream.end(reason);
        }
        self.drained.notify_one();
    }

    /// Whether clients have fetched everything.
    pub(super) fn is_drained(&self) -> bool {
        self.table.lock().streams().all(Stream::is_drained)
    }

    // === from the streams ===

    /// A socket is gone. True when its stream is gone with it, because nobody confirmed it.
    pub(super) fn listener_left(&self, stream: &Arc<Stream>) -> bool {
        *self.heard.lock() = Instant::now();
        self.table.lock().listener_left(stream)
    }

    pub(super) fn stream_ended(&self, stream: &Arc<Stream>) {
        self.table.lock().ended(stream);
        self.drained.notify_one();
    }

    /// Lets go of every socket and of everything that waits.
    pub(super) fn close(&self) {
        drop(self.to_agent.close());
        drop(self.opening.lock().take());
        for stream in self.table.lock().streams() {
            stream.close();
        }
        // The supervisor is gone; holding on to its handle would keep its channels.
        drop(self.supervisor.lock().take());
    }

    pub(super) fn connection_stream(&self) -> Arc<Stream> {
        self.table.lock().connection_stream().clone()
    }
}
