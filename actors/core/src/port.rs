//! Two trees of one process, connected by value: each writes straight into the other's mailbox.

use std::collections::VecDeque;
use std::fmt;

use greenroom_protocol::{Error, Frame};

use crate::link::Exit;
use crate::runtime::{Mailbox, Permit};

/// What comes in from the far side, in wire order. The end of the input is the last item.
#[derive(Debug)]
pub enum Inbound {
    /// A frame, with the credit that its bytes hold until they are worked off.
    Frame(Frame, Option<Permit>),
    /// The end of the input, behind everything that came before it.
    Eof(EndOfInput),
}

/// How the input ended.
#[derive(Clone, Debug, Default)]
pub struct EndOfInput {
    /// Set when the transport broke; `None` for a clean end.
    pub error: Option<Error>,
    /// How the process behind the transport ended, when that is known.
    pub exit: Option<Exit>,
}

/// One end of an in-process connection.
#[derive(Debug)]
pub(crate) struct Port {
    /// What the other tree sends to us.
    pub(crate) incoming: Mailbox<Inbound>,
    /// What we send to the other tree.
    pub(crate) outgoing: Mailbox<Inbound>,
}

impl Port {
    /// Two connected ends.
    pub(crate) fn pair() -> (Self, Self) {
        let (left, right) = (Mailbox::new(), Mailbox::new());
        (Self { incoming: left.clone(), outgoing: right.clone() }, Self { incoming: right, outgoing: left })
    }
}

/// Frames taken from the connection at once.
const TAKE: usize = 64;

/// What the connection sends, for a transport that moves whole frames.
///
/// A frame's permit counts against the connection's outgoing credit until it is dropped: hold it
/// until the frame is on its way. Dropping the receiver refuses whatever is sent later.
pub struct FrameReceiver {
    source: Mailbox<Inbound>,
    taken: VecDeque<Inbound>,
}

impl FrameReceiver {
    /// The next frame, or the end behind the last of them; nothing comes after the end.
    /// Cancel-safe. Ordering: as the connection sent them.
    pub async fn recv(&mut self) -> Inbound {
        loop {
            if let Some(item) = self.try_recv() {
                return item;
            }
            self.source.wait().await;
        }
    }

    /// The next item, if there is one already.
    pub fn try_recv(&mut self) -> Option<Inbound> {
        if self.taken.is_empty() {
            self.source.take(&mut self.taken, TAKE);
        }
        self.taken.pop_front()
    }
}

impl Drop for FrameReceiver {
    fn drop(&mut self) {
        drop(self.source.close());
    }
}

impl fmt::Debug for FrameReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameReceiver").field("waiting", &(self.taken.len() + self.source.depth())).finish()
    }
}

/// Brings frames to the connection, for a transport that moves whole frames.
///
/// Sending never waits: bound what is under way by a [`Credit`](crate::runtime::Credit) and read
/// no further while it is full. Dropping the sender ends the input.
pub struct FrameSender {
    target: Mailbox<Inbound>,
}

impl FrameSender {
    /// Queues a frame; `permit` is given back when the connection has worked it off. A frame has
    /// to be one line. Without effect after the connection's end.
    pub fn send(&self, frame: Frame, permit: Permit) {
        let _ = self.target.send(Inbound::Frame(frame, Some(permit)));
    }

    /// Ends the input behind everything that was sent; with an error, because the transport broke.
    pub fn finish(self, error: Option<Error>) {
        self.end(error);
    }

    fn end(&self, error: Option<Error>) {
        // What a mailbox holds when it is closed is still read.
        self.target.send_last(Inbound::Eof(EndOfInput { error, exit: None }));
    }
}

impl Drop for FrameSender {
    fn drop(&mut self) {
        self.end(None);
    }
}

impl fmt::Debug for FrameSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameSender").finish_non_exhaustive()
    }
}

/// The far end of a port, in its two directions.
pub(crate) fn split(port: Port) -> (FrameReceiver, FrameSender) {
    (FrameReceiver { source: port.incoming, taken: VecDeque::new() }, FrameSender { target: port.outgoing })
}
