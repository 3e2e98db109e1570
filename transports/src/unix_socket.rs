//! Unix sockets.

use std::io;
use std::path::Path;

use tokio::net::UnixStream;

use crate::socket::Socket;

impl Socket {
    /// Uses a connected Unix socket.
    #[must_use]
    pub fn unix(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self::new(Box::new(reader), Box::new(writer))
    }

    /// Connects to a Unix socket. Cancel-safe: a dropped attempt leaves nothing behind.
    ///
    /// # Errors
    /// When nobody listens at the path.
    pub async fn connect_unix(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self::unix(UnixStream::connect(path).await?))
    }
}
