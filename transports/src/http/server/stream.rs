//! One SSE stream: what the agent says to a session, or to the connection, on its way to whoever
//! listens.
//!
//! Owns: the events that wait, those that may be asked for again, and the way to the socket.
//! Supervised by: the connection. When it dies: restarted, nothing lost. When its socket dies: it
//! waits for the next one; what the dead socket had taken is lost, unless events are kept.
//! Ordering promise: events leave in the order in which the agent said them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Bytes, BytesMut};
use greenroom_actors::runtime::{Credit, Flow, Inbox, Mailbox, Permit, Stage};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Duration, Instant};

use super::answer::Chunk;
use super::connection::Connection;
use super::draft::Draft;
use super::replay::Replay;
use super::sse;

/// Bytes that go to a socket at once; a larger event goes alone.
const CHUNK: usize = 64 * 1024;

/// Chunks that a socket may have taken and not written.
const AHEAD: usize = 2;

/// What a message costs beside its text, in bytes.
const EVENT_COST: usize = 256;

/// What waits in a stream.
pub(super) enum Event {
    /// A message.
    Message(Bytes, Vec<Permit>),
    /// Nothing comes after this. The reason is told to the client as a comment.
    End(&'static str),
}

/// A logical stream; it outlives its sockets.
pub(super) struct Stream {
    /// The session; `None` for the stream of the connection.
    pub(super) session: Option<Arc<str>>,
    pub(super) mailbox: Mailbox<Event>,
    credit: Credit,
    cap: usize,
    listener: Mutex<Listener>,
    /// A listener came.
    changed: Notify,
    /// The last word was taken by a socket.
    done: AtomicBool,
}

#[derive(Default)]
struct Listener {
    socket: Option<mpsc::Sender<Chunk>>,
    /// The last event that the new client has; what follows is sent again.
    resume: Option<Box<str>>,
    /// The new client has to be told where it begins.
    fresh: bool,
    replay: Option<Replay>,
}

/// Why a client cannot listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deaf {
    /// Somebody listens already.
    Taken,
    /// It asks for events that are not kept (any more), or for those of another stream.
    Gap,
}

/// The queue of the stream is longer than its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overflow;

impl Stream {
    pub(super) fn new(session: Option<Arc<str>>, credit: usize, cap: usize, replay: usize) -> Self {
        let replay = (replay > 0).then(|| Replay::new(replay));
        Self {
            session,
            mailbox: Mailbox::new(),
            credit: Credit::new(credit),
            cap,
            listener: Mutex::new(Listener { replay, ..Listener::default() }),
            changed: Notify::new(),
            done: AtomicBool::new(false),
        }
    }

    /// Queues a message. Its producer's permit is given back at once while the stream has room,
    /// and otherwise when a socket takes the message: that is what slows the producer.
    ///
    /// # Errors
    /// When more bytes wait than the stream may hold.
    pub(super) fn queue(&self, text: Bytes, producer: Option<Permit>) -> Result<(), Overflow> {
        if self.credit.used() + text.len() > self.cap {
            return Err(Overflow);
        }
        let mut permits = Vec::with_capacity(2);
        if self.credit.is_full() {
            permits.extend(producer);
        }
        permits.push(self.credit.take(text.len() + EVENT_COST));
        // A closed mailbox belongs to a connection that is over.
        let _ = self.mailbox.send(Event::Message(text, permits));
        Ok(())
    }

    /// Ends the stream behind everything that was queued.
    pub(super) fn end(&self, reason: &'static str) {
        self.mailbox.send_last(Event::End(reason));
    }

    /// Lets a client listen, from the event after `last` if it names one.
    pub(super) fn listen(&self, last: Option<&str>) -> Result<mpsc::Receiver<Chunk>, Deaf> {
        let mut listener = self.listener.lock();
        if listener.socket.as_ref().is_some_and(|socket| !socket.is_closed()) {
            return Err(Deaf::Taken);
        }
        let resume = last.filter(|_| listener.replay.is_some());
        if let (Some(last), Some(replay)) = (resume, &listener.replay) {
            replay.after(last).ok_or(Deaf::Gap)?;
        }
        let (socket, chunks) = mpsc::channel(AHEAD);
        listener.socket = Some(socket);
        listener.resume = resume.map(Box::from);
        listener.fresh = resume.is_none();
        drop(listener);
        self.changed.notify_one();
        Ok(chunks)
    }

    /// Whether a client listens now.
    pub(super) fn has_listener(&self) -> bool {
        self.listener.lock().socket.as_ref().is_some_and(|socket| !socket.is_closed())
    }

    /// Whether there is nothing left that a client could fetch.
    pub(super) fn is_drained(&self) -> bool {
        self.done.load(Ordering::Acquire) || (self.credit.used() == 0 && !self.has_listener())
    }

    /// Lets go of the socket and of everything that waits.
    pub(super) fn close(&self) {
        drop(self.mailbox.close());
        self.hang_up();
    }

    fn socket(&self) -> Option<mpsc::Sender<Chunk>> {
        self.listener.lock().socket.clone()
    }

    /// What the new client has to be sent again: everything after its last event that was ever
    /// written, also what the old socket did not take. `Some(None)` when that is not kept any more.
    fn take_resumed(&self) -> Option<Option<Bytes>> {
        let mut listener = self.listener.lock();
        let last = listener.resume.take()?;
        Some(listener.replay.as_ref().and_then(|replay| replay.after(&last)))
    }

    /// What tells a new client where it begins, so that it can go on although no event has come. Only
    /// where events are kept.
    fn take_beginning(&self) -> Option<Bytes> {
        let mut listener = self.listener.lock();
        let is_fresh = std::mem::take(&mut listener.fresh);
        listener.replay.as_ref().filter(|_| is_fresh).map(Replay::beginning)
    }

    /// Lets go of the socket, so that its client sees the end.
    fn hang_up(&self) {
        self.listener.lock().socket = None;
    }

    /// Lets go of this socket. False when there is another one already.
    fn hang_up_if(&self, gone: &mpsc::Sender<Chunk>) -> bool {
        let mut listener = self.listener.lock();
        let same = listener.socket.as_ref().is_some_and(|socket| socket.same_channel(gone));
        if same {
            listener.socket = None;
        }
        same
    }

    fn write(&self, text: &[u8], out: &mut BytesMut) {
        match &mut self.listener.lock().replay {
            None => sse::event(None, text, out),
            Some(replay) => replay.event(text, out),
        }
    }
}

/// The stage of one stream.
pub(super) struct StreamStage {
    stream: Arc<Stream>,
    connection: Arc<Connection>,
    chunk: Draft,
    keep_alive: Duration,
    ended: bool,
}

impl StreamStage {
    pub(super) fn new(stream: Arc<Stream>, connection: Arc<Connection>, keep_alive: Duration) -> Self {
        Self { stream, connection, chunk: Draft::default(), keep_alive, ended: false }
    }

    /// Puts what waits into the next chunk.
    fn fill(&mut self, inbox: &mut Inbox<Event>) {
        while self.chunk.len() < CHUNK && !self.ended {
            if inbox.is_empty() {
                inbox.refill();
            }
            let Some(event) = inbox.begin() else { break };
            match event {
                Event::Message(text, permits) => {
                    self.chunk.event(permits, |out| self.stream.write(text, out));
                }
                Event::End(reason) => {
                    self.chunk.end(reason);
                    self.ended = true;
                }
            }
            inbox.commit();
        }
    }

    /// Serves one socket until it is gone or there is nothing to do.
    async fn serve(&mut self, socket: &mpsc::Sender<Chunk>, inbox: &mut Inbox<Event>) -> Served {
        match self.stream.take_resumed() {
            None => {
                if let Some(beginning) = self.stream.take_beginning() {
                    self.chunk.begin(&beginning);
                }
            }
            Some(Some(again)) => self.chunk.again(&again),
            // It could resume when it asked and cannot any more: it must not miss events silently.
            Some(None) => return Served::Gone,
        }
        // A chunk that was filled before a death or for a socket that left goes first.
        if self.chunk.is_empty() {
            self.fill(inbox);
        }
        if self.chunk.is_empty() {
            let quiet = tokio::time::sleep_until(Instant::now() + self.keep_alive);
            tokio::select! {
                () = socket.closed() => return Served::Gone,
                () = inbox.more() => return Served::On,
                () = quiet => self.chunk.comment(|out| sse::comment("", out)),
            }
        }
        match socket.reserve().await {
            Ok(place) => {
                // More may have come while the socket was busy.
                if self.chunk.len() < CHUNK {
                    self.fill(inbox);
                }
                place.send(self.chunk.take());
                Served::On
            }
            Err(_) => Served::Gone,
        }
    }
}

/// How serving a socket goes on.
enum Served {
    On,
    Gone,
}

impl Stage for StreamStage {
    type Item = Event;

    async fn run(&mut self, inbox: &mut Inbox<Event>) -> Flow {
        if self.ended && self.chunk.is_empty() {
            self.stream.hang_up();
            self.stream.done.store(true, Ordering::Release);
            self.connection.stream_ended(&self.stream);
            return Flow::Finished;
        }
        let Some(socket) = self.stream.socket() else {
            self.stream.changed.notified().await;
            return Flow::Again;
        };
        match self.serve(&socket, inbox).await {
            Served::On => Flow::Again,
            Served::Gone => {
                // Unless another client listens already.
                if self.stream.hang_up_if(&socket) && self.connection.listener_left(&self.stream) {
                    return Flow::Finished;
                }
                Flow::Again
            }
        }
    }

    fn quarantine(&mut self, _event: Event) {
        self.connection.fail("an event could not be written");
    }
}
