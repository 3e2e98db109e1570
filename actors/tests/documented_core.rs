//! The rest of the documented interface, beside `public_api`: matchers, dynamic handlers, nested
//! connections, raw values, implementations by hand. Under the documented crate name.
//!
//! It compiles, or the build breaks. Add a name when it is built; take none away.

#![allow(dead_code, unused_imports)]

extern crate greenroom as agent_client_protocol;

use std::any::TypeId;
use std::fmt::{Debug, Display};
use std::hash::Hash;

use agent_client_protocol::component::{ConnectTo, ConnectionDriver, DynConnectTo};
use agent_client_protocol::concepts::{
    acp_basics, callbacks, cancellation, connections, error_handling, ordering, peers, proxies, sessions,
};
use agent_client_protocol::role::{HasPeer, RemoteStyle, Role, RoleId, UntypedRole, acp, mcp};
use agent_client_protocol::schema::{self, IntoMaybeUndefined, IntoOption, MaybeUndefined, ProtocolVersion, v1};
use agent_client_protocol::util::{MatchDispatch, MatchDispatchFrom, TypeNotification};
use agent_client_protocol::{
    Agent, BoxFuture, Builder, ByteStreams, ChainRun, Channel, Client, Conductor, ConnectionContext, ConnectionTo,
    Dispatch, DynamicHandlerGuard, Error, HandleConnectionClose, HandleDispatchFrom, Handled, IntoHandled,
    JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, LineDirection, Lines, MetaCapability,
    MetaCapabilityExt, NullClose, NullHandler, NullRun, Proxy, RawConnectionContext, RawJsonRpcError,
    RawJsonRpcMessage, RawJsonRpcParams, RawJsonRpcResponse, Responder, ResponseRouter, Result, RunWithConnectionTo,
    TransportBatch, TransportBatchEntry, TransportFrame, UntypedMessage, is_cancel_request_notification,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

// --- messages by hand -----------------------------------------------------------------------

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ask(u8);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Answer(u8);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Tell {}

impl JsonRpcMessage for Ask {
    fn matches_method(method: &str) -> bool {
        method == "_test/ask"
    }

    fn method(&self) -> &str {
        "_test/ask"
    }

    fn to_untyped_message(&self) -> Result<UntypedMessage, Error> {
        UntypedMessage::new(self.method(), [self.0])
    }

    fn parse_message(method: &str, params: &impl Serialize) -> Result<Self, Error> {
        if !Self::matches_method(method) {
            return Err(Error::method_not_found());
        }
        agent_client_protocol::util::json_cast_params::<_, [u8; 1]>(params).map(|[n]| Self(n))
    }
}

impl JsonRpcRequest for Ask {
    type Response = Answer;
}

impl JsonRpcResponse for Answer {
    fn into_json(self, _method: &str) -> Result<Value, Error> {
        Ok(json!(self.0))
    }

    fn from_value(_method: &str, value: Value) -> Result<Self, Error> {
        agent_client_protocol::util::json_cast(value).map(Self)
    }
}

impl JsonRpcMessage for Tell {
    fn matches_method(method: &str) -> bool {
        method == "_test/tell"
    }

    fn method(&self) -> &str {
        "_test/tell"
    }

    fn to_untyped_message(&self) -> Result<UntypedMessage, Error> {
        UntypedMessage::new(self.method(), self)
    }

    fn parse_message(_method: &str, params: &impl Serialize) -> Result<Self, Error> {
        agent_client_protocol::util::json_cast_params(params)
    }
}

impl JsonRpcNotification for Tell {}

// --- handlers, runners and close callbacks by hand ------------------------------------------

struct Everything;

impl<Counterpart: Role> HandleDispatchFrom<Counterpart> for Everything {
    async fn handle_dispatch_from(
        &mut self,
        message: Dispatch,
        connection: ConnectionTo<Counterpart>,
    ) -> Result<Handled<Dispatch>, Error> {
        NullHandler.handle_dispatch_from(message, connection).await
    }

    fn describe_chain(&self) -> impl Debug {
        "everything"
    }
}

struct Runs;

impl<Counterpart: Role> RunWithConnectionTo<Counterpart> for Runs {
    async fn run_with_connection_to(self, _connection: ConnectionTo<Counterpart>) -> Result<(), Error> {
        Ok(())
    }
}

struct Closes;

impl<Counterpart: Role> HandleConnectionClose<Counterpart> for Closes {
    async fn handle_connection_close(self, connection: ConnectionTo<Counterpart>) -> Result<(), Error> {
        NullClose.handle_connection_close(connection).await
    }
}

/// A borrowed handler is a handler.
fn borrowed(handler: &mut Everything) -> Builder<Client, impl HandleDispatchFrom<Agent>> {
    Builder::new_with(Client, handler)
}

fn runs() -> impl RunWithConnectionTo<Agent> {
    ChainRun::new(ChainRun::new(NullRun, Runs), NullRun)
}

fn builders() -> Builder<Client, NullHandler, NullRun> {
    let _: Builder<Client, NullHandler, NullRun, NullClose, RawConnectionContext> = Client.builder();
    let _: Builder<Agent, NullHandler, NullRun> = Agent.builder();
    let _: Builder<Proxy, NullHandler, NullRun> = Proxy.builder();
    let _: Builder<Conductor, NullHandler, NullRun> = Conductor.builder();
    let _: Builder<mcp::Client, NullHandler, NullRun> = mcp::Client.builder();
    let _: Builder<mcp::Server, NullHandler, NullRun> = mcp::Server.builder();
    let _: Builder<UntypedRole> = UntypedRole.builder();
    let _: Builder<acp::Client> = Role::builder(Client);
    Builder::new(Client)
}

// --- matchers -------------------------------------------------------------------------------

async fn matched(message: Dispatch) -> Result<Handled<Dispatch>, Error> {
    MatchDispatch::new(message)
        .if_request(async |ask: Ask, responder: Responder<Answer>| responder.respond(Answer(ask.0)))
        .await
        .if_notification(async |_: Tell| Ok(()))
        .await
        .if_dispatch(async |message: Dispatch<Ask, Tell>| Ok(Handled::No { message, retry: false }))
        .await
        .if_response_to::<Ask, _>(async |result: Result<Answer, Error>, router: ResponseRouter<Answer>| {
            router.route_with_result(result)
        })
        .await
        .if_ok_response_to::<Ask, _>(async |answer: Answer, router: ResponseRouter<Answer>| router.route(answer))
        .await
        .done()
}

async fn matched_otherwise(first: Dispatch, second: Dispatch) -> Result<(), Error> {
    MatchDispatch::new(first).otherwise(async |_: Dispatch| Ok(())).await?;
    MatchDispatch::new(second).otherwise_ignore()
}

async fn matched_from(message: Dispatch, cx: &ConnectionTo<Conductor>) -> Result<Handled<Dispatch>, Error> {
    MatchDispatchFrom::new(message, cx)
        .if_request_from(Client, async |ask: Ask, responder: Responder<Answer>| responder.respond(Answer(ask.0)))
        .await
        .if_notification_from(Agent, async |_: Tell| Ok(()))
        .await
        .if_dispatch_from(Client, async |message: Dispatch<Ask, Tell>| Ok(Handled::No { message, retry: true }))
        .await
        .if_response_to_from::<Ask, _, _>(Agent, async |result, router| router.route_with_result(result))
        .await
        .if_ok_response_to_from::<Ask, _, _>(Agent, async |answer, router| router.route(answer))
        .await
        .otherwise_delegate(Everything)
        .await
}

async fn matched_from_counterpart(messages: [Dispatch; 2], cx: &ConnectionTo<Agent>) -> Result<(), Error> {
    let [first, second] = messages;
    let _: Handled<Dispatch> = MatchDispatchFrom::new(first, cx)
        .if_request(async |ask: Ask, responder: Responder<Answer>| responder.respond(Answer(ask.0)))
        .await
        .if_notification(async |_: Tell| Ok(()))
        .await
        .if_response_to::<Ask, _>(async |result, router| router.route_with_result(result))
        .await
        .if_ok_response_to::<Ask, _>(async |answer, router| router.route(answer))
        .await
        .done()?;
    MatchDispatchFrom::new(second, cx).otherwise(async |_: Dispatch| Ok(())).await
}

async fn notification(message: UntypedMessage) -> Result<(), Error> {
    TypeNotification::new(message)
        .handle_if(async |_: Tell| Ok(()))
        .await
        .otherwise(async |_: UntypedMessage| Ok(()))
        .await
}

// --- connections ----------------------------------------------------------------------------

async fn connection(
    cx: ConnectionTo<Conductor>,
    typed: Dispatch<Ask, Tell>,
    untyped: Dispatch,
    agent: impl ConnectTo<Client>,
    other: impl ConnectTo<Client>,
) -> Result<(), Error> {
    let guard: DynamicHandlerGuard<Conductor> = cx.add_dynamic_handler(Everything)?;
    guard.detach();
    drop(cx.add_dynamic_handler(NullHandler)?);
    let typed: Dispatch<Ask, Tell> = typed.map(|ask, responder| (ask, responder), |tell| tell);
    cx.send_proxied_message_to(Agent, typed)?;
    cx.send_proxied_message_to(Client, untyped)?;
    let nested: ConnectionTo<Agent> = cx.spawn_connection(Client.builder().with_handler(Everything), agent)?;
    let nested: ConnectionTo<Agent> =
        nested.spawn_connection_with_context(Client.builder().on_close(async |_cx| Ok(())), other)?;
    nested.send_proxied_message(Dispatch::<Ask, Tell>::Notification(Tell {}))
}

fn dispatch(message: Dispatch<Ask, Tell>, same: &Dispatch<UntypedMessage, UntypedMessage>) -> Result<(), Error> {
    let _: Option<&UntypedMessage> = same.message();
    let id: Option<&schema::RequestId> = message.id();
    let (_, _): (Option<schema::RequestId>, &str) = (id.cloned(), message.method());
    let untyped: Dispatch = message.into_untyped_dispatch()?;
    drop(untyped);
    let handled: Handled<u8> = IntoHandled::<u8>::into_handled(());
    let _: Handled<u8> = handled.into_handled();
    Ok(())
}

async fn defaults(
    message: [Dispatch; 2],
    cx: ConnectionTo<Agent>,
    untyped: ConnectionTo<UntypedRole>,
) -> Result<(), Error> {
    let [first, second] = message;
    let _: Handled<Dispatch> = Agent.default_handle_dispatch_from(first, cx).await?;
    let _: Handled<Dispatch> = UntypedRole.default_handle_dispatch_from(second, untyped).await?;
    Ok(())
}

fn contexts<Context: ConnectionContext>(cx: Context::Connection<Agent>) -> Context::Connection<Agent> {
    cx.clone()
}

#[cfg(feature = "process")]
fn raw_process(agent: &agent_client_protocol::AcpAgent) -> Result<(), Error> {
    let (stdin, stdout, _stderr, mut child) = agent.spawn_process()?;
    let _ = ByteStreams::new(stdin, stdout);
    child.kill().map_err(Error::into_internal_error)
}

#[cfg(feature = "stdio")]
fn stdio() -> agent_client_protocol::Stdio {
    agent_client_protocol::Stdio::default()
}

// --- what can be checked by running it -------------------------------------------------------

#[test]
fn roles_know_each_other() {
    fn pair<A: Role<Counterpart = B> + HasPeer<A>, B: Role<Counterpart = A> + HasPeer<B>>(a: A, b: B) {
        assert_eq!(a.counterpart(), b);
        assert_eq!(b.counterpart(), a);
        assert_eq!(a.role_id(), RoleId::from_singleton(&a));
        assert!(matches!(a.role_id(), RoleId::Singleton(_, id) if id == TypeId::of::<A>()));
        assert_eq!(a.remote_style(a.clone()), RemoteStyle::Counterpart);
        assert_eq!(b.remote_style(b.clone()), RemoteStyle::Counterpart);
    }
    pair(Client, Agent);
    pair(mcp::Client, mcp::Server);
    pair(UntypedRole, UntypedRole);
    assert_eq!(Proxy.counterpart(), Conductor);
    assert_eq!(Proxy.remote_style(Proxy), RemoteStyle::Counterpart);
    assert_eq!(Conductor.remote_style(Client), RemoteStyle::Predecessor);
    assert_eq!(Conductor.remote_style(Agent), RemoteStyle::Successor);
    assert_ne!(Client.role_id(), mcp::Client.role_id());
}

#[test]
fn raw_messages_are_built_and_read() {
    let request = RawJsonRpcMessage::request("m".into(), json!([1]), 7_i64.into()).expect("params");
    assert_eq!(
        serde_json::to_value(&request).expect("json"),
        json!({ "jsonrpc": "2.0", "id": 7, "method": "m", "params": [1] })
    );
    assert!(request.response_id().is_none());
    let notification = RawJsonRpcMessage::notification("n".into(), Value::Null).expect("params");
    RawJsonRpcMessage::notification("n".into(), json!(1)).expect_err("a number is no params");
    let response = RawJsonRpcMessage::response(String::from("x").into(), Err(Error::auth_required()));
    assert_eq!(response.response_id(), Some(&String::from("x").into()));
    assert_eq!(
        RawJsonRpcParams::from_value(json!({ "a": 1 })).expect("params").expect("some").into_value(),
        json!({ "a": 1 })
    );
    let mut batch = TransportBatch::from_messages([request, notification, response]).expect("not empty");
    assert_eq!((batch.len(), batch.is_empty(), batch.entries().count(), batch.entries_mut().count()), (3, false, 3, 3));
    assert!(TransportBatch::from_entries([]).is_none());
    let odd = TransportBatchEntry::malformed(json!(7), Error::invalid_request());
    let entries = batch.into_entries().chain([odd]).collect::<Vec<_>>();
    let batch = TransportFrame::Batch(TransportBatch::from_entries(entries).expect("not empty"));
    let TransportFrame::Batch(again) = TransportFrame::parse_json(&batch.to_json().expect("text")) else {
        panic!("a batch")
    };
    assert_eq!(again.len(), 4);
    let error = RawJsonRpcError::from(Error::new(-1, "m"));
    assert!(error.data.is_undefined() && error.to_string().contains('m'));
}

#[test]
fn envelopes_are_messages() {
    use schema::{METHOD_INITIALIZE_PROXY, METHOD_SUCCESSOR_MESSAGE, SuccessorMessage};

    let envelope = SuccessorMessage { message: Ask(3), meta: Some(json!({ "a": 1 })) };
    let untyped = envelope.to_untyped_message().expect("params");
    assert_eq!((untyped.method(), METHOD_INITIALIZE_PROXY), (METHOD_SUCCESSOR_MESSAGE, "_proxy/initialize"));
    assert!(SuccessorMessage::<Ask>::matches_method(untyped.method()));
    let again = SuccessorMessage::<Ask>::parse_message(untyped.method(), untyped.params()).expect("an envelope");
    assert_eq!((again.message.0, again.meta), (3, envelope.meta));
    let cancel = UntypedMessage::new("$/cancel_request", json!({ "requestId": 1 })).expect("params");
    assert!(is_cancel_request_notification(&cancel) && !is_cancel_request_notification(&Tell {}));
    let initialize = v1::InitializeRequest::new(ProtocolVersion::V1);
    let _: schema::InitializeProxyRequest = initialize.into();
}

struct Special;

impl MetaCapability for Special {
    fn key(&self) -> &'static str {
        "special"
    }
}

#[test]
fn capabilities_stand_in_metadata() {
    let request = v1::InitializeRequest::new(ProtocolVersion::V1).add_meta_capability(Special);
    assert!(request.has_meta_capability(Special));
    assert!(!request.remove_meta_capability(Special).has_meta_capability(Special));
    assert_eq!(Special.value(), json!(true));
}

/// Messages, handlers, runners and close callbacks that were implemented by hand, at work.
#[tokio::test]
async fn implementations_by_hand_work_together() {
    struct Answers;
    impl HandleDispatchFrom<Client> for Answers {
        async fn handle_dispatch_from(
            &mut self,
            message: Dispatch,
            _connection: ConnectionTo<Client>,
        ) -> Result<Handled<Dispatch>, Error> {
            matched(message).await
        }

        fn describe_chain(&self) -> impl Debug {
            "answers"
        }
    }
    let agent = Builder::new_with(Agent, Answers).with_runner(Runs).on_close(async |_cx| Ok(()));
    let (left, client) = Channel::duplex();
    let (right, far) = Channel::duplex();
    let mut seen = Vec::new();
    let bridge = Channel::bridge_with_inspection(
        left,
        right,
        |message| {
            seen.push(matches!(message, RawJsonRpcMessage::Request(_)));
            Ok(())
        },
        |_| Ok(()),
    );
    let talk = Client.connect_with(client, async |cx| {
        cx.send_notification(Tell {})?;
        cx.send_request(Ask(5)).block_task().await
    });
    let (answer, served, bridged) = tokio::join!(talk, agent.connect_to(far), bridge);
    assert_eq!(answer.expect("an answer"), Answer(5));
    served.expect("a clean end");
    bridged.expect("a clean end");
    assert_eq!(seen, [false, true]);
}
