//! The documented interface, as far as it exists: every name here compiles, or the build breaks.
//!
//! The functions without callers say how things are used: argument and return types are part of
//! the promise. Add a name when it is built; take none away.

#![allow(dead_code, unused_imports)]

use greenroom::component::{ConnectTo, ConnectionDriver, DynConnectTo};
use greenroom::role::{HasPeer, RemoteStyle, Role, RoleId, UntypedRole};
use greenroom::schema::{IntoMaybeUndefined, IntoOption, MaybeUndefined, ProtocolVersion, v1};
use greenroom::util::{
    internal_error, json_cast, json_cast_params, parse_error, run_until, unsupported_protocol_version,
};
use greenroom::{
    Agent, BoxFuture, Builder, ByteStreams, CONNECTION_TERMINATED_REASON, ChainRun, Channel, Client, Conductor,
    ConnectionContext, ConnectionTermination, ConnectionTo, Dispatch, Error, ErrorCode, HandleConnectionClose,
    HandleDispatchFrom, Handled, INCOMING_TRANSPORT_CLOSED_REASON, IntoHandled, JsonRpcMessage, JsonRpcNotification,
    JsonRpcRequest, JsonRpcResponse, LineDirection, Lines, NullClose, NullHandler, NullRun, PreparedRequest, Proxy,
    RawConnectionContext, RawJsonRpcError, RawJsonRpcMessage, RawJsonRpcParams, RawJsonRpcResponse,
    RequestCancellation, RequestCancellationHandle, Responder, ResponseRouter, Result, RunWithConnectionTo,
    SentRequest, TransportBatch, TransportBatchEntry, TransportFrame, UntypedMessage, is_connection_terminated,
    is_incoming_transport_closed, on_receive_dispatch, on_receive_notification, on_receive_request,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

mod also_under {
    //! The same items, under their other documented paths.
    use greenroom::role::acp::{Agent, Client, Conductor, Proxy};
    use greenroom::role::mcp;
    use greenroom::schema::{InitializeProxyRequest, SuccessorMessage, v1::InitializeRequest};
    use greenroom::{ConnectTo, ConnectionDriver, DynConnectTo, HasPeer, Role, RoleId, UntypedRole};
}

#[cfg(feature = "unstable_protocol_v2")]
mod second_version {
    use greenroom::role::acp::{AgentProtocolRouter, ClientProtocolConnector, ProxyProtocolRouter};
    use greenroom::schema::v2::{InitializeProxyRequest, InitializeRequest, PromptRequest};

    use super::{Agent, Client, Conductor, ConnectTo, Proxy, Result};

    fn routers(
        agents: [impl ConnectTo<Client>; 2],
        proxies: [impl ConnectTo<Conductor>; 2],
    ) -> (AgentProtocolRouter, ProxyProtocolRouter) {
        let ([first, second], [left, right]) = (agents, proxies);
        let _ = (AgentProtocolRouter::new(), ProxyProtocolRouter::new(), ClientProtocolConnector::new());
        let agent = Agent.protocol_router().with_v1(first).with_v2(second);
        (agent, Proxy.protocol_router().with_v1(left).with_v2(right))
    }

    async fn connector<C: ConnectTo<Agent>, T: ConnectTo<Client>>(
        v1: impl FnMut() -> C + Send + 'static,
        v2: impl FnMut() -> C + Send + 'static,
        transport: impl FnMut() -> T + Send + 'static,
    ) -> Result<()> {
        Client.protocol_connector().with_v1(v1).with_v2(v2).connect_to(transport).await
    }
}

#[cfg(feature = "process")]
mod process {
    use super::{Client, Conductor, ConnectTo, Error, LineDirection};
    use greenroom::{AcpAgent, AcpAgentConfig};

    fn agents() -> Result<[AcpAgent; 5], Error> {
        let config = AcpAgentConfig::new("agent").arg("--a").args(["--b"]).env("K", "V").envs([("L", "W")]);
        let tapped = AcpAgent::new(config).with_debug(|_line: &str, _direction: LineDirection| {});
        Ok([
            tapped,
            AcpAgent::from_args(["K=V", "agent"])?,
            "agent --a".parse()?,
            AcpAgent::claude_agent(),
            AcpAgent::codex(),
        ])
    }

    fn parts(agent: AcpAgent) -> AcpAgentConfig {
        let _ = (agent.config().command(), agent.config().arguments(), agent.config().environment());
        agent.into_config()
    }

    fn components(agent: AcpAgent) -> (impl ConnectTo<Client>, impl ConnectTo<Conductor>) {
        (AcpAgent::new(agent.config().clone()), agent)
    }
}

#[cfg(feature = "stdio")]
fn stdio() -> impl super_stdio::Both {
    greenroom::Stdio::new().with_debug(|_line: &str, _direction: LineDirection| {})
}

#[cfg(feature = "stdio")]
mod super_stdio {
    use super::{Agent, Client, ConnectTo};
    pub(super) trait Both: ConnectTo<Agent> + ConnectTo<Client> {}
    impl<T: ConnectTo<Agent> + ConnectTo<Client>> Both for T {}
}

#[derive(Clone, Debug, Serialize, Deserialize, greenroom::JsonRpcRequest)]
#[request(method = "_test/ask", response = Answer)]
struct Ask {
    n: u8,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, greenroom::JsonRpcResponse)]
struct Answer {
    n: u8,
}

#[derive(Clone, Debug, Serialize, Deserialize, greenroom::JsonRpcNotification)]
#[notification(method = "_test/tell")]
struct Tell {}

struct EveryMessage;

impl HandleDispatchFrom<Client> for EveryMessage {
    async fn handle_dispatch_from(
        &mut self,
        message: Dispatch,
        _cx: ConnectionTo<Client>,
    ) -> Result<Handled<Dispatch>, Error> {
        Ok(Handled::No { message, retry: false })
    }

    fn describe_chain(&self) -> impl std::fmt::Debug {
        "every message"
    }
}

fn builder(transport: impl ConnectTo<Agent>) -> impl Future<Output = Result<()>> {
    let other = Agent.builder().with_spawned(|_cx: ConnectionTo<Client>| async { Ok(()) });
    Builder::new_with(Agent, NullHandler)
        .name("agent")
        .on_receive_request(
            async |ask: Ask, responder: Responder<Answer>, _cx: ConnectionTo<Client>| {
                responder.respond(Answer { n: ask.n })
            },
            on_receive_request!(),
        )
        .on_receive_request_from(
            Client,
            async |ask: v1::NewSessionRequest, responder, _cx| {
                Ok(Handled::No { message: (ask, responder), retry: false })
            },
            on_receive_request!(),
        )
        .on_receive_notification(async |_: Tell, _cx| Ok(()), on_receive_notification!())
        .on_receive_notification_from(Client, async |_: v1::CancelNotification, _cx| Ok(()), on_receive_notification!())
        .on_receive_dispatch(async |message: Dispatch<Ask, Tell>, _cx| ignore(message), on_receive_dispatch!())
        .on_receive_dispatch_from(Client, async |message: Dispatch, _cx| ignore(message), on_receive_dispatch!())
        .with_handler(EveryMessage)
        .with_runner(ChainRun::new(NullRun, NullRun))
        .with_connection_builder(other)
        .on_close(|_cx| async { Ok(()) })
        .connect_to(transport)
}

fn ignore<M>(message: M) -> Result<Handled<M>> {
    Ok(Handled::No { message, retry: true })
}

async fn connection(cx: ConnectionTo<Agent>, marker: RequestCancellation) -> Result<()> {
    let _: Agent = cx.counterpart();
    let sent: SentRequest<Answer> = cx.send_request(Ask { n: 1 }).forward_cancellation_from(marker.clone());
    let (_, _): (&str, String) = (sent.method(), format!("{:?}", sent.id()));
    let handle: RequestCancellationHandle = sent.cancellation_handle();
    handle.cancel()?;
    sent.cancel()?;
    cx.send_cancel_request(1)?;
    cx.send_cancel_request_to(Agent, 1)?;
    let _: u8 = sent.map(|answer| Ok(answer.n)).block_task().await?;
    cx.send_request_to(Agent, Ask { n: 2 }).detach();
    cx.send_request(Ask { n: 3 }).on_receiving_result(|result: Result<Answer>| async { result.map(|_| ()) })?;
    let prepared: PreparedRequest<Answer> = cx.prepare_request(Ask { n: 4 }).forward_cancellation_from(marker.clone());
    let _ = (prepared.id(), prepared.method(), prepared.cancellation_handle());
    prepared.map(|answer| Ok(answer.n)).detach()?;
    cx.prepare_request_to(Agent, Ask { n: 5 }).on_receiving_result(|_| async { Ok(()) })?;
    cx.prepare_request(Ask { n: 6 }).block_task().await?;
    cx.send_notification(Tell {})?;
    cx.send_notification_to(Agent, Tell {})?;
    cx.spawn(async { Ok(()) })?;
    cx.incoming_closed().await;
    let _: bool = cx.is_incoming_closed();
    let _: Option<ConnectionTermination> = cx.termination();
    let (_, _): (bool, Option<Error>) = (cx.terminated().await.is_clean(), cx.terminated().await.error().cloned());
    marker.cancelled().await;
    let _: bool = marker.is_cancelled();
    marker.run_until_cancelled(async { Ok(()) }).await
}

fn answers(cx: &ConnectionTo<Agent>, responders: [Responder<Answer>; 10]) -> Result<()> {
    let [a, b, c, d, e, f, g, h, i, j] = responders;
    let _: RequestCancellation = a.cancellation();
    let (_, _): (&str, String) = (a.method(), format!("{:?}", a.id()));
    a.respond(Answer { n: 1 })?;
    b.respond_with_error(Error::method_not_found())?;
    c.respond_with_internal_error("text")?;
    d.respond_with_result(Err(Error::internal_error()))?;
    e.erase_to_json().cast::<Answer>().respond(Answer { n: 2 })?;
    f.wrap_method("other".to_owned()).wrap_params(|_method, answer: Result<Answer>| answer).respond(Answer { n: 3 })?;
    cx.send_request(Ask { n: 1 }).forward_response_to(g)?;
    cx.send_request(Ask { n: 1 }).on_receiving_ok_result(h, |answer, responder| async { responder.respond(answer) })?;
    cx.prepare_request(Ask { n: 1 }).forward_response_to(i)?;
    cx.prepare_request(Ask { n: 1 }).on_receiving_ok_result(j, |answer, responder| async { responder.respond(answer) })
}

fn routers(routers: [ResponseRouter<Answer>; 5]) -> Result<()> {
    let [a, b, c, d, e] = routers;
    let (_, _, _): (&str, RoleId, String) = (a.method(), a.role_id(), format!("{:?}", a.id()));
    a.route(Answer { n: 1 })?;
    b.route_with_error(Error::invalid_params())?;
    c.route_with_internal_error("text")?;
    d.route_with_result(Ok(Answer { n: 1 }))?;
    e.erase_to_json().cast::<Answer>().route(Answer { n: 1 })
}

fn dispatch(message: Dispatch) -> Result<()> {
    let (_, _, _) = (message.id(), message.method(), message.has_field("sessionId"));
    let (_, _): (UntypedMessage, Option<&UntypedMessage>) = (message.to_untyped_message()?, message.message());
    let message = match message.into_untyped_dispatch()?.into_notification::<Tell>()? {
        Ok(Tell {}) => return Ok(()),
        Err(message) => message,
    };
    match message.into_request::<Ask>()? {
        Ok((ask, responder)) => responder.respond(Answer { n: ask.n }),
        Err(Dispatch::Request(_, responder)) => responder.respond_with_error(Error::method_not_found()),
        Err(Dispatch::Notification(_)) => Ok(()),
        Err(Dispatch::Response(result, router)) => router.route_with_result(result),
    }
}

async fn components(agent: impl ConnectTo<Client>, client: impl ConnectTo<Agent>) -> Result<()> {
    let named = DynConnectTo::<Client>::new(agent);
    let _: &'static str = named.type_name();
    let (channel, driver): (Channel, Option<ConnectionDriver>) = named.into_channel_and_future();
    if let Some(driver) = driver {
        let mut driver = driver.map_future(|future| future);
        let _: bool = driver.request_finish();
        driver.await?;
    }
    ConnectionDriver::with_finish(async { Ok(()) }, || {}).await?;
    ConnectTo::<Client>::connect_to(channel, client).await?;
    Client.connect_with(Channel::duplex().0, async |_cx| Ok(())).await
}

/// A program that uses the derive macros beside the traits of the same name.
#[tokio::test]
async fn derived_messages_travel_between_documented_components() {
    let agent = Agent.builder().on_receive_request(
        async |ask: Ask, responder: Responder<Answer>, _cx| responder.respond(Answer { n: ask.n + 1 }),
        on_receive_request!(),
    );
    let answer = Client.connect_with(agent, async |cx| cx.send_request(Ask { n: 1 }).block_task().await).await;
    assert_eq!(answer.expect("an answer"), Answer { n: 2 });
}

#[test]
fn frames_have_the_documented_shape() {
    let TransportFrame::Single(RawJsonRpcMessage::Request(request)) =
        TransportFrame::parse_json(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#)
    else {
        panic!("a request")
    };
    assert_eq!(request.params, Some(RawJsonRpcParams::Array(vec![json!(1)])));
    let TransportFrame::Batch(batch) = TransportFrame::parse_json(r#"[{"jsonrpc":"2.0","method":"m"},7]"#) else {
        panic!("a batch")
    };
    let entries: Vec<TransportBatchEntry> = batch.into_entries().collect();
    assert!(matches!(
        entries[..],
        [TransportBatchEntry::Message(RawJsonRpcMessage::Notification(_)), TransportBatchEntry::Malformed { .. }]
    ));
    let TransportFrame::Malformed { raw, error } = TransportFrame::parse_json("{") else { panic!("no JSON") };
    assert_eq!((raw.as_str(), error.code), ("{", ErrorCode::ParseError));
    let error = RawJsonRpcError::new(7, "seven").data(Value::Null);
    assert!(error.data.is_null() && error.extra.is_empty());
}
