//! A client, an agent, a proxy and messages of their own, written against the documented names:
//! nothing in this file says `greenroom`.

use agent_client_protocol as acp;
use agent_client_protocol::schema::{
    InitializeRequest, InitializeResponse, NewSessionRequest, NewSessionResponse, ProtocolVersion,
};
use agent_client_protocol::{
    Agent, Client, Conductor, ConnectTo, ConnectionTo, Dispatch, JsonRpcNotification, JsonRpcRequest, JsonRpcResponse,
    Proxy, Responder,
};
use serde::{Deserialize, Serialize};

/// A request of the application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_app/count", response = Counted<T>)]
pub struct Count<T> {
    /// What is counted.
    pub items: Vec<T>,
}

/// Its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonRpcResponse)]
pub struct Counted<T> {
    /// How many there were.
    pub count: usize,
    /// The first of them.
    pub first: Option<T>,
}

/// A notification of the application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonRpcNotification)]
#[notification(method = "_app/counting")]
pub struct Counting {}

/// An agent that opens one session and counts.
pub fn agent() -> impl ConnectTo<Client> {
    Agent
        .builder()
        .name("agent")
        .on_receive_request(
            async |initialize: InitializeRequest, responder, _cx| {
                responder.respond(InitializeResponse::new(initialize.protocol_version))
            },
            acp::on_receive_request!(),
        )
        .on_receive_request(
            async |_: NewSessionRequest, responder, _cx| responder.respond(NewSessionResponse::new("only")),
            acp::on_receive_request!(),
        )
        .on_receive_request(
            async |count: Count<String>, responder: Responder<Counted<String>>, cx: ConnectionTo<Client>| {
                cx.send_notification(Counting {})?;
                responder.respond(Counted { count: count.items.len(), first: count.items.into_iter().next() })
            },
            acp::on_receive_request!(),
        )
        .on_receive_dispatch(
            async |message: Dispatch, cx: ConnectionTo<Client>| match message {
                Dispatch::Request(_, responder) => responder.respond_with_error(acp::Error::method_not_found()),
                Dispatch::Notification(_) => Ok(()),
                Dispatch::Response(result, router) => {
                    let _ = cx;
                    router.route_with_result(result)
                }
            },
            acp::on_receive_dispatch!(),
        )
}

/// A client: what it got from the agent, and how often it heard that counting began.
///
/// # Errors
/// The agent's, or the connection's.
pub async fn client(transport: impl ConnectTo<Client>) -> acp::Result<(String, Counted<String>, usize)> {
    let mut heard = 0;
    let (session, counted) = Client
        .builder()
        .on_receive_notification(
            async |_: Counting, _cx| {
                heard += 1;
                Ok(())
            },
            acp::on_receive_notification!(),
        )
        .connect_with(transport, async |cx| {
            cx.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
            let session = cx.send_request(NewSessionRequest::new("/")).block_task().await?;
            let items = vec!["a".to_owned(), "b".to_owned()];
            let counted = cx.send_request(Count { items }).block_task().await?;
            Ok((session.session_id.0.to_string(), counted))
        })
        .await?;
    Ok((session, counted, heard))
}

/// A proxy that adds one item to every count and passes everything else on.
pub fn proxy() -> impl ConnectTo<Conductor> {
    Proxy.builder().name("proxy").on_receive_request_from(
        Client,
        async |mut count: Count<String>, responder: Responder<Counted<String>>, cx: ConnectionTo<Conductor>| {
            count.items.push("proxied".to_owned());
            let cancellation = responder.cancellation();
            cx.send_request_to(Agent, count).forward_cancellation_from(cancellation).forward_response_to(responder)
        },
        acp::on_receive_request!(),
    )
}
