use std::io::{self, IoSlice};
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{Reader, Writer};

const TEXT: &str = "{\"a\":\"中😀é\"}\n{}\n";

/// What a writer saw: pieces, `flush` and `close`.
type Seen = Mutex<Vec<String>>;

/// Reads and writes a piece at a time, and is not `Unpin`.
#[derive(Default)]
struct Pieces {
    pieces: Mutex<Vec<Vec<u8>>>,
    seen: Seen,
    _pinned: PhantomPinned,
}

impl Pieces {
    fn note(&self, what: impl Into<String>) {
        self.seen.lock().unwrap().push(what.into());
    }
}

impl futures_io::AsyncRead for Pieces {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut pieces = self.pieces.lock().unwrap();
        let Some(piece) = pieces.first_mut() else { return Poll::Ready(Ok(0)) };
        if piece.is_empty() {
            // Between two pieces there is nothing for one turn.
            pieces.remove(0);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let length = piece.len().min(buf.len());
        buf[..length].copy_from_slice(&piece[..length]);
        piece.drain(..length);
        Poll::Ready(Ok(length))
    }
}

impl futures_io::AsyncWrite for Pieces {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.note(String::from_utf8_lossy(buf));
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_write_vectored(self: Pin<&mut Self>, _: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.note(bufs.iter().map(|buf| String::from_utf8_lossy(buf)).collect::<Vec<_>>().join("|"));
        Poll::Ready(Ok(bufs.iter().map(|buf| buf.len()).sum()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.note("flush");
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.note("close");
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn reads_the_same_bytes_whatever_the_cut() {
    for cut in 0..=TEXT.len() {
        let (front, back) = TEXT.as_bytes().split_at(cut);
        let pieces = Pieces { pieces: Mutex::new(vec![front.to_vec(), back.to_vec()]), ..Pieces::default() };
        let mut text = String::new();
        Reader(Box::pin(pieces)).read_to_string(&mut text).await.unwrap();
        assert_eq!(text, TEXT, "cut at {cut}");
    }
}

/// Claims to have read more than it could.
struct Liar;

impl futures_io::AsyncRead for Liar {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len() + 1))
    }
}

#[tokio::test]
async fn reports_a_reader_that_claims_too_much() {
    let mut buffer = [0; 8];
    let failure = Reader(Box::pin(Liar)).read(&mut buffer).await.unwrap_err();
    assert!(failure.to_string().contains("more bytes"), "{failure}");
}

#[tokio::test]
async fn writes_vectored_and_closes_on_shutdown() {
    let mut writer = Writer(Box::pin(Pieces::default()));
    writer.write_all(b"one").await.unwrap();
    assert!(writer.is_write_vectored());
    let pieces = [IoSlice::new(b"two"), IoSlice::new("é".as_bytes())];
    assert_eq!(writer.write_vectored(&pieces).await.unwrap(), 5);
    writer.flush().await.unwrap();
    writer.shutdown().await.unwrap();
    assert_eq!(*writer.0.seen.lock().unwrap(), ["one", "two|é", "flush", "close"]);
}
