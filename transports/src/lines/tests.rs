use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_sink::Sink;
use futures_util::stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{LineReader, LineWriter};

const LINES: [&str; 3] = ["{\"a\":\"中😀é\"}", "", "{}"];

fn text() -> String {
    LINES.iter().flat_map(|line| [line, "\n"]).collect()
}

/// Takes a line only every other time it is asked, and notes what happens.
#[derive(Default)]
struct Slow {
    log: Vec<String>,
    waiting: VecDeque<String>,
    asked: bool,
}

impl Sink<String> for Slow {
    type Error = io::Error;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.asked = !self.asked;
        if self.asked {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn start_send(mut self: Pin<&mut Self>, line: String) -> io::Result<()> {
        self.waiting.push_back(line);
        Ok(())
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let waiting = std::mem::take(&mut self.waiting);
        self.log.extend(waiting);
        self.log.push("<flush>".into());
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let waiting = std::mem::take(&mut self.waiting);
        self.log.extend(waiting);
        self.log.push("<close>".into());
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn writes_the_same_lines_whatever_the_cut() {
    let text = text();
    for cut in 0..=text.len() {
        let (front, back) = text.as_bytes().split_at(cut);
        let mut writer = LineWriter::new(Slow::default());
        writer.write_all(front).await.unwrap();
        writer.write_all(back).await.unwrap();
        writer.flush().await.unwrap();
        writer.shutdown().await.unwrap();
        let expected: Vec<_> = LINES.into_iter().chain(["<flush>", "<close>"]).collect();
        assert_eq!(writer.sink.log, expected, "cut at {cut}");
    }
}

#[tokio::test]
async fn a_flush_in_the_middle_of_a_line_keeps_the_line_whole() {
    let mut writer = LineWriter::new(Slow::default());
    writer.write_all(b"a\nb").await.unwrap();
    writer.flush().await.unwrap();
    assert_eq!(writer.sink.log, ["a", "<flush>"]);
    writer.write_all(b"c\n").await.unwrap();
    writer.flush().await.unwrap();
    assert_eq!(writer.sink.log, ["a", "<flush>", "bc", "<flush>"]);
}

#[tokio::test]
async fn writes_pieces_of_one_line_vectored() {
    let mut writer = LineWriter::new(Slow::default());
    let pieces: Vec<_> = ["{\"id\":", "1", "}", "\n"].map(|piece| IoSlice::new(piece.as_bytes())).into();
    assert_eq!(writer.write_vectored(&pieces).await.unwrap(), 9);
    writer.flush().await.unwrap();
    assert_eq!(writer.sink.log, ["{\"id\":1}", "<flush>"]);
}

#[tokio::test]
async fn shutdown_hands_over_a_last_line_without_its_end_and_refuses_more() {
    let mut writer = LineWriter::new(Slow::default());
    writer.write_all(b"last").await.unwrap();
    writer.shutdown().await.unwrap();
    assert_eq!(writer.sink.log, ["last", "<close>"]);
    assert_eq!(writer.write_all(b"more\n").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn refuses_a_line_that_is_not_utf8() {
    let mut writer = LineWriter::new(Slow::default());
    assert_eq!(writer.write_all(b"\xff\n").await.unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[tokio::test]
async fn reads_one_line_an_item_with_any_buffer() {
    let items = ["{\"a\":\"中😀é\"}", "{\n\"b\":\r\n1}", "", "{}\r\n"];
    let expected = "{\"a\":\"中😀é\"}\n{ \"b\":  1}\n\n{}  \n";
    for room in 1..=expected.len() + 1 {
        let stream = stream::iter(items.map(|item| Ok(item.to_owned())));
        let mut reader = LineReader::new(stream);
        let mut read = Vec::new();
        let mut buffer = vec![0; room];
        loop {
            match reader.read(&mut buffer).await.unwrap() {
                0 => break,
                length => read.extend_from_slice(&buffer[..length]),
            }
        }
        assert_eq!(String::from_utf8(read).unwrap(), expected, "room for {room}");
    }
}

#[tokio::test]
async fn an_error_comes_after_the_lines_before_it() {
    let stream = stream::iter([Ok("a".to_owned()), Err(io::Error::other("broken")), Ok("b".to_owned())]);
    let mut reader = LineReader::new(stream);
    let mut buffer = [0; 64];
    assert_eq!(reader.read(&mut buffer).await.unwrap(), 2);
    assert_eq!(reader.read(&mut buffer).await.unwrap_err().to_string(), "broken");
    assert_eq!(reader.read(&mut buffer).await.unwrap(), 2);
    assert_eq!(reader.read(&mut buffer).await.unwrap(), 0);
    assert_eq!(reader.read(&mut buffer).await.unwrap(), 0);
}
