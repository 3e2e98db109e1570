//! What a proxy does with messages that none of its handlers took: it passes them on.

use std::sync::Arc;

use bytes::Bytes;
use greenroom_protocol::{Dialect, Error, RemoteStyle, Result, method};

use crate::connection::{InboundCall, MethodText, OpenCall, Shared, Waiter};
use crate::connection_to::ConnectionTo;
use crate::dispatch::{Dispatch, Handled};
use crate::handlers::Delivery;
use crate::request::CancelTarget;
use crate::role::Role;
use crate::role::acp::Conductor;

/// Passes a message on to the other logical peer, text unchanged. Responses are not taken.
pub(crate) fn forward(delivery: Delivery, connection: &Arc<Shared>) -> Result<Handled<Delivery>> {
    match delivery {
        Delivery::Request(call, open) => {
            forward_request(call, open, connection);
            Ok(Handled::Yes)
        }
        Delivery::Notification(mut call) => {
            forward_notification(&mut call, connection)?;
            Ok(Handled::Yes)
        }
        response @ Delivery::Response(_) => Ok(Handled::No { message: response, retry: false }),
    }
}

/// The documented form of [`forward`].
pub(crate) fn default_handle(message: Dispatch, connection: &ConnectionTo<Conductor>) -> Result<Handled<Dispatch>> {
    let delivery = Delivery::from_dispatch(message)?;
    Ok(match forward(delivery, connection.shared())? {
        Handled::Yes => Handled::Yes,
        Handled::No { message, retry } => Handled::No { message: message.into_dispatch(Conductor.role_id())?.0, retry },
    })
}

/// Where a message from this side goes, and under which method; an error for what must not pass.
fn route(call: &InboundCall) -> Result<(RemoteStyle, MethodText)> {
    let name = call.method();
    let initializes = name == method::INITIALIZE || Dialect::of_initialize(name).is_some();
    match call.peer {
        RemoteStyle::Successor if initializes => {
            Err(Error::invalid_request().data("an initialize must not come from the successor"))
        }
        RemoteStyle::Successor => Ok((RemoteStyle::Predecessor, MethodText::Json(call.method_json()))),
        _ if name == method::INITIALIZE => {
            Err(Error::invalid_request().data("a proxy is initialized by its conductor, not by a plain initialize"))
        }
        // The conductor renames the client's initialize for proxies; here it gets its name back.
        _ if initializes => Ok((RemoteStyle::Successor, MethodText::Name(method::INITIALIZE.into()))),
        _ => Ok((RemoteStyle::Successor, MethodText::Json(call.method_json()))),
    }
}

pub(crate) fn forward_request(mut call: InboundCall, open: OpenCall, connection: &Arc<Shared>) {
    let (to, method) = match route(&call) {
        Ok(route) => route,
        Err(error) => return drop(open.answer(Err(error))),
    };
    let id = connection.allocate_id();
    // Linked before publication: the check for "still pending" in the target keeps this harmless.
    let state = open.state().clone();
    let params: Bytes = call.params_bytes();
    let permit = call.permit.take();
    if let Err((waiter, error)) = connection.publish_request(id, method, params, to, Waiter::Forward(open), permit) {
        if let Waiter::Forward(open) = waiter {
            let _ = open.answer(Err(error));
        }
        return;
    }
    state.cancelled.link(CancelTarget::Forwarded { connection: Arc::downgrade(connection), id, to });
}

pub(crate) fn forward_notification(call: &mut InboundCall, connection: &Arc<Shared>) -> Result<()> {
    // Ids mean nothing on the next hop; the request that is meant was cancelled on arrival.
    if call.method() == method::CANCEL_REQUEST {
        return Ok(());
    }
    let Ok((to, method)) = route(call) else {
        tracing::debug!("a misplaced initialize notification was dropped");
        return Ok(());
    };
    let params = call.params_bytes();
    let permit = call.permit.take();
    connection.publish_notification(method, params, to, permit)
}
