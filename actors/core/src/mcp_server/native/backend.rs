//! A component that speaks MCP as a service: one connection for each operation.

use std::sync::Arc;

use futures_util::StreamExt as _;
use greenroom_protocol::mcp::McpOutcome;
use greenroom_protocol::schema::McpError;
use greenroom_protocol::schema_crate::rpc::{Notification, Request, RequestId, Response};
use greenroom_protocol::{
    BoxFuture, Channel, ConnectionDriver, Error, RawJsonRpcError, RawJsonRpcMessage, RawJsonRpcParams, Result,
    TransportFrame,
};
use serde_json::json;
use tokio::time::Duration;

use super::super::connect::McpServerConnect;
use super::service::{McpRequest, McpRequestContext, McpService};
use crate::component::ConnectTo as _;
use crate::role::Role;

/// How long a component may take to end that cannot be asked to.
const GRACE: Duration = Duration::from_secs(5);

/// See the module documentation.
pub(crate) struct Backend<C: Role> {
    connect: Arc<dyn McpServerConnect<C>>,
}

impl<C: Role> Backend<C> {
    pub(crate) fn new(connect: Arc<dyn McpServerConnect<C>>) -> Self {
        Self { connect }
    }
}

impl<C: Role> McpService<C> for Backend<C> {
    fn execute(
        &self,
        request: McpRequest,
        context: McpRequestContext<C>,
    ) -> BoxFuture<'static, Result<McpOutcome, Error>> {
        let connect = self.connect.clone();
        Box::pin(async move {
            let component = connect.connect(context.connection().clone());
            let (channel, driver) = component.into_channel_and_future();
            operate(channel, driver, request, &context).await
        })
    }
}

/// Asks once, carries what the component says meanwhile, and waits until the component has ended.
async fn operate<C: Role>(
    channel: Channel,
    mut driver: Option<ConnectionDriver>,
    request: McpRequest,
    context: &McpRequestContext<C>,
) -> Result<McpOutcome> {
    let Channel { rx: mut says, tx } = channel;
    let id = RequestId::Str(context.request_id().0.to_string());
    let params = request.params.map(RawJsonRpcParams::Object);
    let asked = RawJsonRpcMessage::Request(Request { id: id.clone(), method: request.method.into(), params });
    // A component that is gone says so by ending.
    let _ = tx.unbounded_send(TransportFrame::Single(asked));
    let conversation = async {
        while let Some(frame) = says.next().await {
            if let Some(outcome) = heard(frame, &id, context, &tx).await? {
                return Ok(outcome);
            }
        }
        Err(Error::internal_error().data("the MCP server ended without an answer"))
    };
    let outcome = tokio::select! {
        biased;
        outcome = conversation => outcome,
        () = context.operation_cancellation().cancelled() => {
            let cancelled = json!({ "requestId": id });
            if let Ok(note) = RawJsonRpcMessage::notification("notifications/cancelled".to_owned(), cancelled) {
                let _ = tx.unbounded_send(TransportFrame::Single(note));
            }
            Err(Error::request_cancelled())
        }
        error = broken(&mut driver) => Err(error),
    };
    // The end of its input is what tells the component to clean up.
    drop(tx);
    if let Some(driver) = driver {
        end(driver).await;
    }
    outcome
}

/// What one frame of the component means; `None` when the answer is still to come.
async fn heard<C: Role>(
    frame: TransportFrame,
    id: &RequestId,
    context: &McpRequestContext<C>,
    tx: &futures_channel::mpsc::UnboundedSender<TransportFrame>,
) -> Result<Option<McpOutcome>> {
    let invalid = |reason: &str| Err(Error::internal_error().data(reason));
    match frame {
        TransportFrame::Single(RawJsonRpcMessage::Response(Response::Result { id: answered, result }))
            if answered == *id =>
        {
            Ok(Some(McpOutcome::Result(result)))
        }
        TransportFrame::Single(RawJsonRpcMessage::Response(Response::Error { id: answered, error }))
            if answered == *id =>
        {
            let RawJsonRpcError { code, message, data, extra, .. } = *error;
            let mut inner = McpError::new(code, message);
            (inner.data, inner.extra) = (data, extra);
            Ok(Some(McpOutcome::Error(inner)))
        }
        TransportFrame::Single(RawJsonRpcMessage::Response(_)) => {
            invalid("the MCP server answered a request that nobody made")
        }
        TransportFrame::Single(RawJsonRpcMessage::Notification(Notification { method, params })) => {
            let params = match params {
                None => None,
                Some(RawJsonRpcParams::Object(params)) => Some(params),
                Some(RawJsonRpcParams::Array(_)) => {
                    return invalid("a notification of the MCP server has a list as params");
                }
            };
            // What comes behind a cancellation has nowhere to go.
            let _ = context.send_notification(&*method, params).await;
            Ok(None)
        }
        // Nobody answers requests of a server here: the binding has none.
        TransportFrame::Single(RawJsonRpcMessage::Request(Request { id, method, .. })) => {
            let error = Error::method_not_found().data(method.to_string());
            let _ = tx.unbounded_send(TransportFrame::Single(RawJsonRpcMessage::response(id, Err(error))));
            Ok(None)
        }
        TransportFrame::Batch(_) => invalid("the MCP server sent a batch"),
        TransportFrame::Malformed { .. } => invalid("the MCP server sent what is no message"),
    }
}

/// Drives the component. Resolves when it fails; one that is done is forgotten.
async fn broken(driver: &mut Option<ConnectionDriver>) -> Error {
    if let Some(running) = driver {
        let result = running.await;
        *driver = None;
        if let Err(error) = result {
            return error;
        }
    }
    std::future::pending().await
}

async fn end(mut driver: ConnectionDriver) {
    let ended = if driver.request_finish() {
        driver.await
    } else {
        tokio::time::timeout(GRACE, driver).await.unwrap_or(Ok(()))
    };
    if let Err(error) = ended {
        tracing::warn!(code = i32::from(error.code), "the component of an MCP server failed after its answer");
    }
}
