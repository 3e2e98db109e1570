//! What the server answers: complete bodies, streams, refusals.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use greenroom_actors::runtime::Permit;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

use crate::http::headers::{EVENT_STREAM, JSON};

/// The body of every answer of the server.
pub struct ResponseBody(Kind);

enum Kind {
    Whole(Option<Bytes>),
    Events(mpsc::Receiver<Chunk>),
}

/// A piece of an SSE stream. The permits are given back when the socket takes it.
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    pub(super) permits: Vec<Permit>,
}

impl ResponseBody {
    pub(super) fn empty() -> Self {
        Self(Kind::Whole(None))
    }

    fn whole(bytes: Bytes) -> Self {
        Self(Kind::Whole(Some(bytes).filter(|bytes| !bytes.is_empty())))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut self.get_mut().0 {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Events(chunks) => chunks.poll_recv(cx).map(|chunk| {
                let Chunk { bytes, permits } = chunk?;
                drop(permits);
                Some(Ok(Frame::data(bytes)))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Kind::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}

/// An answer of the server.
pub(super) type Answer = Response<ResponseBody>;

pub(super) fn status(status: StatusCode) -> Answer {
    let mut answer = Response::new(ResponseBody::empty());
    *answer.status_mut() = status;
    answer
}

pub(super) fn text(code: StatusCode, text: impl Into<Bytes>) -> Answer {
    with_type(code, "text/plain; charset=utf-8", text.into())
}

pub(super) fn json(code: StatusCode, text: Bytes) -> Answer {
    with_type(code, JSON, text)
}

fn with_type(code: StatusCode, kind: &'static str, body: Bytes) -> Answer {
    let mut answer = Response::new(ResponseBody::whole(body));
    *answer.status_mut() = code;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// A stream of server-sent events.
pub(super) fn events(chunks: mpsc::Receiver<Chunk>) -> Answer {
    let mut answer = Response::new(ResponseBody(Kind::Events(chunks)));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    // Caches and proxies must pass events on as they come.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}

/// A request that is not done, and why.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    body: Cow<'static, str>,
    is_json: bool,
}

impl Refusal {
    /// # Panics
    /// On a number that is no status; only constants are given.
    pub(super) fn text(status: u16, text: &'static str) -> Self {
        let status = StatusCode::from_u16(status).expect("a status");
        Self { status, body: Cow::Borrowed(text), is_json: false }
    }

    pub(super) fn status(status: StatusCode) -> Self {
        Self { status, body: Cow::Borrowed(""), is_json: false }
    }

    pub(super) fn owned(status: StatusCode, text: String) -> Self {
        Self { status, body: Cow::Owned(text), is_json: false }
    }

    pub(super) fn json(status: StatusCode, body: String) -> Self {
        Self { status, body: Cow::Owned(body), is_json: true }
    }

    pub(super) fn unauthorized() -> Self {
        Self::text(401, "bearer token required")
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let body = match refusal.body {
            Cow::Borrowed(text) => Bytes::from_static(text.as_bytes()),
            Cow::Owned(text) => text.into(),
        };
        let mut answer = if refusal.is_json {
            json(refusal.status, body)
        } else if body.is_empty() {
            status(refusal.status)
        } else {
            text(refusal.status, body)
        };
        if refusal.status == StatusCode::UNAUTHORIZED {
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
    }
}
