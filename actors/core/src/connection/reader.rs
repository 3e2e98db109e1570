//! The transport reader: bytes (or documented channel frames) in, scanned frames out.
//!
//! Owns: the readable half, its buffer, the reader's credit. Supervised by: the connection.
//! When it dies: restarted; the bytes read so far are in its leased buffer.
//! Ordering promise: frames leave in wire order, the end of the input after the last of them.

use std::sync::Arc;

use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::StreamExt as _;
use greenroom_protocol::{Batches, Channel, Error, Frame, Origin, TransportFrame};
use tokio::io::AsyncReadExt as _;
use tokio::sync::{Notify, watch};
use tokio::time::Duration;

use super::trace::{self, Way};
use crate::exit::io_error;
use crate::link::{ByteReader, Exit, LineDirection, LineTap, show};
use crate::port::{EndOfInput, Inbound};
use crate::runtime::{Credit, Flow, Inbox, Mailbox, Stage};

/// First and largest size of a read, in bytes. Starts small so that idle connections cost
/// little, grows to what a pipe holds so that streams need few system calls.
const READ: std::ops::RangeInclusive<usize> = 4 * 1024..=64 * 1024;

/// Bytes of memory that lines of any length may share: what two of the largest reads fill.
const BLOCK: usize = 2 * *READ.end();

/// Reads between two looks at the control messages.
const READS_PER_RUN: usize = 16;

/// What a frame costs beside its text, in bytes: its envelope and its places in the queues.
/// Counting it keeps a flood of tiny messages bounded as well.
const FRAME_COST: usize = 256;

/// How long the end of a process may take to become known after its output ended.
const EXIT_WAIT: Duration = Duration::from_millis(250);

/// Where a reader delivers: the next mailbox, whatever it carries. Called in wire order, in the
/// reader's actor: it must not block.
pub type Outlet = Arc<dyn Fn(Inbound) + Send + Sync>;

/// Delivers into a mailbox of inbound frames.
#[must_use]
pub fn outlet_to(mailbox: Mailbox<Inbound>) -> Outlet {
    Arc::new(move |item| {
        // A closed mailbox belongs to a connection that is over.
        let _ = mailbox.send(item);
    })
}

/// The outlet of a link: where it refuses batches, they arrive as malformed frames.
pub(crate) fn for_link(batches: Batches, outlet: Outlet) -> Outlet {
    match batches {
        Batches::Accept => outlet,
        Batches::Reject => Arc::new(move |item| {
            outlet(match item {
                Inbound::Frame(frame, permit) => Inbound::Frame(frame.without_batch(), permit),
                end @ Inbound::Eof(_) => end,
            });
        }),
    }
}

/// Ends an input behind what was accepted, because nobody is left to send more.
pub(crate) type StopInput = Box<dyn Fn() + Send + Sync>;

/// [`StopInput`] of another tree in this process.
pub(crate) fn stop_port(incoming: &Mailbox<Inbound>) -> StopInput {
    let incoming = incoming.clone();
    // After the end that the tree itself sent, this one is read by nobody.
    Box::new(move || drop(incoming.send(Inbound::Eof(EndOfInput::default()))))
}

/// The stage of a byte stream's reader.
pub(crate) struct Reader {
    source: ByteReader,
    buffer: BytesMut,
    /// Bytes of the buffer that are known to hold no line end.
    scanned: usize,
    next_read: usize,
    /// A line that is being parsed: kept until it is delivered, in case parsing panics.
    current: Option<(Bytes, u32)>,
    at_start: bool,
    max_frame: usize,
    tap: Option<LineTap>,
    credit: Credit,
    exit: Option<watch::Receiver<Option<Exit>>>,
    outlet: Outlet,
    /// How the stream ended. In the leased state, because telling it takes time.
    end: Option<Option<Error>>,
    ended: bool,
}

impl Reader {
    pub(crate) fn new(
        source: ByteReader,
        max_frame: usize,
        tap: Option<LineTap>,
        exit: Option<watch::Receiver<Option<Exit>>>,
        credit: Credit,
        outlet: Outlet,
    ) -> Self {
        Self {
            source,
            buffer: BytesMut::new(),
            scanned: 0,
            next_read: *READ.start(),
            current: None,
            at_start: true,
            max_frame,
            tap,
            credit,
            exit,
            outlet,
            end: None,
            ended: false,
        }
    }

    /// Delivers every complete line of the buffer.
    ///
    /// # Errors
    /// When a line, complete or not, is longer than the limit.
    fn deliver_lines(&mut self) -> Result<(), Error> {
        self.deliver_current();
        let block = self.buffer.capacity();
        let mut found_any = false;
        while let Some(found) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
            let length = self.scanned + found;
            if length > self.max_frame {
                return Err(self.overflow());
            }
            let line = self.buffer.split_to(length).freeze();
            // A short line keeps no long neighbour in memory: who keeps it counts its length.
            let line = if block > BLOCK && length < block / 4 { Bytes::copy_from_slice(&line) } else { line };
            self.buffer.advance(1);
            self.scanned = 0;
            found_any = true;
            self.current = Some((line, 0));
            self.deliver_current();
        }
        if block > BLOCK && found_any {
            // The rest came with the last read; it leaves the block to the long line.
            let mut fresh = BytesMut::with_capacity(self.buffer.len() + self.next_read);
            fresh.extend_from_slice(&self.buffer);
            self.buffer = fresh;
        }
        self.scanned = self.buffer.len();
        if self.scanned > self.max_frame { Err(self.overflow()) } else { Ok(()) }
    }

    /// Parses and delivers the line at hand. Peek and commit: it stays at hand until delivered.
    fn deliver_current(&mut self) {
        let Some((line, attempts)) = &mut self.current else { return };
        *attempts += 1;
        if *attempts <= 2 {
            let text = trim(line.clone(), &mut self.at_start);
            if !text.is_empty() {
                trace::wire(Way::In, &[&text]);
                if let Some(tap) = &self.tap {
                    show(tap, &text, LineDirection::Stdout);
                }
                let permit = self.credit.take(text.len() + FRAME_COST);
                let frame = Frame::parse(text);
                (self.outlet)(Inbound::Frame(frame, Some(permit)));
            }
        } else {
            tracing::error!(bytes = line.len(), "a line broke the reader twice and was dropped");
        }
        self.current = None;
    }

    /// Delivers the end of the input, once, behind everything before it.
    ///
    /// Waits a moment for the end of the process behind the stream, so that whoever waits for an
    /// answer learns the reason.
    async fn deliver_end(&mut self) -> Flow {
        let exit = match &mut self.exit {
            Some(exit) => match tokio::time::timeout(EXIT_WAIT, exit.wait_for(Option::is_some)).await {
                Ok(Ok(exit)) => exit.clone(),
                _ => None,
            },
            None => None,
        };
        if !self.ended {
            self.deliver_current();
            let error = self.end.clone().flatten();
            if error.is_none() && !self.buffer.is_empty() {
                // A last line without a line end still counts.
                let line = self.buffer.split().freeze();
                self.current = Some((line, 0));
                self.deliver_current();
            }
            (self.outlet)(Inbound::Eof(EndOfInput { error, exit }));
            self.ended = true;
        }
        Flow::Finished
    }

    /// Makes room for a read, and tells for how much. What is left of a buffer that earlier messages
    /// share is used until half of a read is no longer free: a new buffer for each short message
    /// would cost more than reading it.
    fn make_room(&mut self) -> usize {
        if self.buffer.capacity() - self.buffer.len() < self.next_read / 2 {
            self.buffer.reserve(self.next_read);
        }
        self.buffer.capacity() - self.buffer.len()
    }

    fn overflow(&self) -> Error {
        let limit = self.max_frame;
        Error::internal_error().with_origin(Origin::Overflow).data(serde_json::json!({
            "reason": "frame overflow: a line is longer than the configured limit",
            "limit": limit,
        }))
    }
}

impl Stage for Reader {
    type Item = std::convert::Infallible;

    async fn run(&mut self, _inbox: &mut Inbox<Self::Item>) -> Flow {
        if self.ended {
            return Flow::Finished;
        }
        for _ in 0..READS_PER_RUN {
            if self.end.is_some() {
                return self.deliver_end().await;
            }
            if let Err(overflow) = self.deliver_lines() {
                self.buffer = BytesMut::new();
                self.end = Some(Some(overflow));
                continue;
            }
            self.credit.room().await;
            let room = self.make_room();
            // Cancel-safe: either the bytes are in the buffer or nothing was read.
            match self.source.read_buf(&mut self.buffer).await {
                Ok(0) => self.end = Some(None),
                Ok(count) if count >= room => self.next_read = (self.next_read * 2).min(*READ.end()),
                Ok(_) => {}
                Err(error) => self.end = Some(Some(transport_error("read", error))),
            }
        }
        Flow::Again
    }

    fn quarantine(&mut self, item: Self::Item) {
        match item {}
    }
}

/// The line without a carriage return, and without the byte order mark that some shells write
/// before the first line. Blank lines come out empty.
fn trim(mut line: Bytes, at_start: &mut bool) -> Bytes {
    if std::mem::take(at_start) && line.starts_with(b"\xEF\xBB\xBF") {
        line.advance(3);
    }
    let end = line.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |last| last + 1);
    line.truncate(end);
    line
}

/// An I/O failure as an error of the connection.
pub(crate) fn transport_error(action: &str, error: std::io::Error) -> Error {
    let gone = matches!(
        error.kind(),
        std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::NotConnected
    );
    io_error(if gone { Origin::PeerGone } else { Origin::Transport }, &format!("transport {action}"), error)
}

/// The stage that reads the documented in-process channel.
pub(crate) struct ChannelReader {
    source: futures_channel::mpsc::UnboundedReceiver<TransportFrame>,
    outlet: Outlet,
    /// Told when whoever drives the far end is done: what is in the channel is all that comes, even
    /// if somebody still holds a sender.
    last: Arc<Notify>,
    ended: bool,
}

impl ChannelReader {
    pub(crate) fn new(
        channel: Channel,
        outlet: Outlet,
    ) -> (Self, futures_channel::mpsc::UnboundedSender<TransportFrame>) {
        (Self { source: channel.rx, outlet, last: Arc::default(), ended: false }, channel.tx)
    }

    /// Ends the input behind what is in the channel.
    pub(crate) fn stopper(&self) -> StopInput {
        let last = self.last.clone();
        Box::new(move || last.notify_one())
    }
}

impl Stage for ChannelReader {
    type Item = std::convert::Infallible;

    async fn run(&mut self, _inbox: &mut Inbox<Self::Item>) -> Flow {
        for _ in 0..READS_PER_RUN * 4 {
            if self.ended {
                return Flow::Finished;
            }
            let next = tokio::select! {
                biased;
                () = self.last.notified() => {
                    self.source.close();
                    continue;
                }
                next = self.source.next() => next,
            };
            match next {
                Some(frame) => match Frame::from_transport_frame(&frame) {
                    Ok(frame) => {
                        trace::wire(Way::In, &[frame.text()]);
                        (self.outlet)(Inbound::Frame(frame, None));
                    }
                    Err(error) => tracing::warn!(
                        code = i32::from(error.code),
                        reason = error.reason(),
                        "a channel frame could not be written"
                    ),
                },
                None => {
                    self.ended = true;
                    (self.outlet)(Inbound::Eof(EndOfInput::default()));
                }
            }
        }
        Flow::Again
    }

    fn quarantine(&mut self, item: Self::Item) {
        match item {}
    }
}

/// The stage that passes on what another tree of this process sends. Only relays need it: a
/// protocol connection reads the other tree's mailbox itself.
pub(crate) struct PortReader {
    outlet: Outlet,
}

impl PortReader {
    pub(crate) fn new(outlet: Outlet) -> Self {
        Self { outlet }
    }
}

impl Stage for PortReader {
    type Item = Inbound;

    async fn run(&mut self, inbox: &mut Inbox<Inbound>) -> Flow {
        while let Some(item) = inbox.take() {
            let end = matches!(item, Inbound::Eof(_));
            (self.outlet)(item);
            if end {
                return Flow::Finished;
            }
        }
        Flow::Idle
    }

    fn quarantine(&mut self, item: Inbound) {
        (self.outlet)(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a reader of these bytes delivers, its block as large as a fast stream makes it.
    fn frames(bytes: &str) -> (Vec<Frame>, Reader) {
        let (sender, frames) = std::sync::mpsc::channel();
        let outlet: Outlet = Arc::new(move |item| {
            if let Inbound::Frame(frame, _) = item {
                sender.send(frame).expect("a test that waits");
            }
        });
        let mut reader =
            Reader::new(Box::new(tokio::io::empty()), usize::MAX, None, None, Credit::new(usize::MAX), outlet);
        reader.buffer.extend_from_slice(bytes.as_bytes());
        reader.deliver_lines().expect("lines");
        (frames.try_iter().collect(), reader)
    }

    #[test]
    fn a_short_line_keeps_no_long_neighbour_in_memory() {
        let short = r#"{"jsonrpc":"2.0","method":"short"}"#;
        let long = format!(r#"{{"jsonrpc":"2.0","method":"long","params":["{}"]}}"#, "x".repeat(2 * BLOCK));
        let (frames, mut reader) = frames(&format!("{short}\n{long}\n{short}\n{{"));
        let [before, long, behind] = &frames[..] else { panic!("three frames") };
        for short in [before, behind] {
            assert!(short.text().is_unique(), "its text is a copy");
        }
        assert!(long.text().is_unique(), "and its block is its own");
        drop(frames);
        reader.make_room();
        assert!(reader.buffer.capacity() <= BLOCK, "and its block is not kept for the next");
        assert_eq!(&reader.buffer[..], b"{", "nor lost what came behind it");
    }

    #[test]
    fn short_lines_share_what_was_read_at_once() {
        let short = "{\"jsonrpc\":\"2.0\",\"method\":\"short\"}\n";
        let (frames, mut reader) = frames(&short.repeat(10));
        let places: Vec<_> = frames.iter().map(|frame| frame.text().as_ptr().addr()).collect();
        assert!(places.windows(2).all(|pair| pair[0] + short.len() == pair[1]), "{places:?}");
        // Half of a read is free: there is no new buffer.
        reader.buffer.reserve(*READ.start());
        let free = reader.make_room();
        assert_eq!(reader.make_room(), free);
    }
}
