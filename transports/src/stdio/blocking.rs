//! A reader and a writer for files that can only be waited for by blocking a thread.
//!
//! The threads are detached: the runtime's own blocking threads would keep it from shutting down
//! while a read is waiting for a person to type.

use std::any::Any;
use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::sync::mpsc as thread_mpsc;
use std::task::{Context, Poll, ready};
use std::thread;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

/// Bytes that one read or write of a thread moves at most.
const CHUNK: usize = 64 * 1024;

/// Chunks read ahead of the connection.
const READ_AHEAD: usize = 4;

/// Reads that a thread does.
pub(super) struct ThreadReader {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    taken: usize,
    /// Dropped with the reader; that is how the thread learns of it while it waits for input.
    _stopper: Box<dyn Any + Send>,
}

impl ThreadReader {
    /// Starts the thread. `read` returns 0 at the end of the input, and once `stopper` is dropped.
    pub(super) fn start(
        mut read: impl FnMut(&mut [u8]) -> io::Result<usize> + Send + 'static,
        stopper: impl Send + 'static,
    ) -> io::Result<Self> {
        let (sender, chunks) = mpsc::channel(READ_AHEAD);
        thread::Builder::new().name("stdin".into()).spawn(move || {
            let mut buffer = vec![0; CHUNK];
            loop {
                let chunk = match read(&mut buffer) {
                    Ok(0) => break,
                    Ok(length) => Ok(buffer[..length].to_vec()),
                    Err(failure) if failure.kind() == io::ErrorKind::Interrupted => continue,
                    // Readable, but somebody who shares the file was faster.
                    Err(failure) if failure.kind() == io::ErrorKind::WouldBlock => continue,
                    Err(failure) => Err(failure),
                };
                let failed = chunk.is_err();
                if sender.blocking_send(chunk).is_err() || failed {
                    break;
                }
            }
        })?;
        Ok(Self { chunks, chunk: Vec::new(), taken: 0, _stopper: Box::new(stopper) })
    }
}

impl AsyncRead for ThreadReader {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.taken == this.chunk.len() {
            match ready!(this.chunks.poll_recv(cx)) {
                Some(chunk) => {
                    this.chunk = chunk?;
                    this.taken = 0;
                }
                None => return Poll::Ready(Ok(())),
            }
        }
        let rest = &this.chunk[this.taken..];
        let part = &rest[..rest.len().min(buf.remaining())];
        buf.put_slice(part);
        this.taken += part.len();
        Poll::Ready(Ok(()))
    }
}

/// Writes that a thread does, one chunk at a time.
pub(super) struct ThreadWriter {
    work: thread_mpsc::SyncSender<Vec<u8>>,
    done: mpsc::Receiver<io::Result<()>>,
    /// Whether the thread has a chunk that it did not report on.
    busy: bool,
}

impl ThreadWriter {
    /// Starts the thread.
    pub(super) fn start(mut file: impl Write + Send + 'static) -> io::Result<Self> {
        let (work, chunks) = thread_mpsc::sync_channel::<Vec<u8>>(1);
        let (report, done) = mpsc::channel(1);
        thread::Builder::new().name("stdout".into()).spawn(move || {
            while let Ok(chunk) = chunks.recv() {
                let result = file.write_all(&chunk).and_then(|()| file.flush());
                if report.blocking_send(result).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { work, done, busy: false })
    }

    fn poll_done(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.busy {
            return Poll::Ready(Ok(()));
        }
        let result = ready!(self.done.poll_recv(cx));
        self.busy = false;
        Poll::Ready(result.unwrap_or_else(|| Err(io::ErrorKind::BrokenPipe.into())))
    }
}

impl AsyncWrite for ThreadWriter {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_done(cx))?;
        let mut chunk = Vec::with_capacity(bufs.iter().map(|buf| buf.len()).sum::<usize>().min(CHUNK));
        for buf in bufs {
            chunk.extend_from_slice(&buf[..buf.len().min(CHUNK - chunk.len())]);
        }
        let length = chunk.len();
        if length > 0 {
            // Never blocks: the thread has reported on everything before, so the slot is free.
            self.work.send(chunk).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            self.busy = true;
        }
        Poll::Ready(Ok(length))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_done(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
