//! "Version routing" and "Proxy and client routing" of the chapter "Protocol V2".

use std::sync::{Arc, Mutex};

use agent_client_protocol::schema::{v1, v2};
use agent_client_protocol::{
    Agent, Client, ConnectTo, ConnectionTo, Error, Proxy, Responder, UntypedMessage, V2ConnectionTo, on_receive_request,
};
use serde_json::{Value, json};

fn implementation() -> v2::Implementation {
    v2::Implementation::new("example", "0.1.0")
}

/// Agents add protocol implementations independently.
async fn serve(
    client_transport: impl agent_client_protocol::ConnectTo<Agent>,
    enable_protocol_v2: bool,
) -> agent_client_protocol::Result<()> {
    let v1_agent = Agent.builder().on_receive_request(
        async |initialize: v1::InitializeRequest, responder, _cx| {
            responder.respond(v1::InitializeResponse::new(initialize.protocol_version))
        },
        agent_client_protocol::on_receive_request!(),
    );

    let agent = Agent.protocol_router().with_v1(v1_agent);

    let agent = if enable_protocol_v2 {
        let v2_agent = Agent.v2().on_receive_request(
            async |initialize: v2::InitializeRequest, responder, _cx| {
                responder.respond(v2::InitializeResponse::new(initialize.protocol_version, implementation()))
            },
            agent_client_protocol::on_receive_request!(),
        );

        agent.with_v2(v2_agent)
    } else {
        agent
    };

    agent.connect_to(client_transport).await?;
    Ok(())
}

/// A transport to an agent of that program.
fn open_agent_transport(enable_protocol_v2: bool) -> impl ConnectTo<Client> {
    let (ours, theirs) = agent_client_protocol::Channel::duplex();
    tokio::spawn(serve(theirs, enable_protocol_v2));
    ours
}

type Log = Arc<Mutex<Vec<&'static str>>>;

fn v1_client(log: Log) -> impl ConnectTo<Agent> {
    Client.builder().with_spawned(async move |cx: ConnectionTo<Agent>| {
        cx.send_request(v1::InitializeRequest::new(1.into())).block_task().await?;
        log.lock().expect("no panic").push("version 1");
        Err(Error::internal_error().data("done"))
    })
}

fn v2_client(log: Log) -> impl ConnectTo<Agent> {
    Client.v2().with_spawned(async move |cx: V2ConnectionTo<Agent>| {
        cx.send_request(v2::InitializeRequest::new(2.into(), implementation())).block_task().await?;
        log.lock().expect("no panic").push("version 2");
        Err(Error::internal_error().data("done"))
    })
}

#[tokio::test]
async fn clients_use_a_connector() {
    let log = Log::default();
    for enable_protocol_v2 in [true, false] {
        let (first, second) = (log.clone(), log.clone());
        let connector = Client
            .protocol_connector()
            .with_v1(move || v1_client(first.clone()))
            .with_v2(move || v2_client(second.clone()));

        let ended = connector.connect_to(move || open_agent_transport(enable_protocol_v2)).await;
        assert_eq!(ended.expect_err("the client's own").data, Some(json!("done")));
    }
    assert_eq!(*log.lock().expect("no panic"), ["version 2", "version 1"]);
}

/// A version mismatch is an error with a code of its own, told before the connection closes.
#[tokio::test]
async fn version_mismatch_errors() {
    let v2_agent = Agent.v2().on_receive_request(
        async |initialize: v2::InitializeRequest, responder: Responder<v2::InitializeResponse>, _cx| {
            responder.respond(v2::InitializeResponse::new(initialize.protocol_version, implementation()))
        },
        on_receive_request!(),
    );
    let agent = Agent.protocol_router().with_v2(v2_agent).close_after_rejection();
    let error = Client
        .builder()
        .connect_with(agent, async |cx| Ok(cx.send_request(v1::InitializeRequest::new(1.into())).block_task().await))
        .await
        .expect("a connection")
        .expect_err("a mismatch");
    let same = agent_client_protocol::util::unsupported_protocol_version(1.into(), &[2.into()]);
    assert_eq!((error.code, &error.data), (same.code, &same.data));
    assert_eq!(i32::from(error.code), -32022);
    assert_eq!(error.data, Some(json!({ "requested": 1, "supported": [2] })));
}

/// "When one component must expose independently authored v1 and v2 proxies".
#[tokio::test]
async fn proxies_of_both_versions() {
    fn proxy() -> impl ConnectTo<agent_client_protocol::Conductor> {
        let v1_proxy = Proxy.builder();
        let v2_proxy = Proxy.v2();
        Proxy.protocol_router().with_v1(v1_proxy).with_v2(v2_proxy)
    }
    for version in [1, 2] {
        let chain = greenroom_conductor::ProxiesAndAgent::new(open_agent_transport(true)).proxy(proxy());
        let chain = greenroom_conductor::ConductorImpl::new_agent("chain", chain);
        let params = json!({ "protocolVersion": version, "info": { "name": "n", "version": "v" } });
        let answer: Value = Client
            .builder()
            .without_acp_version_guard()
            .connect_with(chain, async |cx| {
                cx.send_request(UntypedMessage::new("initialize", params)?).block_task().await
            })
            .await
            .expect("an answer");
        assert_eq!(answer["protocolVersion"], version);
    }
}
