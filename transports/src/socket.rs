//! Connected sockets as links.

use std::fmt;
use std::io;

use greenroom_actors::link::{ByteReader, ByteWriter, Link};
use tokio::net::{TcpStream, ToSocketAddrs};

/// A connection over a connected stream socket.
///
/// When the connection has written everything it closes the sending direction, so the peer sees
/// the end of its input while its own last messages still arrive. The socket is closed when the
/// connection ends.
pub struct Socket {
    reader: ByteReader,
    writer: ByteWriter,
}

impl Socket {
    pub(crate) fn new(reader: ByteReader, writer: ByteWriter) -> Self {
        Self { reader, writer }
    }

    /// Uses a TCP connection, with its delay for small segments turned off.
    ///
    /// # Errors
    /// When the operating system refuses the option, for example because the peer is gone already.
    pub fn tcp(stream: TcpStream) -> io::Result<Self> {
        // Messages are small and somebody waits for each: Nagle's delay would add up to 40 ms.
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        Ok(Self::new(Box::new(reader), Box::new(writer)))
    }

    /// Connects to a TCP server. Cancel-safe: a dropped attempt leaves nothing behind.
    ///
    /// # Errors
    /// When no address accepts the connection.
    pub async fn connect_tcp(address: impl ToSocketAddrs) -> io::Result<Self> {
        Self::tcp(TcpStream::connect(address).await?)
    }

    /// The link of a connection that uses this socket.
    #[must_use]
    pub fn into_link(self) -> Link {
        Link::bytes(self.reader, self.writer)
    }

    /// The two directions, for programs that move the bytes themselves. Shutting the writer down
    /// closes the sending direction.
    #[must_use]
    pub fn into_ends(self) -> (ByteReader, ByteWriter) {
        (self.reader, self.writer)
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket").finish_non_exhaustive()
    }
}
