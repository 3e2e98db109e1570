//! Proxies behind a router: below a scripted conductor, and in real chains.

use greenroom::{ConnectionOptions, Proxy, ProxyProtocolRouter, ProxyVersions};
use greenroom_conductor::{ConductorImpl, ProxiesAndAgent, ProxyDialect};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};

use super::support::*;

fn proxy_hello(id: &str, dialect: &str, version: impl Into<Value>) -> Value {
    request(id, dialect, hello(version))
}

#[tokio::test]
async fn the_conductors_initialize_passes_byte_for_byte_and_so_does_the_rest() {
    for dialect in ["_proxy/initialize", "proxy/initialize"] {
        let (mut v1, link) = pair(ROOM);
        let (mut conductor, run) = serve(Proxy.protocol_router().with_v1(link));
        let first = format!(
            r#"{{"id":"a\u0041", "params":{{"unknown":1.50e1,"protocolVersion" : 1}},"jsonrpc":"2.0","method":"{dialect}"}}"#
        );
        passes(&mut conductor, &mut v1, &first).await;
        for line in ODD_LINES {
            passes(&mut conductor, &mut v1, line).await;
            passes(&mut v1, &mut conductor, line).await;
        }
        conductor.close().await;
        soon(v1.expect_end()).await;
        v1.close().await;
        soon(run).await.expect("no panic").expect("a clean end");
    }
}

#[tokio::test]
async fn what_selects_nothing_is_refused_and_the_conductor_may_try_again() {
    let (mut v1, link) = pair(ROOM);
    let (mut conductor, _run) = serve(Proxy.protocol_router().with_v1(link));
    for first in [
        proxy_hello("i", "_proxy/initialize", 0),
        proxy_hello("i", "_proxy/initialize", 2),
        proxy_hello("i", "_proxy/initialize", 3),
        initialize("i", 1),
        request("i", "_proxy/successor", json!({ "method": "initialize", "params": hello(1) })),
        request("i", "proxy/successor", json!({ "method": "proxy/initialize", "params": hello(1) })),
        request("i", "session/new", json!({})),
    ] {
        conductor.send(&first).await;
        assert_eq!(refused(&mut conductor, "i").await, -32600, "{first}");
    }
    conductor.send(&proxy_hello("i", "_proxy/initialize", "1")).await;
    assert_eq!(refused(&mut conductor, "i").await, -32602);
    conductor.send(&result("i", json!({}))).await;
    conductor.send(&note("early", json!({}))).await;
    // The other dialect negotiates.
    conductor.send(&proxy_hello("i", "proxy/initialize", 3)).await;
    let told = soon(v1.receive()).await;
    assert_eq!((&told["method"], &told["params"]["protocolVersion"]), (&json!("proxy/initialize"), &json!(1)));
}

#[tokio::test]
async fn how_versions_are_selected_can_be_forced() {
    let forced = |versions| {
        let mut options = ConnectionOptions::default();
        options.proxy_versions = versions;
        Proxy.protocol_router().options(options)
    };
    let (mut v1, link) = pair(ROOM);
    let (mut conductor, _run) = serve(forced(ProxyVersions::Negotiate).with_v1(link));
    conductor.send(&proxy_hello("i", "_proxy/initialize", 2)).await;
    assert_eq!(soon(v1.receive()).await["params"]["protocolVersion"], 1);
    let (_v1, link) = pair(ROOM);
    let (mut conductor, run) = serve(forced(ProxyVersions::Exact).with_v1(link).close_after_rejection());
    conductor.send(&proxy_hello("i", "proxy/initialize", 2)).await;
    assert_eq!(refused(&mut conductor, "i").await, -32600);
    soon(conductor.expect_end()).await;
    soon(run).await.expect("no panic").expect("no error of the router");
}

/// Proxies of every version of this build.
fn routed() -> ProxyProtocolRouter {
    let router = Proxy.protocol_router().with_v1(Proxy.builder());
    #[cfg(feature = "unstable_protocol_v2")]
    let router = router.with_v2(Proxy.v2());
    router
}

/// A client and an agent with routed proxies between them.
async fn chain(proxies: usize, dialect: ProxyDialect) -> (Local, Local, greenroom_conductor::RunningChain) {
    let ((client, upstream), (agent, downstream)) = (pair(ROOM), pair(ROOM));
    let components = ProxiesAndAgent::new(downstream).proxies((0..proxies).map(|_| routed()));
    let chain = ConductorImpl::new_agent("chain", components).dialects(vec![dialect; proxies]).start(upstream).await;
    (client, agent, chain.expect("a chain"))
}

#[tokio::test]
async fn routed_proxies_serve_chains_of_every_version_in_every_dialect() {
    let highest = if cfg!(feature = "unstable_protocol_v2") { 2 } else { 1 };
    for dialect in [ProxyDialect::Auto, ProxyDialect::Legacy, ProxyDialect::Modern] {
        for version in 1..=highest {
            let (mut client, mut agent, chain) = chain(2, dialect).await;
            let mut first = initialize("i", version);
            first["params"]["unknown"] = json!([1.0]);
            client.send(&first).await;
            let asked = soon(agent.receive()).await;
            assert_eq!(asked["method"], "initialize", "{asked}");
            assert_eq!(asked["params"], first["params"], "unknown members pass every router");
            let info = json!({ "name": "agent", "version": "1" });
            let answer = json!({ "protocolVersion": version, "info": info, "capabilities": {}, "more": null });
            agent.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer })).await;
            assert_eq!(soon(client.receive()).await, result("i", answer));
            // Both ways, and a cancellation to the end of the chain.
            client.send(&request("p", "session/prompt", json!({ "sessionId": "s", "prompt": [] }))).await;
            let prompt = soon(agent.receive()).await;
            assert_eq!(prompt["method"], "session/prompt", "{prompt}");
            client.send(&note("$/cancel_request", json!({ "requestId": "p" }))).await;
            let cancel = soon(agent.receive()).await;
            assert_eq!(
                (&cancel["method"], &cancel["params"]["requestId"]),
                (&json!("$/cancel_request"), &prompt["id"])
            );
            agent.send(&request(9, "fs/read_text_file", json!({ "sessionId": "s", "path": "/" }))).await;
            let read = soon(client.receive()).await;
            assert_eq!(read["method"], "fs/read_text_file", "{read}");
            client.send(&json!({ "jsonrpc": "2.0", "id": read["id"], "result": { "content": "" } })).await;
            assert_eq!(soon(agent.receive()).await, result(9, json!({ "content": "" })));
            let error = json!({ "code": -32800, "message": "", "data": { "k": 1 } });
            agent.send(&json!({ "jsonrpc": "2.0", "id": prompt["id"], "error": error })).await;
            assert_eq!(soon(client.receive()).await, json!({ "jsonrpc": "2.0", "id": "p", "error": error }));
            client.close().await;
            soon(agent.expect_end()).await;
            agent.close().await;
            soon(client.expect_end()).await;
            soon(chain.closed()).await.expect("a clean end");
        }
    }
}

#[cfg(feature = "unstable_protocol_v2")]
#[tokio::test]
async fn each_version_gets_its_implementation() {
    for (dialect, version, served) in [
        ("_proxy/initialize", 1, 1),
        ("_proxy/initialize", 2, 2),
        ("proxy/initialize", 0, 1),
        ("proxy/initialize", 1, 1),
        ("proxy/initialize", 2, 2),
        ("proxy/initialize", 3, 2),
    ] {
        let ((mut v1, v1_link), (mut v2, v2_link)) = (pair(ROOM), pair(ROOM));
        let (mut conductor, _run) = serve(Proxy.protocol_router().with_v1(v1_link).with_v2(v2_link));
        conductor.send(&proxy_hello("i", dialect, version)).await;
        let (selected, other) = if served == 1 { (&mut v1, &mut v2) } else { (&mut v2, &mut v1) };
        assert_eq!(soon(selected.receive()).await["params"]["protocolVersion"], served, "{dialect} {version}");
        soon(other.expect_end()).await;
    }
    for (dialect, version, code) in [("_proxy/initialize", 0, -32600), ("_proxy/initialize", 3, -32600)] {
        let ((_v1, v1_link), (_v2, v2_link)) = (pair(ROOM), pair(ROOM));
        let (mut conductor, _run) = serve(Proxy.protocol_router().with_v1(v1_link).with_v2(v2_link));
        conductor.send(&proxy_hello("i", dialect, version)).await;
        assert_eq!(refused(&mut conductor, "i").await, code);
    }
}
