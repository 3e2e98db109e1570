//! Any sink and stream of lines as a link.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_sink::Sink;
use greenroom_actors::link::Link;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection over whole lines: one JSON text an item, without its line end.
///
/// Ordering: lines reach the sink in the order in which the connection accepted them. The sink is
/// flushed whenever the connection has nothing more to write, and closed when it ends; the stream
/// may go on meanwhile (spec §6.2, 61). An incoming item that contains line ends is still one
/// message: JSON allows them between tokens only. The end of the stream is the end of the input.
///
/// Errors of the sink or the stream end the connection. No limit of time: a sink that does not
/// become ready keeps the connection open (spec §6.2, 62).
pub struct Lines<OutgoingSink, IncomingStream> {
    outgoing: OutgoingSink,
    incoming: IncomingStream,
}

impl<OutgoingSink, IncomingStream> Lines<OutgoingSink, IncomingStream>
where
    OutgoingSink: Sink<String, Error = io::Error> + Send + 'static,
    IncomingStream: Stream<Item = io::Result<String>> + Send + 'static,
{
    /// Sends lines to `outgoing`, takes lines from `incoming`. Nothing happens before a connection
    /// starts.
    pub fn new(outgoing: OutgoingSink, incoming: IncomingStream) -> Self {
        Self { outgoing, incoming }
    }

    /// The link of a connection that uses these lines.
    #[must_use]
    pub fn into_link(self) -> Link {
        Link::bytes(LineReader::new(self.incoming), LineWriter::new(self.outgoing))
    }
}

impl<OutgoingSink, IncomingStream> fmt::Debug for Lines<OutgoingSink, IncomingStream> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}

/// A stream of lines as a reader.
struct LineReader<S> {
    stream: Pin<Box<S>>,
    /// The line being read, with its line end, and how much of it was handed out.
    line: Vec<u8>,
    taken: usize,
    /// Met after bytes were handed out in the same call; reported by the next one.
    failure: Option<io::Error>,
    ended: bool,
}

impl<S: Stream<Item = io::Result<String>>> LineReader<S> {
    fn new(stream: S) -> Self {
        Self { stream: Box::pin(stream), line: Vec::new(), taken: 0, failure: None, ended: false }
    }

    /// Waits until there is an unread part of a line. False at the end of the stream.
    fn poll_line(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if self.taken < self.line.len() {
            return Poll::Ready(Ok(true));
        }
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Err(failure));
        }
        if self.ended {
            return Poll::Ready(Ok(false));
        }
        match ready!(self.stream.as_mut().poll_next(cx)) {
            Some(Ok(line)) => {
                self.line = one_line(line);
                self.taken = 0;
                Poll::Ready(Ok(true))
            }
            Some(Err(failure)) => Poll::Ready(Err(failure)),
            None => {
                self.ended = true;
                Poll::Ready(Ok(false))
            }
        }
    }
}

/// The item with exactly one line end, at its end.
fn one_line(item: String) -> Vec<u8> {
    let mut line = item.into_bytes();
    let mut from = 0;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', &line[from..]) {
        line[from + at] = b' ';
        from += at + 1;
    }
    line.push(b'\n');
    line
}

impl<S: Stream<Item = io::Result<String>>> AsyncRead for LineReader<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        // As many lines as fit: the reader then looks at many messages in one turn.
        while buf.remaining() > 0 {
            match this.poll_line(cx) {
                Poll::Ready(Ok(true)) => {
                    let rest = &this.line[this.taken..];
                    let part = &rest[..rest.len().min(buf.remaining())];
                    buf.put_slice(part);
                    this.taken += part.len();
                }
                Poll::Ready(Ok(false)) => break,
                Poll::Ready(Err(failure)) if buf.filled().len() > before => {
                    this.failure = Some(failure);
                    break;
                }
                Poll::Ready(Err(failure)) => return Poll::Ready(Err(failure)),
                Poll::Pending if buf.filled().len() > before => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// A sink of lines as a writer.
struct LineWriter<S> {
    sink: Pin<Box<S>>,
    /// The line being put together; cut at bytes, so it may end inside a character.
    partial: Vec<u8>,
    /// A whole line that the sink had no room for yet.
    held: Option<String>,
    closed: bool,
}

impl<S: Sink<String, Error = io::Error>> LineWriter<S> {
    fn new(sink: S) -> Self {
        Self { sink: Box::pin(sink), partial: Vec::new(), held: None, closed: false }
    }

    /// Hands over the line that waits, if there is one.
    fn poll_held(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.held.is_some() {
            ready!(self.sink.as_mut().poll_ready(cx))?;
            if let Some(line) = self.held.take() {
                self.sink.as_mut().start_send(line)?;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Ends the line being put together.
    fn hold(&mut self) -> io::Result<()> {
        let line = String::from_utf8(std::mem::take(&mut self.partial))
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the line is not UTF-8"))?;
        self.held = Some(line);
        Ok(())
    }

    /// Takes bytes up to the first line that finds no room. Zero only without room for any.
    fn take(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        while taken < buf.len() {
            if self.poll_held(cx)?.is_pending() {
                break;
            }
            let rest = &buf[taken..];
            match memchr::memchr(b'\n', rest) {
                Some(end) => {
                    self.partial.extend_from_slice(&rest[..end]);
                    taken += end + 1;
                    self.hold()?;
                }
                None => {
                    self.partial.extend_from_slice(rest);
                    taken = buf.len();
                }
            }
        }
        // A last line that has room should not wait for the next call.
        let _ = self.poll_held(cx)?;
        Ok(taken)
    }
}

impl<S: Sink<String, Error = io::Error>> AsyncWrite for LineWriter<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let mut taken = 0;
        for buf in bufs {
            let part = self.take(cx, buf)?;
            taken += part;
            if part < buf.len() {
                break;
            }
        }
        if taken == 0 && bufs.iter().any(|buf| !buf.is_empty()) { Poll::Pending } else { Poll::Ready(Ok(taken)) }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_held(cx))?;
        self.sink.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_held(cx))?;
        if !self.partial.is_empty() {
            self.hold()?;
            ready!(self.poll_held(cx))?;
        }
        self.closed = true;
        self.sink.as_mut().poll_close(cx)
    }
}

#[cfg(test)]
mod tests;
