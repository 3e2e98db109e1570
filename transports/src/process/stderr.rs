//! What an agent writes to stderr: always read, so that it never blocks, and kept up to a bound.

use std::collections::VecDeque;
use std::convert::Infallible;

use greenroom_actors::link::{LineDirection, LineTap};
use tokio::io::AsyncReadExt;

use super::group::{StderrPipe, read_rest};

/// Bytes of stderr that are kept: enough for a long backtrace.
pub(super) const LIMIT: usize = 64 * 1024;

/// Bytes of one read.
const CHUNK: usize = 16 * 1024;

/// Reads after the exit, at most: a pipe holds 64 KiB, or 1 MiB where somebody enlarged it. What
/// a surviving grandchild goes on writing must not keep us here.
const LAST_READS: usize = 1024 * 1024 / CHUNK;

/// Longest line shown to a callback in one piece.
const MAX_LINE: usize = 64 * 1024;

/// The last bytes of a stream.
#[derive(Debug)]
pub(super) struct Tail {
    bytes: VecDeque<u8>,
    limit: usize,
    /// Whether something was forgotten.
    cut: bool,
}

impl Tail {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: VecDeque::new(), limit, cut: false }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let kept = &bytes[bytes.len().saturating_sub(self.limit)..];
        let excess = (self.bytes.len() + kept.len()).saturating_sub(self.limit);
        self.cut |= excess > 0 || kept.len() < bytes.len();
        self.bytes.drain(..excess);
        self.bytes.extend(kept);
    }

    /// The last whole lines, or the end of the last line if that is all there is.
    pub(super) fn text(&self) -> String {
        let (front, back) = self.bytes.as_slices();
        let all = [front, back].concat();
        let whole = if self.cut { whole_lines(&all) } else { &all[..] };
        String::from_utf8_lossy(whole).into_owned()
    }
}

/// The bytes without the line that lost its beginning.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    match memchr::memchr(b'\n', bytes) {
        Some(end) if end + 1 < bytes.len() => &bytes[end + 1..],
        _ => bytes,
    }
}

/// The reading end of stderr.
pub(super) struct Stderr {
    /// `None` after its end.
    pipe: Option<StderrPipe>,
    buffer: Box<[u8]>,
    tail: Tail,
    tap: Option<LineTap>,
    /// The beginning of a line; stays empty without a callback.
    line: Vec<u8>,
}

impl Stderr {
    pub(super) fn new(pipe: StderrPipe, tap: Option<LineTap>, limit: usize) -> Self {
        let buffer = vec![0; CHUNK].into_boxed_slice();
        Self { pipe: Some(pipe), buffer, tail: Tail::new(limit), tap, line: Vec::new() }
    }

    /// Reads for as long as it is polled. Cancel-safe: what was read is kept.
    pub(super) async fn drain(&mut self) -> Infallible {
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut self.buffer).await {
                Ok(0) | Err(_) => self.ended(),
                Ok(length) => self.keep(length),
            }
        }
        std::future::pending().await
    }

    /// Reads what is in the pipe: all that the exited process wrote is in there. Does not wait for
    /// its end, since others may have it open.
    pub(super) async fn drain_rest(&mut self) {
        for _ in 0..LAST_READS {
            let Some(pipe) = &mut self.pipe else { return };
            match read_rest(pipe, &mut self.buffer).await {
                Ok(0) => return self.ended(),
                Ok(length) => self.keep(length),
                // Empty, or broken; either way nothing is left to read.
                Err(_) => break,
            }
        }
        self.show_rest();
    }

    /// What is remembered of the output so far.
    pub(super) fn tail(&self) -> String {
        self.tail.text()
    }

    fn keep(&mut self, length: usize) {
        let Self { buffer, tail, tap, line, .. } = self;
        let read = &buffer[..length];
        tail.push(read);
        let Some(tap) = tap else { return };
        for piece in read.split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(piece);
            if piece.ends_with(b"\n") || line.len() >= MAX_LINE {
                show(tap, line);
            }
        }
    }

    fn ended(&mut self) {
        self.pipe = None;
        self.show_rest();
    }

    fn show_rest(&mut self) {
        if let Some(tap) = &self.tap
            && !self.line.is_empty()
        {
            show(tap, &mut self.line);
        }
    }
}

fn show(tap: &LineTap, line: &mut Vec<u8>) {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    tap(&String::from_utf8_lossy(text), LineDirection::Stderr);
    line.clear();
}

#[cfg(test)]
mod tests {
    use super::Tail;

    #[test]
    fn keeps_everything_up_to_the_limit() {
        let mut tail = Tail::new(6);
        for part in ["ab", "", "c\nd", "e"] {
            tail.push(part.as_bytes());
        }
        assert_eq!(tail.text(), "abc\nde");
    }

    #[test]
    fn forgets_the_oldest_line_as_a_whole() {
        let mut tail = Tail::new(6);
        tail.push(b"abc\ndef");
        assert_eq!(tail.text(), "def");
        tail.push(b"0123456789\nxy\n");
        assert_eq!(tail.text(), "xy\n");
        tail.push(b"0123456789");
        assert_eq!(tail.text(), "456789");
    }

    #[test]
    fn survives_a_cut_inside_a_character() {
        let mut tail = Tail::new(4);
        tail.push("中😀".as_bytes());
        assert_eq!(tail.text(), "😀");
        tail.push(b"a");
        assert!(tail.text().ends_with('a'), "{:?}", tail.text());
    }
}
