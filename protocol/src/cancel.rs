//! Which notifications ask for a cancellation.

use serde::Deserialize;

use crate::dialect::Dialect;
use crate::message::JsonRpcNotification;
use crate::method::CANCEL_REQUEST;

/// Whether the notification asks to cancel a request, be it plain or in a successor envelope.
///
/// Such a notification names a request of the hop that it came in on, so passing it on as it is
/// would mean nothing, or another request.
#[must_use]
pub fn is_cancel_request_notification<N: JsonRpcNotification>(notification: &N) -> bool {
    #[derive(Deserialize)]
    struct Inner {
        method: String,
    }
    let method = notification.method();
    if method == CANCEL_REQUEST {
        return true;
    }
    if Dialect::of_successor(method).is_none() {
        return false;
    }
    let params = notification.params_text().unwrap_or_default();
    serde_json::from_slice::<Inner>(&params).is_ok_and(|inner| inner.method == CANCEL_REQUEST)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::UntypedMessage;
    use crate::schema::{CancelNotification, SuccessorMessage};

    #[test]
    fn plain_or_wrapped() {
        let untyped = |method, params| UntypedMessage::new(method, params).expect("a message");
        let cancel = untyped(CANCEL_REQUEST, json!({ "requestId": 1 }));
        assert!(is_cancel_request_notification(&cancel));
        assert!(is_cancel_request_notification(&SuccessorMessage { message: cancel, meta: None }));
        assert!(is_cancel_request_notification(&untyped("proxy/successor", json!({ "method": CANCEL_REQUEST }))));
        for other in [
            untyped("$/cancel_requests", json!({ "requestId": 1 })),
            untyped("_proxy/successor", json!({ "method": "session/cancel", "params": { "method": CANCEL_REQUEST } })),
            untyped("_proxy/successor", json!({})),
            untyped("other", json!({ "method": CANCEL_REQUEST })),
        ] {
            assert!(!is_cancel_request_notification(&other), "{other:?}");
        }
        assert!(!is_cancel_request_notification(&CancelNotification::new("s")));
    }
}
