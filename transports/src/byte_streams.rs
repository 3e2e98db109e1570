//! Any `futures` reader and writer as a link.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use greenroom_actors::link::Link;
use tokio::io::ReadBuf;

/// A connection over two byte streams, one JSON text a line.
///
/// Neither stream has to be `Unpin`. The connection reads and writes both at the same time; it
/// closes `outgoing` after everything accepted was written (spec §6.2, 61), and reads `incoming` up to
/// its end. Errors of either end the connection. No limit of time: a stream that does not take what
/// is written keeps the connection open (spec §6.2, 62).
pub struct ByteStreams<OB, IB> {
    outgoing: OB,
    incoming: IB,
}

impl<OB, IB> ByteStreams<OB, IB>
where
    OB: futures_io::AsyncWrite + Send + 'static,
    IB: futures_io::AsyncRead + Send + 'static,
{
    /// Writes to `outgoing`, reads from `incoming`. Nothing happens before a connection starts.
    pub fn new(outgoing: OB, incoming: IB) -> Self {
        Self { outgoing, incoming }
    }

    /// The link of a connection that uses these streams.
    #[must_use]
    pub fn into_link(self) -> Link {
        Link::bytes(Reader(Box::pin(self.incoming)), Writer(Box::pin(self.outgoing)))
    }
}

impl<OB, IB> fmt::Debug for ByteStreams<OB, IB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteStreams").finish_non_exhaustive()
    }
}

/// Makes a `futures` reader a tokio reader.
struct Reader<R>(Pin<Box<R>>);

impl<R: futures_io::AsyncRead> tokio::io::AsyncRead for Reader<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let free = buf.initialize_unfilled();
        let room = free.len();
        let read = ready!(self.0.as_mut().poll_read(cx, free))?;
        if read > room {
            return Poll::Ready(Err(io::Error::other("the reader claims more bytes than there was room for")));
        }
        buf.advance(read);
        Poll::Ready(Ok(()))
    }
}

/// Makes a `futures` writer a tokio writer.
struct Writer<W>(Pin<Box<W>>);

impl<W: futures_io::AsyncWrite> tokio::io::AsyncWrite for Writer<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.0.as_mut().poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.as_mut().poll_write_vectored(cx, bufs)
    }

    // The inner writer cannot be asked. One without vectored writes takes the first piece only,
    // which is correct, and cheaper than joining the pieces of a large message.
    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_close(cx)
    }
}

#[cfg(test)]
mod tests;
