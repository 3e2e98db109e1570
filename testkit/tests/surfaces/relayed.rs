//! Each surface passes relays byte for byte, whether or not they know it.

use greenroom::{Agent, Client, Conductor, ConnectTo, DynConnectTo, on_receive_notification, on_receive_request};
use greenroom_conductor::{ConductorImpl, ProxiesAndAgent, RunningChain};
use greenroom_testkit::pass_through;
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};

use crate::{Sample, samples_v1};

struct Ends {
    client: Local,
    agent: Local,
    _chain: RunningChain,
}

impl Ends {
    async fn start(proxies: Vec<DynConnectTo<Conductor>>, version: u16) -> Self {
        let (mut client, upstream) = pair(1 << 16);
        let (mut agent, downstream) = pair(1 << 16);
        let components = ProxiesAndAgent::new(downstream).proxies(proxies);
        let chain = ConductorImpl::new_agent("relay", components).start(upstream).await.expect("a chain");
        let info = json!({ "name": "n", "version": "1" });
        let params = json!({ "protocolVersion": version, "info": info, "capabilities": {} });
        client.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
        let id = agent.receive().await["id"].clone();
        let result = json!({ "protocolVersion": version, "info": info, "capabilities": {} });
        agent.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result })).await;
        assert_eq!(client.receive().await["result"]["protocolVersion"], version);
        Self { client, agent, _chain: chain }
    }
}

/// The value as somebody else might write it, with a member that nobody knows.
fn spelled(value: &Value) -> String {
    let text = value.to_string();
    let inside = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).expect("an object");
    let comma = if inside.is_empty() { "" } else { " , " };
    format!("{{ {inside}{comma}\"_unknown\": [1.50e2, \"\\u00e9\\/\", 12345678901234567890]\t}}")
}

async fn assert_relayed(mut ends: Ends, samples: Vec<Sample>) {
    for (number, sample) in samples.into_iter().enumerate() {
        let Sample { method, params, result, from_agent, .. } = sample;
        let (from, to) =
            if from_agent { (&mut ends.agent, &mut ends.client) } else { (&mut ends.client, &mut ends.agent) };
        let params = spelled(&params);
        let id = if result.is_some() { format!("\"id\":\"sample-{number}\",") } else { String::new() };
        from.write(format!("{{\"jsonrpc\":\"2.0\",{id}\"method\":\"{method}\",\"params\":{params}}}\n")).await;
        let line = to.line().await.expect("a line");
        assert!(line.contains(&params), "{method}: {params}\ncame as {line}");
        let message: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(message["method"], method);
        let Some(result) = result else { continue };
        let result = spelled(&result);
        to.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n", message["id"])).await;
        let line = from.line().await.expect("a line");
        assert!(line.contains(&result) && line.contains(&format!("\"sample-{number}\"")), "{method}: {result}\n{line}");
    }
}

/// A proxy that knows the types of version 1, looks at some of them, and passes everything on.
fn looking() -> impl ConnectTo<Conductor> {
    use greenroom::schema::v1;
    use greenroom::{Handled, Proxy};
    Proxy
        .builder()
        .on_receive_notification_from(
            Agent,
            async |update: v1::SessionNotification, cx| Ok(Handled::No { message: (update, cx), retry: false }),
            on_receive_notification!(),
        )
        .on_receive_request_from(
            Client,
            async |request: v1::DeleteSessionRequest, responder, _cx| {
                Ok(Handled::No { message: (request, responder), retry: false })
            },
            on_receive_request!(),
        )
}

#[tokio::test]
async fn version_1_through_proxies() {
    for count in [0, 1, 3] {
        let proxies = (0..count).map(|_| DynConnectTo::new(pass_through())).collect();
        assert_relayed(Ends::start(proxies, 1).await, samples_v1::all()).await;
    }
}

/// Reading a message does not change it.
#[tokio::test]
async fn version_1_through_a_proxy_that_looks() {
    let proxies = vec![DynConnectTo::new(looking()), DynConnectTo::new(pass_through())];
    assert_relayed(Ends::start(proxies, 1).await, samples_v1::all()).await;
}

#[cfg(feature = "unstable_protocol_v2")]
#[tokio::test]
async fn version_2_through_proxies() {
    for count in [0, 2] {
        let proxies = (0..count).map(|_| DynConnectTo::new(pass_through())).collect();
        assert_relayed(Ends::start(proxies, 2).await, crate::samples_v2::all()).await;
    }
}
