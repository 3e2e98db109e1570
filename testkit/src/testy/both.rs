//! Both versions in one agent: the client's initialize selects.

use greenroom::link::Link;
use greenroom::runtime::Credit;
use greenroom::{Agent, Client, ConnectTo, DynConnectTo, FrameReceiver, FrameSender, Inbound, Result};
use serde_json::Value;

/// An agent of version 2 for whoever asks for it or for a later one, of version 1 for everybody else.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByVersion;

pub(super) fn by_version() -> ByVersion {
    ByVersion
}

impl ConnectTo<Client> for ByVersion {
    async fn connect_to(self, client: impl ConnectTo<Agent>) -> Result<()> {
        let (outside, mut from_client, to_client) = Link::frames();
        let inside = async move {
            let (first, agent) = select(&mut from_client).await;
            let (inside, from_agent, to_agent) = Link::frames();
            let pumps = async {
                if pass(first, &to_agent) {
                    pump(from_client, to_agent).await;
                }
            };
            let (served, (), ()) = tokio::join!(agent.connect_to(inside), pumps, pump(from_agent, to_client));
            served
        };
        let (connected, served) = tokio::join!(client.connect_to(outside), inside);
        connected.and(served)
    }
}

/// Waits for what decides the version. What needs no answer decides nothing and is left out.
async fn select(client: &mut FrameReceiver) -> (Inbound, DynConnectTo<Client>) {
    loop {
        let item = client.recv().await;
        let second = match &item {
            // A notification or a response.
            Inbound::Frame(frame, _) if frame.envelope().id.is_present() == frame.method().is_empty() => continue,
            Inbound::Frame(frame, _) => {
                frame.method() == "initialize"
                    && serde_json::from_str::<Value>(frame.part(frame.envelope().params))
                        .is_ok_and(|params| params["protocolVersion"].as_u64().is_some_and(|version| version >= 2))
            }
            Inbound::Eof(_) => false,
        };
        let agent = if second { DynConnectTo::new(super::agent_v2()) } else { DynConnectTo::new(super::agent_v1()) };
        return (item, agent);
    }
}

async fn pump(mut from: FrameReceiver, to: FrameSender) {
    while pass(from.recv().await, &to) {}
}

/// Whether more may come. The sender, when it is dropped, ends the other side.
fn pass(item: Inbound, to: &FrameSender) -> bool {
    match item {
        Inbound::Frame(frame, permit) => {
            to.send(frame, permit.unwrap_or_else(|| Credit::new(0).take(0)));
            true
        }
        Inbound::Eof(_) => false,
    }
}
