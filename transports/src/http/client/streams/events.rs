//! A response as a stream of messages.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_core::stream::BoxStream;
use futures_util::{StreamExt as _, stream};
use greenroom_protocol::Frame;
use reqwest::Response;
use sse_stream::SseStream;

use super::super::failure::{Failure, Trouble};
use super::super::read_frame;

/// What a server may put around the text of one event, in bytes: field names, an id, comments.
const FIELDS: usize = 64 * 1024;

/// Bytes of the event that is being read.
#[derive(Clone, Default)]
struct Unfinished(Arc<AtomicUsize>);

impl Unfinished {
    /// Counts a chunk. A blank line at its end ends every event, comments included.
    fn add(&self, chunk: &[u8]) -> usize {
        if chunk.ends_with(b"\n\n") || chunk.ends_with(b"\r\n\r\n") {
            self.finished();
            return 0;
        }
        // Relaxed: one task reads and writes it.
        self.0.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len()
    }

    fn finished(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// What one event says.
pub(super) struct Said {
    /// Its id, if it has one: where the stream can go on.
    pub(super) id: Option<String>,
    /// Its message. Events of other types have none that is ours.
    pub(super) frame: Option<Frame>,
}

/// What an event stream says, in order. An error is the last item; without one the server ended the
/// stream in order. No more than `limit` bytes of one event are kept.
pub(super) fn messages(response: Response, limit: usize) -> BoxStream<'static, Result<Said, Failure>> {
    let unfinished = Unfinished::default();
    let counted = unfinished.clone();
    let chunks = stream::try_unfold(response, move |mut response| {
        let counted = counted.clone();
        async move {
            match response.chunk().await {
                Ok(Some(chunk)) if counted.add(&chunk) > limit.saturating_add(FIELDS) => {
                    Err(Broken(Failure::TooLong(limit)))
                }
                Ok(Some(chunk)) => Ok(Some((chunk, response))),
                Ok(None) => Ok(None),
                Err(error) => Err(Broken(Failure::StreamBroken(Trouble::of(&error)))),
            }
        }
    });
    let events = SseStream::from_bytes_stream(chunks);
    let messages = events.map(move |event| {
        unfinished.finished();
        let event = event.map_err(failure)?;
        let frame = message(event.event.as_deref(), event.data, limit).transpose()?;
        Ok(Said { id: event.id, frame })
    });
    // The parser goes on after an error; we do not.
    messages
        .scan(false, |failed, item| {
            let go_on = !*failed;
            *failed |= item.is_err();
            std::future::ready(go_on.then_some(item))
        })
        .boxed()
}

/// The message of an event.
fn message(kind: Option<&str>, data: Option<String>, limit: usize) -> Option<Result<Frame, Failure>> {
    if !matches!(kind, None | Some("" | "message")) {
        return None;
    }
    let text = data.filter(|text| !text.is_empty())?;
    if text.len() > limit {
        return Some(Err(Failure::TooLong(limit)));
    }
    Some(Ok(read_frame(Bytes::from(text))))
}

fn failure(error: sse_stream::Error) -> Failure {
    match error {
        sse_stream::Error::Body(error) => match error.downcast::<Broken>() {
            Ok(broken) => broken.0,
            Err(_) => Failure::BadEvent,
        },
        _ => Failure::BadEvent,
    }
}

/// A failure on its way through the parser.
#[derive(Debug)]
struct Broken(Failure);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Broken {}
