//! The stdin and stdout of this process as a link.

mod blocking;
mod lease;
#[cfg(not(unix))]
#[path = "stdio/portable.rs"]
mod open;
#[cfg(unix)]
#[path = "stdio/unix.rs"]
mod open;

use std::fmt;
use std::sync::Arc;

use greenroom_actors::link::{ByteReader, ByteWriter, LineDirection, LineTap, Link};
use greenroom_protocol::{Error, LocalError, Origin};

use lease::{Held, Lease};

/// A connection over this process's own stdin and stdout.
///
/// Pipes and sockets are read and written by the runtime's own event loop; terminals, files,
/// devices and whatever is stderr at the same time (`2>&1`) by threads that never keep the process
/// from ending. Only one `Stdio` may be open at
/// a time. As long as it is, nothing else should read stdin or print to stdout; child processes
/// should not inherit them.
///
/// Pipes and sockets are switched to non-blocking mode. That mode belongs to everybody who shares
/// the open file, so it is switched back when the connection has given up both directions.
///
/// Errors: a second `Stdio`, or a descriptor that does not allow its direction, fails when the
/// connection starts. The end of stdin is the end of the input; a broken stdout ends the connection.
#[derive(Default)]
pub struct Stdio {
    tap: Option<LineTap>,
}

impl Stdio {
    /// Stdin and stdout of this process. Nothing is opened before the connection starts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows every line to a callback: read lines as [`LineDirection::Stdin`], written ones as
    /// [`LineDirection::Stdout`]. It runs between two messages and must not block.
    #[must_use]
    pub fn with_debug<F>(mut self, callback: F) -> Self
    where
        F: Fn(&str, LineDirection) + Send + Sync + 'static,
    {
        self.tap = Some(Arc::new(callback));
        self
    }

    /// The link of a connection that uses stdin and stdout.
    #[must_use]
    pub fn into_link(self) -> Link {
        let link = Link::opening(async {
            let (reader, writer) = open()?;
            Ok(Link::bytes(reader, writer))
        });
        match self.tap {
            // The actors name directions as a parent sees them: what they read is its child's
            // output. Here this process is the child.
            Some(tap) => link.with_tap(Arc::new(move |line, direction| tap(line, seen_from_inside(direction)))),
            None => link,
        }
    }

    /// The two directions, for programs that move the bytes themselves. Shutting the writer down
    /// flushes it; the descriptor stays open, since it belongs to the process.
    ///
    /// # Errors
    /// When another `Stdio` is open, or when a descriptor does not allow its direction.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled, when stdin or stdout is a pipe or a socket.
    pub fn into_ends(self) -> Result<(ByteReader, ByteWriter), Error> {
        open()
    }
}

impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio").field("debug", &self.tap.is_some()).finish()
    }
}

fn open() -> Result<(ByteReader, ByteWriter), Error> {
    let Some(lease) = Lease::take() else {
        return Err(Error::new(
            -32603,
            "stdin and stdout are in use by another Stdio connection of this process; only one can be open at a time",
        ));
    };
    let (reader, writer, saved) = open::open().map_err(|failure| {
        let text = "cannot use stdin and stdout as a connection";
        Error::from(LocalError::new(Origin::Transport, text).with_source(failure))
    })?;
    let lease = Arc::new(lease.with_flags(saved));
    Ok((Box::new(Held::new(reader, Arc::clone(&lease))), Box::new(Held::new(writer, lease))))
}

fn seen_from_inside(direction: LineDirection) -> LineDirection {
    match direction {
        LineDirection::Stdin => LineDirection::Stdout,
        LineDirection::Stdout => LineDirection::Stdin,
        LineDirection::Stderr => LineDirection::Stderr,
    }
}
