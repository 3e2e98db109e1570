//! One message as a type: reading it, and turning it back when the handler passes it on.

use greenroom_protocol::{Dialect, Error, JsonRpcNotification, JsonRpcRequest, RemoteStyle, Result, UntypedMessage};
use serde_json::{Value, json};

use crate::dispatch::{Dispatch, Handled};

/// What an attempt to read a message as a type gives.
#[expect(clippy::large_enum_variant, reason = "lives for one step, on the stack")]
pub(super) enum Read<T> {
    /// It is of that type.
    Typed(T),
    /// It is of another type: try the next.
    Other(Dispatch),
    /// It would have been, but its params do not fit. It is settled.
    Malformed,
}

/// Reads a message as a request, a response to such a request, or a notification.
pub(super) fn read<Req: JsonRpcRequest, Notif: JsonRpcNotification>(
    message: Dispatch,
) -> Result<Read<Dispatch<Req, Notif>>> {
    Ok(match message {
        Dispatch::Request(message, responder) if Req::matches_method(&message.method) => {
            match Req::parse_message(&message.method, &message.params) {
                Ok(request) => Read::Typed(Dispatch::Request(request, responder.cast())),
                Err(error) => {
                    responder.respond_with_error(error)?;
                    Read::Malformed
                }
            }
        }
        Dispatch::Notification(message) if Notif::matches_method(&message.method) => {
            match Notif::parse_message(&message.method, &message.params) {
                Ok(notification) => Read::Typed(Dispatch::Notification(notification)),
                Err(_) if is_foreign::<Notif>(&message) => Read::Other(Dispatch::Notification(message)),
                Err(error) => {
                    log_malformed(&message.method, &error);
                    Read::Malformed
                }
            }
        }
        Dispatch::Response(result, router) if Req::matches_method(router.method()) => {
            let method = router.method().to_owned();
            let typed = result
                .and_then(|value| <Req::Response as greenroom_protocol::JsonRpcResponse>::from_value(&method, value));
            Read::Typed(Dispatch::Response(typed, router.cast()))
        }
        other => Read::Other(other),
    })
}

/// Whether a notification that does not fit its type is for others.
pub(super) fn is_foreign<N: JsonRpcNotification>(message: &UntypedMessage) -> bool {
    N::is_foreign(&message.method, &message.params.to_string())
}

/// A notification is never answered; the reason may quote payload and stays out.
pub(super) fn log_malformed(method: &str, error: &Error) {
    tracing::warn!(method, code = i32::from(error.code), "a malformed notification was ignored");
}

/// The untyped form of what a handler passed on.
pub(super) fn passed_on<Req: JsonRpcRequest, Notif: JsonRpcNotification>(
    handled: Handled<Dispatch<Req, Notif>>,
) -> Result<Handled<Dispatch>> {
    Ok(match handled {
        Handled::Yes => Handled::Yes,
        Handled::No { message, retry } => Handled::No { message: message.into_untyped_dispatch()?, retry },
    })
}

/// How a message showed itself, so that it can be shown in the same way again.
pub(super) enum Wrapping {
    Plain,
    /// Inside an envelope, with what the envelope holds beside the message.
    Envelope {
        method: String,
        rest: Value,
    },
}

/// Takes a message out of its envelope. `Err` gives it back: it does not come from that peer.
#[expect(clippy::result_large_err, reason = "both variants are the message")]
pub(super) fn unwrap_from(message: Dispatch, peer: RemoteStyle) -> std::result::Result<(Dispatch, Wrapping), Dispatch> {
    let enveloped = match &message {
        Dispatch::Request(inner, _) | Dispatch::Notification(inner) => Dialect::of_successor(&inner.method).is_some(),
        Dispatch::Response(_, router) => {
            let from = router.peer();
            let fits = peer == from || peer == RemoteStyle::Counterpart;
            return if fits { Ok((message, Wrapping::Plain)) } else { Err(message) };
        }
    };
    match peer {
        RemoteStyle::Counterpart => Ok((message, Wrapping::Plain)),
        RemoteStyle::Successor if enveloped => open(message),
        RemoteStyle::Predecessor if !enveloped => Ok((message, Wrapping::Plain)),
        _ => Err(message),
    }
}

#[expect(clippy::result_large_err, reason = "both variants are the message")]
fn open(message: Dispatch) -> std::result::Result<(Dispatch, Wrapping), Dispatch> {
    let taken = |envelope: &mut UntypedMessage| {
        let inner = envelope.params.as_object_mut()?;
        if !inner.get("method")?.is_string() {
            return None;
        }
        let Some(Value::String(method)) = inner.remove("method") else { return None };
        let params = inner.remove("params").unwrap_or(Value::Null);
        let rest = envelope.params.take();
        let wrapping = Wrapping::Envelope { method: std::mem::take(&mut envelope.method), rest };
        *envelope = UntypedMessage { method, params };
        Some(wrapping)
    };
    match message {
        Dispatch::Request(mut envelope, responder) => match taken(&mut envelope) {
            Some(wrapping) => Ok((Dispatch::Request(envelope, responder), wrapping)),
            None => Err(Dispatch::Request(envelope, responder)),
        },
        Dispatch::Notification(mut envelope) => match taken(&mut envelope) {
            Some(wrapping) => Ok((Dispatch::Notification(envelope), wrapping)),
            None => Err(Dispatch::Notification(envelope)),
        },
        response @ Dispatch::Response(..) => Err(response),
    }
}

/// Puts a message back where it came from.
pub(super) fn wrap_again(message: Dispatch, wrapping: Wrapping) -> Dispatch {
    let Wrapping::Envelope { method, rest } = wrapping else { return message };
    let envelope = |inner: UntypedMessage| {
        let mut params = if rest.is_object() { rest } else { json!({}) };
        if let Some(members) = params.as_object_mut() {
            members.insert("method".into(), inner.method.into());
            if !inner.params.is_null() {
                members.insert("params".into(), inner.params);
            }
        }
        UntypedMessage { method, params }
    };
    match message {
        Dispatch::Request(inner, responder) => Dispatch::Request(envelope(inner), responder),
        Dispatch::Notification(inner) => Dispatch::Notification(envelope(inner)),
        response @ Dispatch::Response(..) => response,
    }
}
