//! Stdin and stdout on Unix: what kind of file each is, and the fitting reader and writer.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;

use greenroom_actors::link::{ByteReader, ByteWriter};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, OFlags, Stat, fcntl_getfl, fcntl_setfl, fstat};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::blocking::{ThreadReader, ThreadWriter};

/// File flags as they were. Dropping it restores them.
#[derive(Default)]
pub(super) struct SavedFlags(Vec<(OwnedFd, OFlags)>);

impl Drop for SavedFlags {
    fn drop(&mut self) {
        for (fd, flags) in self.0.drain(..) {
            // Fails only when the open file is gone, and then there is nothing to restore.
            let _ = fcntl_setfl(&fd, flags);
        }
    }
}

/// What a descriptor stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pipe,
    Socket,
    /// A terminal, a file, a device: the event loop cannot wait for these, or must not.
    Other,
}

impl Kind {
    fn of(fd: &OwnedFd, stderr: Option<&Stat>) -> io::Result<Self> {
        let stat = fstat(fd)?;
        // Whoever prints to stderr does not expect non-blocking mode: the print macros panic when
        // a pipe is full. So a file that is stderr too (`2>&1`) is left in its mode.
        if stderr.is_some_and(|stderr| (stderr.st_dev, stderr.st_ino) == (stat.st_dev, stat.st_ino)) {
            return Ok(Self::Other);
        }
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::Fifo => Self::Pipe,
            FileType::Socket => Self::Socket,
            _ => Self::Other,
        })
    }
}

/// Opens both directions on descriptors of their own.
pub(super) fn open() -> io::Result<(ByteReader, ByteWriter, SavedFlags)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    let stderr = fstat(io::stderr()).ok();
    let (input_kind, output_kind) = (Kind::of(&input, stderr.as_ref())?, Kind::of(&output, stderr.as_ref())?);
    // Both before either changes: the two may be one open file.
    let mut saved = SavedFlags::default();
    for (fd, kind) in [(&input, input_kind), (&output, output_kind)] {
        let flags = fcntl_getfl(fd)?;
        if kind != Kind::Other && !flags.contains(OFlags::NONBLOCK) {
            saved.0.push((fd.try_clone()?, flags));
        }
    }
    let reader: ByteReader = match input_kind {
        Kind::Pipe => Box::new(pipe::Receiver::from_owned_fd(input)?),
        Kind::Socket => Box::new(stream(input)?),
        Kind::Other => Box::new(thread_reader(input)?),
    };
    let writer: ByteWriter = match output_kind {
        Kind::Pipe => Box::new(pipe::Sender::from_owned_fd(output)?),
        Kind::Socket => Box::new(stream(output)?),
        Kind::Other => Box::new(ThreadWriter::start(Patient(File::from(output)))?),
    };
    Ok((reader, writer, saved))
}

/// Any stream socket: only reads and writes are used, so the address family does not matter.
fn stream(fd: OwnedFd) -> io::Result<UnixStream> {
    let stream = StdUnixStream::from(fd);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// Reads in a thread that ends when the reader is dropped, even while no input comes: otherwise it
/// would swallow the next input, which belongs to somebody else.
fn thread_reader(fd: OwnedFd) -> io::Result<ThreadReader> {
    let (stop, stopper) = io::pipe()?;
    let mut file = File::from(fd);
    let read = move |buf: &mut [u8]| {
        let mut waiting = [PollFd::new(&file, PollFlags::IN), PollFd::new(&stop, PollFlags::IN)];
        poll(&mut waiting, None)?;
        // The other end of `stop` is closed, never written.
        if !waiting[1].revents().is_empty() { Ok(0) } else { file.read(buf) }
    };
    ThreadReader::start(read, stopper)
}

/// A file that may be in non-blocking mode because somebody who shares it wants so.
struct Patient(File);

impl Write for Patient {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(buf) {
                Err(failure) if failure.kind() == io::ErrorKind::WouldBlock => {
                    poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], None)?;
                }
                result => return result,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
