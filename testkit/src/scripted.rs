//! A peer that speaks raw bytes from a script.

use serde_json::Value;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf,
};

use greenroom::link::Link;

/// One end of a byte stream in the hands of a test.
///
/// # Panics
/// Every method panics when the stream does not do what the script says: a test fails there.
#[derive(Debug)]
pub struct Scripted<R, W> {
    reader: BufReader<R>,
    writer: Option<W>,
}

/// A scripted peer in this process.
pub type Local = Scripted<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>;

/// A peer, and the link of the endpoint that it talks to, with `capacity` bytes of room each way.
#[must_use]
pub fn pair(capacity: usize) -> (Local, Link) {
    let (ours, theirs) = tokio::io::duplex(capacity);
    let (reader, writer) = tokio::io::split(theirs);
    (Scripted::over(ours), Link::bytes(reader, writer))
}

impl Local {
    /// A peer at this end of a pipe.
    #[must_use]
    pub fn over(stream: DuplexStream) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self::new(reader, writer)
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Scripted<R, W> {
    /// A peer that reads from `reader` and writes to `writer`.
    pub fn new(reader: R, writer: W) -> Self {
        Self { reader: BufReader::new(reader), writer: Some(writer) }
    }

    /// Writes bytes as they are.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let writer = self.writer.as_mut().expect("the script closed its output before");
        writer.write_all(bytes.as_ref()).await.expect("the endpoint reads");
        writer.flush().await.expect("the endpoint reads");
    }

    /// Writes bytes in two pieces, cut at this offset; the endpoint gets a chance to read the first
    /// before the second comes.
    pub async fn write_cut(&mut self, bytes: impl AsRef<[u8]>, at: usize) {
        let (first, second) = bytes.as_ref().split_at(at);
        self.write(first).await;
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        self.write(second).await;
    }

    /// Writes one message and a line feed.
    pub async fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n")).await;
    }

    /// Writes `bytes` again and again until the endpoint stops reading, and says how many went
    /// through. "Stops" means that it takes nothing for as long as the runtime has anything else to
    /// do, so this wants a paused clock.
    pub async fn flood(&mut self, bytes: &[u8], at_most: usize) -> usize {
        let writer = self.writer.as_mut().expect("the script closed its output before");
        let mut through = 0;
        while through < at_most {
            let once = tokio::time::timeout(
                std::time::Duration::from_millis(1),
                writer.write(&bytes[through % bytes.len()..]),
            );
            match once.await {
                Ok(Ok(count)) => through += count,
                Ok(Err(_)) | Err(_) => break,
            }
        }
        through
    }

    /// Reads one line as it is, without its line feed; `None` at the end of the stream.
    pub async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let count = self.reader.read_line(&mut line).await.expect("the endpoint writes text");
        if count == 0 {
            return None;
        }
        assert_eq!(line.pop(), Some('\n'), "a message without a line feed at its end: {line}");
        Some(line)
    }

    /// Reads one message.
    pub async fn receive(&mut self) -> Value {
        let line = self.line().await.expect("a message, not the end of the stream");
        serde_json::from_str(&line).expect("JSON")
    }

    /// Reads one message and compares it as JSON: the order of members and white space do not
    /// count.
    pub async fn expect(&mut self, message: Value) {
        assert_eq!(self.receive().await, message);
    }

    /// Closes the output, and goes on reading.
    pub async fn close(&mut self) {
        if let Some(mut writer) = self.writer.take() {
            writer.shutdown().await.expect("the endpoint reads");
        }
    }

    /// Expects that nothing more comes but the end of the stream.
    pub async fn expect_end(&mut self) {
        assert_eq!(self.line().await, None);
    }
}
