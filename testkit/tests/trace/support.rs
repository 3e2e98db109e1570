//! A chain between a scripted client and a scripted agent, and what is recorded of it.

use std::time::Duration;

use futures::StreamExt as _;
use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use greenroom::{Conductor, DynConnectTo};
use greenroom_conductor::trace::{TraceEvent, TraceWriter};
use greenroom_conductor::{ConductorImpl, ProxiesAndAgent, RunningChain};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::time::timeout;

/// What nothing here takes longer than.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) struct Traced {
    pub(crate) client: Local,
    pub(crate) agent: Local,
    pub(crate) chain: RunningChain,
}

impl Traced {
    /// A chain that is initialised: both ends have said what that takes. Recorded, if there is a
    /// writer.
    pub(crate) async fn start(proxies: Vec<DynConnectTo<Conductor>>, writer: impl Into<Option<TraceWriter>>) -> Self {
        let (mut client, upstream) = pair(1 << 16);
        let (mut agent, downstream) = pair(1 << 16);
        let mut components = ProxiesAndAgent::new(downstream);
        for proxy in proxies {
            components = components.proxies([proxy]);
        }
        let mut conductor = ConductorImpl::new_agent("traced", components);
        if let Some(writer) = writer.into() {
            conductor = conductor.with_trace_writer(writer);
        }
        let chain = conductor.start(upstream).await.expect("a chain");
        client.send(&initialize("first")).await;
        let asked = agent.receive().await;
        assert_eq!(asked["method"], "initialize");
        agent.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "protocolVersion": 1 } })).await;
        assert_eq!(client.receive().await["id"], "first");
        Self { client, agent, chain }
    }

    /// The agent answers the next request; gives it.
    pub(crate) async fn answer(&mut self, member: &str, value: Value) -> Value {
        let asked = self.agent.receive().await;
        self.agent.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], member: value })).await;
        asked
    }

    /// Ends the chain, and with it the recording.
    pub(crate) async fn end(mut self) {
        self.client.close().await;
        let agent = async {
            while self.agent.line().await.is_some() {}
            self.agent.close().await;
        };
        let (closed, ()) = tokio::join!(timeout(SOON, self.chain.closed()), agent);
        closed.expect("the chain ends").expect("a clean end");
    }
}

pub(crate) fn initialize(id: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": { "protocolVersion": 1 } })
}

/// A writer, and what it writes as JSON.
pub(crate) fn recording() -> (TraceWriter, Recording) {
    let (writer, events) = unbounded();
    (TraceWriter::new(writer), Recording(events))
}

pub(crate) struct Recording(UnboundedReceiver<TraceEvent>);

impl Recording {
    /// Every event of a chain that is over.
    pub(crate) async fn all(self) -> Vec<Value> {
        let events: Vec<TraceEvent> = self.0.collect().await;
        events.iter().map(|event| serde_json::to_value(event).expect("JSON")).collect()
    }
}

/// An event in one line, without its time and payload.
pub(crate) fn brief(event: &Value) -> String {
    let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let ends = format!("{} -> {}", text("from"), text("to"));
    match event["type"].as_str() {
        Some("request") => format!("{ends} {}#{}", text("method"), event["id"]),
        Some("response") => {
            let is_error = event["is_error"].as_bool().expect("a flag");
            format!("{ends} {}#{}", if is_error { "error" } else { "result" }, event["id"])
        }
        Some("notification") => format!("{ends} {}", text("method")),
        other => format!("{other:?} {}", event["bytes"]),
    }
}
