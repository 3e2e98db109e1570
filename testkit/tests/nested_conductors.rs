//! Conductors as proxies of conductors, to any depth, in both dialects; and how their components
//! are started.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom::schema::ProtocolVersion;
use greenroom::schema::v1::InitializeRequest;
use greenroom::{Agent, BoxFuture, Client, Conductor, ConnectTo, DynConnectTo, Error, Proxy, Result};
use greenroom_conductor::{
    AgentOnly, ConductorImpl, InstantiateProxies, InstantiateProxiesAndAgent, ProxiesAndAgent, ProxyDialect,
};
use greenroom_testkit::scripted::{Local, pair};
use greenroom_testkit::{arrow, pass_through, testy};
use serde_json::{Value, json};
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(20);

type Part = DynConnectTo<Conductor>;

/// One conductor around `depth` others, each with an arrow to the right of the nested one.
fn nested(depth: usize, dialect: ProxyDialect) -> Part {
    let mut proxies: Vec<Part> = Vec::new();
    let mut dialects = Vec::new();
    if depth > 0 {
        proxies.push(nested(depth - 1, dialect));
        dialects.push(dialect);
    }
    proxies.push(DynConnectTo::new(arrow()));
    dialects.push(dialect);
    DynConnectTo::new(ConductorImpl::new_proxy(format!("depth-{depth}"), proxies).dialects(dialects))
}

/// A chain without proxies around another one without proxies, and so on.
fn hollow(depth: usize) -> Part {
    let inside: Vec<Part> = if depth == 0 { Vec::new() } else { vec![hollow(depth - 1)] };
    DynConnectTo::new(ConductorImpl::new_proxy("hollow", inside))
}

/// A raw client and a raw agent with these proxies between them.
struct Ends {
    client: Local,
    agent: Local,
    _chain: greenroom_conductor::RunningChain,
}

impl Ends {
    async fn start(proxies: Vec<Part>, dialect: ProxyDialect) -> Self {
        let (client, upstream) = pair(1 << 16);
        let (agent, downstream) = pair(1 << 16);
        let dialects = vec![dialect; proxies.len()];
        let components = ProxiesAndAgent::new(downstream).proxies(proxies);
        let chain = ConductorImpl::new_agent("outer", components).dialects(dialects).start(upstream).await;
        Self { client, agent, _chain: chain.expect("a chain") }
    }

    async fn initialized(proxies: Vec<Part>, dialect: ProxyDialect, version: u16) -> Self {
        let mut ends = Self::start(proxies, dialect).await;
        ends.client.send(&initialize(0, json!({ "protocolVersion": version, "xtra": [1.0] }))).await;
        let asked = ends.agent.receive().await;
        assert_eq!((&asked["method"], &asked["params"]["xtra"]), (&json!("initialize"), &json!([1.0])));
        let result = json!({ "protocolVersion": version, "more": null });
        ends.agent.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })).await;
        ends.client.expect(json!({ "jsonrpc": "2.0", "id": 0, "result": result })).await;
        ends
    }
}

fn initialize(id: u64, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": params })
}

const DIALECTS: [ProxyDialect; 3] = [ProxyDialect::Auto, ProxyDialect::Legacy, ProxyDialect::Modern];

#[tokio::test]
async fn every_depth_is_one_more_proxy() {
    for dialect in DIALECTS {
        for depth in 0..=3 {
            let (mut client, link) = pair(1 << 16);
            let components = ProxiesAndAgent::new(testy()).proxies([nested(depth, dialect)]);
            let outer = ConductorImpl::new_agent("outer", components).dialects(vec![dialect]);
            let chain = outer.start(link).await.expect("a chain");
            client.send(&initialize(0, json!({ "protocolVersion": 1 }))).await;
            assert_eq!(client.receive().await["result"]["protocolVersion"], 1, "{dialect:?} {depth}");
            let new = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": { "cwd": "/", "mcpServers": [] } });
            client.send(&new).await;
            let session = client.receive().await["result"]["sessionId"].clone();
            let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "echo hi" }] });
            client.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params })).await;
            let said = client.receive().await["params"]["update"]["content"]["text"].clone();
            assert_eq!(said, format!("{}hi", "→ ".repeat(depth + 1)), "{dialect:?}");
            assert_eq!(client.receive().await["result"]["stopReason"], "end_turn");
            client.close().await;
            timeout(SOON, chain.closed()).await.expect("an end").expect("a clean end");
        }
    }
}

/// What goes through: requests both ways with odd ids, params, results and errors.
async fn odd_traffic(ends: &mut Ends, name: &str) {
    let Ends { client, agent, .. } = ends;
    for (right, ids) in [
        (true, [json!("a\"b"), json!(9_007_199_254_740_993_i64), json!(-1), Value::Null]),
        (false, [json!(1), json!("1"), json!(0), json!("é")]),
    ] {
        let (asker, answerer) = if right { (&mut *client, &mut *agent) } else { (&mut *agent, &mut *client) };
        let replies = [
            ("result", Value::Null),
            ("result", json!({ "_meta": { "k": [1, 2.5, "ü"] } })),
            ("error", json!({ "code": 12_345, "message": "m", "data": null, "extra": { "a": 1 } })),
            ("error", json!({ "code": -1, "message": "" })),
        ];
        for (id, (member, reply)) in ids.into_iter().zip(replies) {
            for params in [json!({ "_meta": { "x": 1 }, "deep": [[[]]] }), json!([1, null, "two"])] {
                let ask = json!({ "jsonrpc": "2.0", "id": id, "method": "_vendor/ask", "params": params });
                asker.send(&ask).await;
                let asked = timeout(SOON, answerer.receive()).await.expect(name);
                assert_eq!((&asked["method"], &asked["params"]), (&json!("_vendor/ask"), &params), "{name}");
                answerer.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], member: reply })).await;
                let expected = json!({ "jsonrpc": "2.0", "id": id, member: reply });
                assert_eq!(timeout(SOON, asker.receive()).await.expect(name), expected, "{name}");
            }
        }
        asker.send(&json!({ "jsonrpc": "2.0", "method": "_vendor/note", "params": { "n": 1 } })).await;
        answerer.expect(json!({ "jsonrpc": "2.0", "method": "_vendor/note", "params": { "n": 1 } })).await;
    }
}

#[tokio::test]
async fn nested_chains_change_nothing_at_any_depth_in_any_dialect() {
    for dialect in DIALECTS {
        for version in [1, 2] {
            for depth in 0..=3 {
                let name = format!("{dialect:?} version {version} depth {depth}");
                let proxies = vec![nested(depth, dialect), DynConnectTo::new(pass_through())];
                let mut ends = Ends::initialized(proxies, dialect, version).await;
                odd_traffic(&mut ends, &name).await;
            }
        }
    }
}

#[tokio::test]
async fn empty_chains_are_not_there() {
    for dialect in DIALECTS {
        for depth in 0..=3 {
            let mut ends = Ends::initialized(vec![hollow(depth)], dialect, 1).await;
            odd_traffic(&mut ends, &format!("hollow {dialect:?} {depth}")).await;
        }
    }
}

#[tokio::test]
async fn cancellations_cross_every_level_with_the_id_of_the_last() {
    for dialect in DIALECTS {
        let mut ends = Ends::initialized(vec![nested(3, dialect)], dialect, 1).await;
        for right in [true, false] {
            let Ends { client, agent, .. } = &mut ends;
            let (asker, answerer) = if right { (client, agent) } else { (agent, client) };
            asker.send(&json!({ "jsonrpc": "2.0", "id": "mine", "method": "_slow" })).await;
            let asked = answerer.receive().await;
            let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": "mine" } });
            asker.send(&cancel).await;
            let told = timeout(SOON, answerer.receive()).await.expect("the cancellation");
            assert_eq!((&told["method"], &told["params"]["requestId"]), (&json!("$/cancel_request"), &asked["id"]));
            let error = json!({ "code": -32800, "message": "cancelled", "data": 1 });
            answerer.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })).await;
            asker.expect(json!({ "jsonrpc": "2.0", "id": "mine", "error": error })).await;
        }
    }
}

#[tokio::test]
async fn an_initialize_that_the_agent_refuses_comes_back_whole() {
    for dialect in DIALECTS {
        let mut ends = Ends::start(vec![nested(3, dialect)], dialect).await;
        ends.client.send(&initialize(1, json!({ "protocolVersion": 1 }))).await;
        let asked = ends.agent.receive().await;
        let error = json!({ "code": 4_711, "message": "not today", "data": { "retry": [1] }, "extra": true });
        ends.agent.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })).await;
        ends.client.expect(json!({ "jsonrpc": "2.0", "id": 1, "error": error })).await;
        // The chain is there: another try reaches the agent.
        ends.client.send(&initialize(2, json!({ "protocolVersion": 1 }))).await;
        let asked = ends.agent.receive().await;
        ends.agent.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "protocolVersion": 1 } })).await;
        assert_eq!(ends.client.receive().await["id"], 2);
    }
}

#[tokio::test]
async fn a_component_deep_inside_that_dies_fails_the_request_and_ends_the_chain() {
    let (mut proxy, link) = pair(1 << 16);
    let innermost = ConductorImpl::new_proxy("inner", vec![DynConnectTo::<Conductor>::new(link)]);
    let middle = ConductorImpl::new_proxy("middle", vec![innermost]);
    let mut ends = Ends::start(vec![DynConnectTo::new(middle)], ProxyDialect::Modern).await;
    ends.client.send(&initialize(1, json!({ "protocolVersion": 1 }))).await;
    let asked = proxy.receive().await;
    assert!(asked["method"].as_str().is_some_and(|method| method.ends_with("proxy/initialize")), "{asked}");
    proxy.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "protocolVersion": 1 } })).await;
    assert_eq!(ends.client.receive().await["id"], 1);
    ends.client.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "_ask" })).await;
    assert_eq!(proxy.receive().await["method"], "_ask");
    drop(proxy);
    let answer = timeout(SOON, ends.client.receive()).await.expect("an answer");
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(2), &json!(-32603)), "{answer}");
    timeout(SOON, ends.client.expect_end()).await.expect("the end of the chain");
}

/// Counts the calls of an instantiator.
fn counted(calls: &Arc<AtomicUsize>) -> Arc<AtomicUsize> {
    calls.clone()
}

#[tokio::test]
async fn components_start_with_the_first_initialize_and_once() {
    let calls = Arc::new(AtomicUsize::new(0));
    let (outer, inner) = (counted(&calls), counted(&calls));
    let chain = move |mut request: InitializeRequest| async move {
        outer.fetch_add(1, Ordering::SeqCst);
        assert_eq!(request.protocol_version, ProtocolVersion::V1);
        let meta = json!({ "seen": "by the closure" });
        request.meta = meta.as_object().cloned();
        let nested = ConductorImpl::new_proxy("nested", move |request: InitializeRequest| async move {
            inner.fetch_add(1, Ordering::SeqCst);
            assert_eq!(request.meta.as_ref().expect("changed before")["seen"], "by the closure");
            Ok((request, vec![DynConnectTo::new(arrow())]))
        });
        Ok((request, vec![DynConnectTo::<Conductor>::new(nested)], DynConnectTo::<Client>::new(testy())))
    };
    let (mut client, link) = pair(1 << 16);
    let _chain = ConductorImpl::new_agent("lazy", chain).start(link).await.expect("a chain");
    client.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "session/new", "params": {} })).await;
    assert_eq!(client.receive().await["error"]["code"], -32600);
    client.send(&initialize(1, json!({}))).await;
    assert_eq!(client.receive().await["error"]["code"], -32602, "no version: refused before anything starts");
    assert_eq!(calls.load(Ordering::SeqCst), 0, "nothing was started for these");
    for id in 2..5 {
        client.send(&initialize(id, json!({ "protocolVersion": 1 }))).await;
        assert_eq!(client.receive().await["result"]["protocolVersion"], 1);
    }
    assert_eq!(calls.load(Ordering::SeqCst), 2, "the outer once, the inner once");
}

#[tokio::test]
async fn an_error_of_the_instantiator_answers_everything_from_then_on() {
    for nested in [false, true] {
        let calls = Arc::new(AtomicUsize::new(0));
        let (mut client, link) = pair(1 << 16);
        let seen = counted(&calls);
        let error = || Error::new(4_242, "no components today").data(json!({ "why": "a test" }));
        let _chain = if nested {
            let inner = ConductorImpl::new_proxy("nested", move |_: InitializeRequest| async move {
                seen.fetch_add(1, Ordering::SeqCst);
                Err::<(InitializeRequest, Vec<Part>), _>(error())
            });
            ConductorImpl::new_agent("sticky", ProxiesAndAgent::new(testy()).proxy(inner)).start(link).await
        } else {
            let chain = move |_: InitializeRequest| async move {
                seen.fetch_add(1, Ordering::SeqCst);
                Err::<(InitializeRequest, Vec<Part>, DynConnectTo<Client>), _>(error())
            };
            ConductorImpl::new_agent("sticky", chain).start(link).await
        }
        .expect("a chain");
        for id in 1..4 {
            client.send(&initialize(id, json!({ "protocolVersion": 1 }))).await;
            let answer = timeout(SOON, client.receive()).await.expect("an answer");
            let expected = json!({ "code": 4_242, "message": "no components today", "data": { "why": "a test" } });
            assert_eq!((&answer["id"], &answer["error"]), (&json!(id), &expected));
        }
        if !nested {
            client.send(&json!({ "jsonrpc": "2.0", "id": 9, "method": "session/new", "params": {} })).await;
            assert_eq!(client.receive().await["error"]["code"], 4_242);
        }
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }
}

/// An instantiator of an application, written out.
struct Chosen;

impl InstantiateProxies for Chosen {
    fn instantiate_proxies(
        self: Box<Self>,
        request: InitializeRequest,
    ) -> BoxFuture<'static, Result<(InitializeRequest, Vec<DynConnectTo<Conductor>>)>> {
        Box::pin(async move { Ok((request, vec![DynConnectTo::new(arrow())])) })
    }
}

impl InstantiateProxiesAndAgent for Chosen {
    fn instantiate_proxies_and_agent(
        self: Box<Self>,
        request: InitializeRequest,
    ) -> BoxFuture<'static, Result<(InitializeRequest, Vec<DynConnectTo<Conductor>>, DynConnectTo<Client>)>> {
        let inner = ConductorImpl::new(Proxy, "inner", Box::new(Self));
        Box::pin(async move { Ok((request, vec![DynConnectTo::new(inner)], DynConnectTo::new(testy()))) })
    }
}

#[tokio::test]
async fn every_documented_kind_of_instantiator_works() {
    async fn initializes(conductor: ConductorImpl<Agent>) {
        let (mut client, link) = pair(1 << 16);
        let run = tokio::spawn(conductor.run(link));
        client.send(&initialize(1, json!({ "protocolVersion": 1 }))).await;
        assert_eq!(client.receive().await["result"]["protocolVersion"], 1);
        client.close().await;
        timeout(SOON, run).await.expect("an end").expect("no panic").expect("a clean end");
    }
    initializes(ConductorImpl::new_agent("only", AgentOnly(testy()))).await;
    initializes(ConductorImpl::new_agent("chosen", Chosen)).await;
    initializes(ConductorImpl::new(Agent, "boxed", Box::new(Chosen))).await;
    let vector = ConductorImpl::new_proxy("vector", vec![pass_through(), pass_through()]);
    initializes(ConductorImpl::new_agent("static", ProxiesAndAgent::new(testy()).proxy(vector))).await;
    let chosen = ConductorImpl::new_proxy("chosen", Chosen);
    initializes(ConductorImpl::new_agent("static", ProxiesAndAgent::new(testy()).proxy(chosen))).await;
    // A conductor is an agent like any other, also behind another one.
    let inner = ConductorImpl::new_agent("inner", AgentOnly(testy()));
    initializes(ConductorImpl::new_agent("outer", AgentOnly(inner))).await;
}

/// A conductor is a component: it fits wherever one is asked for.
#[test]
fn a_conductor_is_a_component_of_either_kind() {
    fn agent(_: impl ConnectTo<Client>) {}
    fn proxy(_: impl ConnectTo<Conductor>) {}
    agent(ConductorImpl::new_agent("a", AgentOnly(testy())));
    proxy(ConductorImpl::new_proxy("p", Vec::<Part>::new()));
}

#[tokio::test]
async fn a_chain_runs_beside_a_connection_of_the_application() {
    let (mut client, link) = pair(1 << 16);
    let chain = ConductorImpl::new_agent("beside", AgentOnly(testy())).start(link).await.expect("a chain");
    let runner = greenroom_conductor::ConductorRunner::<Agent>::new(chain);
    let (mut other, link) = pair(1 << 16);
    let connection = tokio::spawn(Agent.builder().with_runner(runner).connect_to(link));
    client.send(&initialize(1, json!({ "protocolVersion": 1 }))).await;
    assert_eq!(client.receive().await["result"]["protocolVersion"], 1);
    other.close().await;
    timeout(SOON, connection).await.expect("an end").expect("no panic").expect("a clean end");
    timeout(SOON, client.expect_end()).await.expect("the chain ends with the connection");
}

#[cfg(feature = "unstable_protocol_v2")]
mod version_2 {
    use greenroom::schema::v2;

    use super::*;

    struct Both;

    impl InstantiateProxiesAndAgent for Both {
        fn instantiate_proxies_and_agent(
            self: Box<Self>,
            _request: InitializeRequest,
        ) -> BoxFuture<'static, Result<(InitializeRequest, Vec<Part>, DynConnectTo<Client>)>> {
            Box::pin(async { Err(Error::new(1, "asked for version 1")) })
        }

        fn instantiate_v2_proxies_and_agent(
            self: Box<Self>,
            request: v2::InitializeRequest,
        ) -> BoxFuture<'static, Result<(v2::InitializeRequest, Vec<Part>, DynConnectTo<Client>)>> {
            assert_eq!(request.protocol_version, ProtocolVersion::V2);
            Box::pin(async { Err(Error::new(2, "asked for version 2")) })
        }
    }

    /// The code with which this chain refuses an initialize, and every later request.
    async fn refusal(conductor: ConductorImpl<Agent>, version: u16) -> Value {
        let (mut client, link) = pair(1 << 16);
        let _chain = conductor.start(link).await.expect("a chain");
        let info = json!({ "name": "c", "version": "1" });
        client.send(&initialize(1, json!({ "protocolVersion": version, "info": info, "capabilities": {} }))).await;
        let code = client.receive().await["error"]["code"].clone();
        client.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "_later" })).await;
        assert_eq!(client.receive().await["error"]["code"], code);
        code
    }

    #[tokio::test]
    async fn the_version_chooses_the_method() {
        assert_eq!(refusal(ConductorImpl::new_agent("both", Both), 1).await, 1);
        assert_eq!(refusal(ConductorImpl::new_agent("both", Both), 2).await, 2);
        let only_1 = |request: InitializeRequest| async move {
            Ok((request, Vec::<Part>::new(), DynConnectTo::<Client>::new(testy())))
        };
        assert_eq!(refusal(ConductorImpl::new_agent("closure", only_1), 2).await, -32600);
    }
}
