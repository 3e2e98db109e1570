//! GET, which opens a stream or a WebSocket, and DELETE, which ends a connection.

use std::sync::Arc;

use http::header::{
    ACCEPT, CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{Method, StatusCode, Version};
use hyper::upgrade::OnUpgrade;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::answer::{Answer, Refusal, events, status};
use super::connection::Shape;
use super::post::{connection_of, header, name};
use super::root::Root;
use super::security;
use super::supervisor::ConnectionMessage;
use crate::http::headers::{EVENT_STREAM, LAST_EVENT_ID, SESSION_ID};

/// Whether a request is a valid upgrade to WebSocket.
pub(super) fn is_upgrade(parts: &Parts) -> bool {
    let headers = &parts.headers;
    parts.method == Method::GET
        && parts.version == Version::HTTP_11
        && has_token(headers, &CONNECTION, "upgrade")
        && has_token(headers, &UPGRADE, "websocket")
        && headers.get(SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13")
        && headers.contains_key(SEC_WEBSOCKET_KEY)
        && parts.extensions.get::<OnUpgrade>().is_some()
}

/// Whether a header that is a list of tokens has this one.
fn has_token(headers: &HeaderMap, name: &http::HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(token))
}

/// Opens a connection whose messages go over the socket of this request.
pub(super) async fn upgrade(root: &Arc<Root>, parts: &mut Parts) -> Result<Answer, Refusal> {
    security::websocket_origin(&root.options.cors, &parts.headers)?;
    let key = parts.headers.get(SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes())).unwrap_or_default();
    let accept = HeaderValue::from_str(&key).map_err(|_| Refusal::status(StatusCode::BAD_REQUEST))?;
    let Some(socket) = parts.extensions.remove::<OnUpgrade>() else {
        return Err(Refusal::status(StatusCode::BAD_REQUEST));
    };
    let (connection, supervisor) = root.open(Shape::WebSocket).await?;
    let _ = supervisor.cast(ConnectionMessage::Upgrade(socket));
    let mut answer = status(StatusCode::SWITCHING_PROTOCOLS);
    let headers = answer.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    Ok(name(answer, &connection))
}

/// Opens the stream of a connection or of one of its sessions.
pub(super) fn stream(root: &Arc<Root>, parts: &Parts) -> Result<Answer, Refusal> {
    let mut accepted = parts.headers.get_all(ACCEPT).iter();
    if !accepted.any(|accept| accept.to_str().is_ok_and(|accept| accept.contains(EVENT_STREAM))) {
        return Err(Refusal::text(406, "client must accept text/event-stream"));
    }
    let connection = connection_of(root, &parts.headers)?;
    let session = header(&parts.headers, &SESSION_ID)?;
    let last = parts.headers.get(LAST_EVENT_ID).and_then(|last| last.to_str().ok());
    if connection.shape == Shape::WebSocket {
        // Its one stream is the socket.
        return Err(match session {
            Some(_) => Refusal::text(404, "unknown Acp-Session-Id"),
            None => Refusal::text(409, "outbound stream already has a subscriber"),
        });
    }
    let mut answer = name(events(connection.listen(session, last)?), &connection);
    if let Some(session) = parts.headers.get(SESSION_ID) {
        answer.headers_mut().insert(SESSION_ID, session.clone());
    }
    Ok(answer)
}

/// Ends a connection at once.
pub(super) fn delete(root: &Arc<Root>, parts: &Parts) -> Result<Answer, Refusal> {
    let connection = connection_of(root, &parts.headers)?;
    root.registry.remove(&connection.id);
    connection.abort();
    Ok(status(StatusCode::ACCEPTED))
}
