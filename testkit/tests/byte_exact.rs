//! Three hops change no byte of what they carry: params, results and errors, in both directions, in
//! both dialects, over bytes and by value.

use std::time::Duration;

use greenroom::link::Link;
use greenroom::{Conductor, ConnectTo as _, DynConnectTo};
use greenroom_conductor::{ConductorImpl, ProxiesAndAgent, ProxyDialect, RunningChain};
use greenroom_testkit::pass_through;
use greenroom_testkit::scripted::{Local, pair};
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(20);

/// A proxy that is reached through pipes, so that everything is written and scanned again.
fn over_bytes() -> Link {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(pass_through().connect_to(Link::bytes(reader, writer)));
    let (reader, writer) = tokio::io::split(near);
    Link::bytes(reader, writer)
}

/// Three proxies; the one in the middle stands in a chain of its own.
fn proxies(bytes: bool, dialect: ProxyDialect) -> Vec<DynConnectTo<Conductor>> {
    let proxy = || if bytes { DynConnectTo::new(over_bytes()) } else { DynConnectTo::new(pass_through()) };
    let middle = ConductorImpl::new_proxy("middle", vec![proxy()]).dialects(vec![dialect]);
    vec![proxy(), DynConnectTo::new(middle), proxy()]
}

struct Ends {
    client: Local,
    agent: Local,
    _chain: RunningChain,
}

impl Ends {
    async fn start(bytes: bool, dialect: ProxyDialect) -> Self {
        let (client, upstream) = pair(1 << 16);
        let (agent, downstream) = pair(1 << 16);
        let components = ProxiesAndAgent::new(downstream).proxies(proxies(bytes, dialect));
        let conductor = ConductorImpl::new_agent("outer", components).dialects(vec![dialect; 3]);
        Self { client, agent, _chain: conductor.start(upstream).await.expect("a chain") }
    }

    /// A request one way and its answer the other way; whatever is not the id has to stay as it is.
    async fn exchange(&mut self, rightwards: bool, id: &str, method: &str, params: &str, reply: &str) {
        let Self { client, agent, .. } = self;
        let (asker, answerer) = if rightwards { (client, agent) } else { (agent, client) };
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        asker.write(line + "\n").await;
        let asked = timeout(SOON, answerer.line()).await.expect("in time").expect("the request");
        let end = format!(r#","method":"{method}","params":{params}}}"#);
        let id_here = asked.strip_prefix(r#"{"jsonrpc":"2.0","id":"#).and_then(|rest| rest.strip_suffix(&end));
        let id_here = id_here.unwrap_or_else(|| panic!("{asked}\nends otherwise than\n{end}"));
        answerer.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id_here},{reply}}}\n")).await;
        let answer = timeout(SOON, asker.line()).await.expect("in time").expect("the answer");
        assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","id":{id},{reply}}}"#));
    }
}

const INITIALIZES: [&str; 2] = [
    r#"{ "unknown":{"n":1.50e1 ,"big":9007199254740993},"protocolVersion":1,"clientCapabilities":{"x":[ ]},"_meta":{"k" : 0.10} }"#,
    r#"{"protocolVersion":2, "info":{"name":"\u00e9\/é","version":"1","more":null},"capabilities":{},"unknown":[-0,1E2],"_meta":{}}"#,
];

const PARAMS: [&str; 4] = [
    r#"[1, null ,"two",[9007199254740993],{"_meta":{"k":1}}]"#,
    r#"{"_meta":{ "io.example/x" : [ 1.0, 1e2 ] },"sessionId":"s","z":"\ud83d\ude00😀","a":0.10}"#,
    "[]",
    "{}",
];

const REPLIES: [&str; 6] = [
    r#""result":null"#,
    r#""result":{ "_meta":{"n":9007199254740993},"b":1.50,"a":"\u0041" }"#,
    r#""result":[ 1 ,2.0]"#,
    r#""error":{"code":4711,"message":"of our own","data":null}"#,
    r#""error":{"code":-1,"message":"","data":{"a":[ 1.0 ]},"extra":[9007199254740993]}"#,
    r#""error":{"message":"another order","code":-32099}"#,
];

const IDS: [&str; 5] = ["9007199254740993", r#""\u0061\/""#, "-9007199254740993", "0", "null"];

#[tokio::test]
async fn three_hops_change_no_byte() {
    for dialect in [ProxyDialect::Auto, ProxyDialect::Legacy, ProxyDialect::Modern] {
        for (bytes, initialize) in [false, true].into_iter().flat_map(|bytes| INITIALIZES.map(|text| (bytes, text))) {
            let mut ends = Ends::start(bytes, dialect).await;
            let version = if initialize.contains(r#""protocolVersion":1"#) { 1 } else { 2 };
            let result = format!(r#""result":{{"more":[ 1.0 ],"protocolVersion":{version},"_meta":{{"x":1E1}}}}"#);
            ends.exchange(true, "9007199254740993", "initialize", initialize, &result).await;
            for rightwards in [true, false] {
                for (n, reply) in REPLIES.iter().enumerate() {
                    let id = IDS[n % IDS.len()];
                    ends.exchange(rightwards, id, "_vendor/ask", PARAMS[n % PARAMS.len()], reply).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_of_initialize_comes_back_as_it_is() {
    for dialect in [ProxyDialect::Auto, ProxyDialect::Legacy, ProxyDialect::Modern] {
        for bytes in [false, true] {
            let mut ends = Ends::start(bytes, dialect).await;
            for reply in REPLIES.iter().filter(|reply| reply.contains("error")) {
                ends.exchange(true, "9007199254740993", "initialize", INITIALIZES[0], reply).await;
            }
        }
    }
}
