//! Serving a server by itself: a connection of its own, which speaks MCP.
//!
//! What client and server say to each other passes unchanged, ids included, because MCP names ids
//! in its messages. Between the two stands the connection that tools of the server hold: what it
//! sends joins the messages to the client, with ids that the server cannot have.

use futures_channel::mpsc::{UnboundedReceiver, UnboundedSender};
use futures_util::StreamExt as _;
use greenroom_protocol::schema_crate::rpc::{Request, RequestId, Response};
use greenroom_protocol::{Channel, ConnectionDriver, Error, RawJsonRpcMessage, Result, TransportFrame};
use tokio::time::Duration;

use super::context::{McpConnectionContext, McpConnectionTo};
use super::server::McpServer;
use crate::component::ConnectTo;
use crate::connection_to::ConnectionTo;
use crate::role::mcp;
use crate::run::RunWithConnectionTo;

/// Begins the ids of requests that do not come from the server itself.
const HOST_ID: &str = "greenroom-host-";

/// How long a driver may take that cannot be asked to end.
const GRACE: Duration = Duration::from_millis(250);

impl<Run> ConnectTo<mcp::Client> for McpServer<mcp::Client, Run>
where
    Run: RunWithConnectionTo<mcp::Client> + 'static,
{
    /// Serves one MCP client, with the lifecycle of MCP, until it is done.
    ///
    /// # Errors
    /// As [`ConnectTo::connect_to`]; and when the server can only be reached over ACP, because it was
    /// made with `new_service`: make it with `new_service_with_standalone`.
    async fn connect_to(self, client: impl ConnectTo<mcp::Server>) -> Result<()> {
        let Some(connect) = self.connect else {
            return Err(Error::internal_error()
                .data("this MCP server was made for ACP only: make it with new_service_with_standalone to serve it"));
        };
        let (ours, host) = Channel::duplex();
        let builder = mcp::Server.builder().name(self.name).with_runner(self.run);
        builder
            .connect_with(host, async move |connection: ConnectionTo<mcp::Client>| {
                let server = connect.connect(McpConnectionTo::new(McpConnectionContext::Standalone, connection));
                join(client.into_channel_and_future(), server.into_channel_and_future(), ours).await
            })
            .await
    }
}

/// Carries messages until the server is done, which it is when its client is.
async fn join(
    (client, client_driver): (Channel, Option<ConnectionDriver>),
    (server, server_driver): (Channel, Option<ConnectionDriver>),
    host: Channel,
) -> Result<()> {
    let Channel { rx: client_says, tx: to_client } = client;
    let Channel { rx: mut server_says, tx: to_server } = server;
    let mut host_says = host.rx;
    let mut drivers = Drivers { client: client_driver, server: server_driver };
    let serving = async {
        let to_host = host.tx;
        let input = from_client(client_says, to_server, &to_host);
        let hosted = async {
            while let Some(frame) = host_says.next().await {
                let _ = to_client.unbounded_send(under_host_id(frame));
            }
            std::future::pending::<()>().await;
        };
        let output = async {
            while let Some(frame) = server_says.next().await {
                let _ = to_client.unbounded_send(frame);
            }
        };
        // The input may end before the output; the output is what is waited for.
        tokio::select! {
            () = async { tokio::join!(input, hosted); } => {}
            () = output => {}
        }
    };
    let broken = tokio::select! {
        biased;
        // What the server said before it ended is still carried.
        () = serving => None,
        error = drivers.broken() => Some(error),
    };
    to_client.close_channel();
    let ended = drivers.end().await;
    broken.map_or(ended, Err)
}

async fn from_client(
    mut says: UnboundedReceiver<TransportFrame>,
    server: UnboundedSender<TransportFrame>,
    host: &UnboundedSender<TransportFrame>,
) {
    while let Some(frame) = says.next().await {
        match for_host(frame) {
            Ok(frame) => drop(host.unbounded_send(frame)),
            Err(frame) => drop(server.unbounded_send(frame)),
        }
    }
}

/// A request of the host gets an id that the server cannot have.
fn under_host_id(frame: TransportFrame) -> TransportFrame {
    match frame {
        TransportFrame::Single(RawJsonRpcMessage::Request(Request { id: RequestId::Number(id), method, params })) => {
            let id = RequestId::Str(format!("{HOST_ID}{id}"));
            TransportFrame::Single(RawJsonRpcMessage::Request(Request { id, method, params }))
        }
        other => other,
    }
}

/// The answer to a request of the host, with the id that it knows; anything else comes back.
#[allow(clippy::result_large_err, reason = "not an error: the other way")]
fn for_host(frame: TransportFrame) -> Result<TransportFrame, TransportFrame> {
    let number = |id: &RequestId| match id {
        RequestId::Str(id) => id.strip_prefix(HOST_ID)?.parse().ok().map(RequestId::Number),
        RequestId::Number(_) | RequestId::Null => None,
    };
    match frame {
        TransportFrame::Single(RawJsonRpcMessage::Response(response)) => {
            let (Response::Result { id, .. } | Response::Error { id, .. }) = &response;
            let Some(known) = number(id) else {
                return Err(TransportFrame::Single(RawJsonRpcMessage::Response(response)));
            };
            Ok(TransportFrame::Single(RawJsonRpcMessage::Response(match response {
                Response::Result { result, .. } => Response::Result { id: known, result },
                Response::Error { error, .. } => Response::Error { id: known, error },
            })))
        }
        other => Err(other),
    }
}

/// The futures behind both ends.
struct Drivers {
    client: Option<ConnectionDriver>,
    server: Option<ConnectionDriver>,
}

impl Drivers {
    /// Drives both. Resolves with the error of the first one that fails.
    async fn broken(&mut self) -> Error {
        let (client, server) = (&mut self.client, &mut self.server);
        tokio::select! {
            error = failure(client) => error,
            error = failure(server) => error,
        }
    }

    /// Lets both end.
    async fn end(self) -> Result<()> {
        let (client, server) = tokio::join!(ended(self.client), ended(self.server));
        server.and(client)
    }
}

/// Waits for a driver that fails; one that is done is forgotten.
async fn failure(driver: &mut Option<ConnectionDriver>) -> Error {
    if let Some(running) = driver {
        let result = running.await;
        *driver = None;
        if let Err(error) = result {
            return error;
        }
    }
    std::future::pending().await
}

async fn ended(driver: Option<ConnectionDriver>) -> Result<()> {
    let Some(mut driver) = driver else { return Ok(()) };
    if driver.request_finish() {
        return driver.await;
    }
    // It cannot be asked, and has nothing left to write or to answer.
    tokio::time::timeout(GRACE, driver).await.unwrap_or(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(frame: TransportFrame) -> serde_json::Value {
        serde_json::from_str(&frame.to_json().expect("JSON")).expect("JSON")
    }

    #[test]
    fn ids_of_the_host_are_its_own_and_come_back() {
        let asked = TransportFrame::parse_json(r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage"}"#);
        assert_eq!(text(under_host_id(asked))["id"], "greenroom-host-7");
        for (answer, expected) in [
            (r#"{"jsonrpc":"2.0","id":"greenroom-host-7","result":{}}"#, true),
            (r#"{"jsonrpc":"2.0","id":"greenroom-host-7","error":{"code":1,"message":"m"}}"#, true),
            (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, false),
            (r#"{"jsonrpc":"2.0","id":"greenroom-host-x","result":{}}"#, false),
            (r#"{"jsonrpc":"2.0","id":"greenroom-host-7","method":"tools/list"}"#, false),
            (r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#, false),
        ] {
            let sorted = for_host(TransportFrame::parse_json(answer));
            assert_eq!(sorted.is_ok(), expected, "{answer}");
            if let Ok(frame) = sorted {
                assert_eq!(text(frame)["id"], 7);
            }
        }
    }
}
