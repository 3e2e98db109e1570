//! The errors that a router answers by itself.

use bytes::Bytes;
use greenroom_protocol::{Error, INCOMING_TRANSPORT_CLOSED_REASON, Origin, Outbound, RawId};

/// An error response.
pub(super) fn answer(id: &RawId, error: &Error) -> Outbound {
    Outbound::error(id, text(error))
}

/// An error as JSON text.
pub(super) fn text(error: &Error) -> Bytes {
    let text: Box<str> = error.to_wire().into();
    Bytes::from(text.into_string())
}

/// An error response to something whose id is unknown.
pub(super) fn answer_unidentified(error: &Error) -> Outbound {
    answer(&RawId::Text("null".into()), error)
}

/// `-32600` with the reason.
pub(super) fn misplaced(reason: &str) -> Error {
    Error::invalid_request().data(reason)
}

/// What a request gets whose receiver is gone. It travels, so of `cause` only the message is told.
pub(super) fn closed(method: &str, cause: &Error) -> Error {
    Error::internal_error().with_origin(Origin::IncomingClosed).data(serde_json::json!({
        "reason": INCOMING_TRANSPORT_CLOSED_REASON,
        "method": method,
        "exit": cause.message,
    }))
}
