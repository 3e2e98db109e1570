//! The transport writer: outgoing messages in, batched and vectored writes out.
//!
//! Owns: the writable half, what is partly written, the credit of what waits. Supervised by: the
//! connection. When it dies: restarted; it goes on in the middle of the frame it was writing,
//! because the offset is committed in the same poll as the write.
//! Ordering promise: messages are written in mailbox order, whole.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::IoSlice;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use futures_channel::mpsc::UnboundedSender;
use greenroom_protocol::{Outbound, TransportFrame};
use tokio::io::{AsyncWrite as _, AsyncWriteExt as _};

use super::message::Wire;
use super::reader::transport_error;
use super::trace::{self, Way};
use crate::link::{ByteWriter, LineDirection, LineTap, show};
use crate::runtime::{Flow, Inbox, Permit, Stage};

/// Messages up to this size are copied together; longer ones are written from where they are.
const COPY_BELOW: usize = 4 * 1024;

/// Bytes gathered for one write: what a pipe takes at once.
const GATHER: usize = 64 * 1024;

/// Pieces of one vectored write.
const SLICES: usize = 16;

/// Gather-and-write rounds between two looks at the control messages.
const ROUNDS_PER_RUN: usize = 16;

/// The stage of a byte stream's writer.
pub(crate) struct Writer {
    /// `None` once it is closed: for a pipe, dropping it is the end that the peer sees.
    sink: Option<ByteWriter>,
    /// What is being written, front first.
    queue: VecDeque<Bytes>,
    /// Bytes of the front piece that are written already.
    offset: usize,
    /// Small messages on their way into the queue.
    small: BytesMut,
    /// Given back when the whole queue is written.
    permits: Vec<Permit>,
    tap: Option<LineTap>,
    sealing: bool,
}

impl Writer {
    pub(crate) fn new(sink: ByteWriter, tap: Option<LineTap>) -> Self {
        Self {
            sink: Some(sink),
            queue: VecDeque::new(),
            offset: 0,
            small: BytesMut::new(),
            permits: Vec::new(),
            tap,
            sealing: false,
        }
    }

    /// Takes messages until one write is full. Never awaits: nothing can be lost here.
    fn gather(&mut self, inbox: &mut Inbox<Wire>) {
        let mut bytes = 0;
        while bytes < GATHER && !self.sealing {
            if inbox.is_empty() {
                inbox.refill();
            }
            match inbox.take() {
                None => break,
                Some(Wire::Seal) => self.sealing = true,
                Some(Wire::Message(message, permit)) => {
                    bytes += message.len();
                    self.permits.extend(permit);
                    self.push(message);
                }
            }
        }
        self.flush_small();
    }

    fn push(&mut self, message: Outbound) {
        trace::wire(Way::Out, &message.pieces());
        if let Some(tap) = &self.tap {
            let line: Vec<u8> = message.pieces().concat();
            show(tap, &line, LineDirection::Stdin);
        }
        if message.len() <= COPY_BELOW {
            for piece in message.pieces() {
                self.small.extend_from_slice(piece);
            }
            self.small.extend_from_slice(b"\n");
            return;
        }
        let [head, body, tail] = message.into_pieces();
        self.small.extend_from_slice(&head);
        if body.len() <= COPY_BELOW {
            self.small.extend_from_slice(&body);
        } else {
            self.flush_small();
            self.queue.push_back(body);
        }
        self.small.extend_from_slice(&tail);
        self.small.extend_from_slice(b"\n");
    }

    fn flush_small(&mut self) {
        if !self.small.is_empty() {
            self.queue.push_back(self.small.split().freeze());
        }
    }

    /// Writes what was gathered. Cancel-safe: progress is committed in the poll that made it.
    async fn write(&mut self) -> std::io::Result<()> {
        while !self.queue.is_empty() {
            let Some(sink) = &mut self.sink else { return Err(std::io::ErrorKind::BrokenPipe.into()) };
            let written = poll_fn(|cx| {
                let mut slices = [IoSlice::new(&[]); SLICES];
                let mut used = 0;
                for (slice, piece) in slices.iter_mut().zip(&self.queue) {
                    *slice = IoSlice::new(if used == 0 { &piece[self.offset..] } else { piece });
                    used += 1;
                }
                match &slices[..used] {
                    // Most messages go alone, and the system call for one piece is the shorter one.
                    [piece] => Pin::new(&mut *sink).poll_write(cx, piece),
                    slices => Pin::new(&mut *sink).poll_write_vectored(cx, slices),
                }
            })
            .await?;
            if written == 0 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
            self.advance(written);
        }
        self.permits.clear();
        Ok(())
    }

    /// Hands buffered bytes on. Cancel-safe.
    async fn flush(&mut self) -> std::io::Result<()> {
        match &mut self.sink {
            Some(sink) => sink.flush().await,
            None => Ok(()),
        }
    }

    /// Flushes and closes the stream. Cancel-safe: repeated until it is done.
    async fn close(&mut self) -> std::io::Result<()> {
        if let Some(sink) = &mut self.sink {
            sink.flush().await?;
            sink.shutdown().await?;
        }
        self.sink = None;
        Ok(())
    }

    fn advance(&mut self, written: usize) {
        self.offset += written;
        while let Some(front) = self.queue.front() {
            if self.offset < front.len() {
                break;
            }
            self.offset -= front.len();
            self.queue.pop_front();
        }
    }
}

impl Stage for Writer {
    type Item = Wire;

    async fn run(&mut self, inbox: &mut Inbox<Wire>) -> Flow {
        for _ in 0..ROUNDS_PER_RUN {
            if self.queue.is_empty() {
                self.gather(inbox);
            }
            if let Err(error) = self.write().await {
                return Flow::Failed(transport_error("write", error));
            }
            if self.sealing {
                return match self.close().await {
                    Ok(()) => Flow::Finished,
                    Err(error) => Flow::Failed(transport_error("close", error)),
                };
            }
            if inbox.is_empty() {
                inbox.refill();
            }
            if inbox.is_empty() {
                // Buffered sinks hold bytes back until they are told.
                if let Err(error) = self.flush().await {
                    return Flow::Failed(transport_error("write", error));
                }
                return Flow::Idle;
            }
        }
        Flow::Again
    }

    fn quarantine(&mut self, item: Wire) {
        drop(item);
    }
}

/// The stage that writes the documented in-process channel.
pub(crate) struct ChannelWriter {
    sink: Option<UnboundedSender<TransportFrame>>,
}

impl ChannelWriter {
    pub(crate) fn new(sink: UnboundedSender<TransportFrame>) -> Self {
        Self { sink: Some(sink) }
    }
}

impl Stage for ChannelWriter {
    type Item = Wire;

    async fn run(&mut self, inbox: &mut Inbox<Wire>) -> Flow {
        while let Some(item) = inbox.begin() {
            match item {
                Wire::Message(message, _) => {
                    trace::wire(Way::Out, &message.pieces());
                    let frame = message.clone().into_frame().to_transport_frame();
                    let delivered = self.sink.as_ref().is_some_and(|sink| sink.unbounded_send(frame).is_ok());
                    inbox.commit();
                    if !delivered {
                        let gone = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
                        return Flow::Failed(transport_error("write", gone));
                    }
                }
                Wire::Seal => {
                    self.sink = None;
                    inbox.commit();
                    return Flow::Finished;
                }
            }
        }
        Flow::Idle
    }

    fn quarantine(&mut self, item: Wire) {
        drop(item);
    }
}
