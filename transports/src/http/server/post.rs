//! POST: the first message opens a connection, every later one goes to its agent.

use std::pin::pin;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use greenroom_protocol::{Batches, Error, Frame, FrameKind, RawId};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{HeaderName, StatusCode};
use hyper::body::Body;

use super::answer::{Answer, Refusal, json, status};
use super::connection::{Connection, Shape};
use super::message::{Checked, Effect, check, opening_id};
use super::root::Root;
use crate::http::headers::{CONNECTION_ID, JSON, SESSION_ID};

/// Answers a POST. The order of the checks is part of the interface.
pub(super) async fn post<B>(root: &Arc<Root>, parts: &Parts, body: B) -> Result<Answer, Refusal>
where
    B: Body + Send + 'static,
    B::Data: Buf + Send,
{
    let is_json = parts.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(JSON.as_bytes()));
    if !is_json {
        return Err(Refusal::text(415, "Content-Type must be application/json"));
    }
    let limits = &root.options.limits;
    let declared = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|declared| declared > limits.body as u64) {
        return Err(too_large());
    }
    let text = tokio::time::timeout(limits.body_deadline, read(body, limits.body));
    let text = text.await.map_err(|_| Refusal::text(408, "POST body took too long"))??;
    if let Err(error) = std::str::from_utf8(&text) {
        let text = format!("Invalid JSON-RPC: not UTF-8 after byte {}", error.valid_up_to());
        return Err(Refusal::owned(StatusCode::BAD_REQUEST, text));
    }
    let text = trim(text);
    let is_array = text.starts_with(b"[");
    let frame = Frame::parse(text);
    if is_array && root.options.batches == Batches::Reject {
        return Err(batch_refused(frame));
    }
    if let Some(id) = opening_id(&frame) {
        return open(root, parts, frame, id).await;
    }
    let connection = connection_of(root, &parts.headers)?;
    forward(&connection, parts, frame).await
}

fn too_large() -> Refusal {
    Refusal::text(413, "POST body too large")
}

fn batch_refused(frame: Frame) -> Refusal {
    let error = match frame.without_batch().malformation() {
        Some(malformed) => malformed.error.to_wire().get().to_owned(),
        None => Error::invalid_request().to_wire().get().to_owned(),
    };
    Refusal::json(StatusCode::BAD_REQUEST, format!(r#"{{"jsonrpc":"2.0","id":null,"error":{error}}}"#))
}

/// Reads a body, up to a limit.
async fn read<B>(body: B, limit: usize) -> Result<Bytes, Refusal>
where
    B: Body + Send,
    B::Data: Buf + Send,
{
    let mut body = pin!(body);
    // Most bodies are one piece, which is then taken as it is.
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    while let Some(piece) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let piece = piece.map_err(|_| Refusal::status(StatusCode::BAD_REQUEST))?;
        let Ok(mut data) = piece.into_data() else { continue };
        let length = data.remaining();
        if first.len().max(rest.len()) + length > limit {
            return Err(too_large());
        }
        if rest.is_empty() && first.is_empty() {
            first = data.copy_to_bytes(length);
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            rest.extend_from_slice(&data.copy_to_bytes(length));
        }
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

/// The text without white space around it.
fn trim(mut text: Bytes) -> Bytes {
    let blank = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    text.advance(blank);
    let end = text.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |last| last + 1);
    text.truncate(end);
    text
}

/// The one value of a header that is text.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            value.to_str().map(Some).map_err(|_| Refusal::text(400, "an Acp header is no visible ASCII"))
        }
        (Some(_), Some(_)) => Err(Refusal::text(400, "an Acp header is there twice")),
    }
}

/// The connection that a request names.
pub(super) fn connection_of(root: &Arc<Root>, headers: &HeaderMap) -> Result<Arc<Connection>, Refusal> {
    let id = header(headers, &CONNECTION_ID)?.ok_or_else(|| Refusal::text(400, "Acp-Connection-Id header required"))?;
    root.registry.get(id).ok_or_else(|| Refusal::status(StatusCode::NOT_FOUND))
}

/// Adds the id of the connection to an answer.
pub(super) fn name(mut answer: Answer, connection: &Connection) -> Answer {
    // A UUID is always a legal value.
    if let Ok(id) = HeaderValue::from_str(&connection.id) {
        answer.headers_mut().insert(CONNECTION_ID, id);
    }
    answer
}

/// Ends a connection whose client left before it was open.
struct Unopened(Option<Arc<Connection>>, Arc<Root>);

impl Drop for Unopened {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            self.1.registry.remove(&connection.id);
            connection.abort();
        }
    }
}

async fn open(root: &Arc<Root>, parts: &Parts, frame: Frame, id: RawId) -> Result<Answer, Refusal> {
    let checked = if frame.kind() == FrameKind::Batch {
        check(frame, header(&parts.headers, &SESSION_ID)?)?
    } else {
        Checked { frame, expected: Vec::new() }
    };
    let (connection, _supervisor) = root.open(Shape::Http).await?;
    let mut unopened = Unopened(Some(connection.clone()), root.clone());
    let _busy = connection.busy();
    connection.expect(checked.expected)?;
    let answer = connection.open(checked.frame, id.clone()).map_err(|_| agent_closed())?;
    let answer = tokio::time::timeout(root.options.limits.initialize_deadline, answer)
        .await
        .map_err(|_| Refusal::text(504, "the agent did not answer initialize in time"))?
        .map_err(|_| agent_closed())?;
    let body = json(StatusCode::OK, answer.text().clone());
    if !succeeded(&answer, &id) {
        return Ok(body);
    }
    unopened.0 = None;
    Ok(name(body, &connection))
}

fn agent_closed() -> Refusal {
    Refusal::text(500, "agent closed before initialize response")
}

fn succeeded(answer: &Frame, id: &RawId) -> bool {
    let is_result = |frame: &Frame| frame.kind() == FrameKind::Result && frame.raw_id().as_ref() == Some(id);
    is_result(answer) || answer.entries().iter().any(is_result)
}

async fn forward(connection: &Arc<Connection>, parts: &Parts, frame: Frame) -> Result<Answer, Refusal> {
    let _busy = connection.busy();
    let Checked { frame, expected } = check(frame, header(&parts.headers, &SESSION_ID)?)?;
    if expected.iter().any(|expected| expected.effect == Effect::Opens) && !connection.may_open_session() {
        return Err(Refusal::text(429, "too many sessions"));
    }
    // An answer must never wait behind the request that it belongs to.
    if !matches!(frame.kind(), FrameKind::Result | FrameKind::Error) {
        let room = tokio::time::timeout(connection.options.limits.body_deadline, connection.room());
        room.await.map_err(|_| Refusal::text(503, "the agent is busy"))?;
    }
    connection.expect(expected)?;
    connection.forward(frame)?;
    Ok(status(StatusCode::ACCEPTED))
}
