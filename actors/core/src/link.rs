//! What stands at the far side of a connection: bytes, a channel of frames, or another tree.
//!
//! Every transport turns itself into a [`Link`]; the connection's tree then adds the actors that
//! this kind of link needs (a reader and a writer for bytes and channels, neither for a tree of
//! the same process).

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use greenroom_protocol::{Batches, BoxFuture, Channel, ConnectionDriver, Error, limits};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::port::{FrameReceiver, FrameSender, Inbound, Port, split};
use crate::runtime::Mailbox;

/// A readable end of a byte stream. Reads must be cancel-safe, as those of tokio are: the reader's
/// actor may die in the middle of one.
pub type ByteReader = Box<dyn AsyncRead + Send + Unpin>;

/// A writable end of a byte stream. A write that is dropped before it is ready must have written
/// nothing, as `AsyncWrite` demands.
pub type ByteWriter = Box<dyn AsyncWrite + Send + Unpin>;

/// Which stream a line belongs to, as seen from the process that owns the descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineDirection {
    /// Written to the peer's input.
    Stdin,
    /// Read from the peer's output.
    Stdout,
    /// Read from the peer's diagnostics.
    Stderr,
}

/// Sees every line that passes a physical transport, without its line end, invalid UTF-8 replaced.
/// Called by the reader and writer actors: it must not block. Lines of one direction come in order.
/// A panic is logged and costs no message.
pub type LineTap = Arc<dyn Fn(&str, LineDirection) + Send + Sync>;

/// Shows a line to a tap. A tap that panics must not cost the message that it looks at.
pub(crate) fn show(tap: &LineTap, line: &[u8], direction: LineDirection) {
    let text = String::from_utf8_lossy(line);
    if catch_unwind(AssertUnwindSafe(|| tap(&text, direction))).is_err() {
        tracing::error!("a line tap panicked");
    }
}

/// How the process behind a link ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The program, as it was started (without its arguments).
    pub program: String,
    /// What the operating system says, for example `exit status: 3` or `signal: 9 (SIGKILL)`.
    pub status: String,
    /// Whether the status means success.
    pub success: bool,
    /// Whether we asked it to end (then the status is no failure).
    pub requested: bool,
    /// The step of the shutdown ladder that ended it.
    pub rung: &'static str,
    /// The last lines it wrote to stderr, bounded.
    pub stderr_tail: String,
}

/// The two directions of a link.
pub(crate) enum Ends {
    Bytes { reader: ByteReader, writer: ByteWriter },
    Channel(Channel),
    Port(Port),
    Opening(BoxFuture<'static, Result<Link, Error>>),
}

/// The far side of one connection, with the future that drives it, if it needs one.
pub struct Link {
    pub(crate) ends: Ends,
    pub(crate) driver: Option<ConnectionDriver>,
    pub(crate) driver_kind: &'static str,
    pub(crate) exit: Option<watch::Receiver<Option<Exit>>>,
    pub(crate) tap: Option<LineTap>,
    pub(crate) batches: Batches,
    /// `None`: the default.
    max_frame: Option<usize>,
}

impl Link {
    fn new(ends: Ends) -> Self {
        Self {
            ends,
            driver: None,
            driver_kind: "driver",
            exit: None,
            tap: None,
            batches: Batches::Accept,
            max_frame: None,
        }
    }

    /// A byte stream that carries one JSON text a line, ended by a line feed. Carriage returns before
    /// it, blank lines and a byte order mark at the very beginning are skipped; a last line may go
    /// without its end.
    pub fn bytes(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self::new(Ends::Bytes { reader: Box::new(reader), writer: Box::new(writer) })
    }

    /// The documented in-process channel: parsed messages, no bytes, no credit.
    #[must_use]
    pub fn channel(channel: Channel) -> Self {
        Self::new(Ends::Channel(channel))
    }

    /// Another tree of this process.
    pub(crate) fn port(port: Port) -> Self {
        Self::new(Ends::Port(port))
    }

    /// A component of this process: `serve` gets the other end and runs, below this connection, until
    /// it is done. Frames pass by value. Its error ends the connection.
    pub fn component<F, Fut>(serve: F) -> Self
    where
        F: FnOnce(Link) -> Fut,
        Fut: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let (ours, theirs) = Port::pair();
        let driver = ConnectionDriver::new(serve(Self::port(theirs)));
        Self::port(ours).with_driver(driver).with_driver_kind("component")
    }

    /// A link that takes time to come up, such as a process that has to be started. The future
    /// runs once, inside the runtime; its error ends the connection.
    pub fn opening(open: impl Future<Output = Result<Link, Error>> + Send + 'static) -> Self {
        Self::new(Ends::Opening(Box::pin(open)))
    }

    /// A link for a transport that moves whole frames, such as HTTP: what the connection sends comes
    /// out of the receiver, and the sender brings frames to it. Give the link the
    /// [driver](Self::with_driver) that holds both ends.
    #[must_use]
    pub fn frames() -> (Self, FrameReceiver, FrameSender) {
        let (ours, theirs) = Port::pair();
        let (receiver, sender) = split(theirs);
        (Self::port(ours), receiver, sender)
    }

    /// As [`frames`](Self::frames), for a transport whose own actors read and write the mailboxes
    /// of the other tree: first what comes out of the connection, then what goes into it.
    ///
    /// Whoever reads the first closes it at its end, and ends the second with an
    /// [`Inbound::Eof`](crate::Inbound) as its last item.
    #[must_use]
    pub fn mailboxes() -> (Self, Mailbox<Inbound>, Mailbox<Inbound>) {
        let (ours, theirs) = Port::pair();
        (Self::port(ours), theirs.incoming, theirs.outgoing)
    }

    /// Adds the future that drives the link; it runs as an actor of the connection's tree.
    #[must_use]
    pub fn with_driver(mut self, driver: ConnectionDriver) -> Self {
        self.driver = Some(driver);
        self
    }

    /// Names the driver in the tree's snapshot, for example `child-process`.
    #[must_use]
    pub fn with_driver_kind(mut self, kind: &'static str) -> Self {
        self.driver_kind = kind;
        self
    }

    /// Lets the connection learn how the process behind the link ended, so that pending requests
    /// fail with the reason. At the end of the input it is waited for, 250 ms at the longest.
    #[must_use]
    pub fn with_exit(mut self, exit: watch::Receiver<Option<Exit>>) -> Self {
        self.exit = Some(exit);
        self
    }

    /// Shows every line to a callback. Byte streams only: a channel or component has no lines.
    #[must_use]
    pub fn with_tap(mut self, tap: LineTap) -> Self {
        self.tap = Some(tap);
        self
    }

    /// Longest accepted line in bytes, without its end; the default is [`limits::MAX_FRAME`] (64 MiB).
    /// A longer one ends the connection with [`Origin::Overflow`](crate::Origin::Overflow).
    #[must_use]
    pub fn with_max_frame(mut self, bytes: usize) -> Self {
        self.max_frame = Some(bytes);
        self
    }

    /// Whether JSON arrays that arrive are taken apart (the default) or refused, whatever stands at
    /// this end.
    #[must_use]
    pub fn with_batches(mut self, batches: Batches) -> Self {
        self.batches = batches;
        self
    }

    /// The limit that holds.
    pub(crate) fn max_frame(&self) -> usize {
        self.max_frame.unwrap_or(limits::MAX_FRAME)
    }

    /// The channel that this link is, with its driver; anything else comes back.
    #[allow(clippy::result_large_err, reason = "not an error: the other kind of link")]
    pub(crate) fn into_channel(self) -> Result<(Channel, Option<ConnectionDriver>), Self> {
        match self.ends {
            Ends::Channel(channel) => Ok((channel, self.driver)),
            ends => Err(Self { ends, ..self }),
        }
    }

    /// Waits until the link is up.
    ///
    /// # Errors
    /// The error of the future given to [`opening`](Self::opening).
    pub(crate) async fn open(self) -> Result<Self, Error> {
        let mut link = self;
        while let Ends::Opening(open) = link.ends {
            let opened = Box::pin(open).await?;
            // What was set on the outer link wins over the defaults of the inner one.
            link = Self {
                driver_kind: if link.driver.is_some() { link.driver_kind } else { opened.driver_kind },
                driver: link.driver.or(opened.driver),
                exit: link.exit.or(opened.exit),
                tap: link.tap.or(opened.tap),
                batches: if link.batches == Batches::Reject { link.batches } else { opened.batches },
                max_frame: link.max_frame.or(opened.max_frame),
                ends: opened.ends,
            };
        }
        Ok(link)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ends = match self.ends {
            Ends::Bytes { .. } => "bytes",
            Ends::Channel(_) => "channel",
            Ends::Port(_) => "port",
            Ends::Opening(_) => "opening",
        };
        f.debug_struct("Link").field("ends", &ends).field("max_frame", &self.max_frame()).finish_non_exhaustive()
    }
}
