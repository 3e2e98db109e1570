//! The actors between peer and implementation die, and nobody waits for ever.

use std::sync::Arc;
use std::time::Duration;

use greenroom::runtime::{Fault, Node, RestartPolicy};
use greenroom::{Agent, ConnectionOptions};
use greenroom_testkit::scripted::pair;
use serde_json::json;

use super::support::*;

/// Messages each way.
const MESSAGES: usize = 300;

fn options() -> ConnectionOptions {
    let mut options = ConnectionOptions::default();
    options.restart = RestartPolicy { deaths: usize::MAX, window: Duration::from_micros(1) };
    options
}

/// Everything that has nothing below it.
fn leaves(tree: &Arc<Node>) -> Vec<Arc<Node>> {
    tree.flatten().into_iter().filter(|node| node.children().is_empty() && node.cell().is_some()).collect()
}

/// Numbered messages both ways while `break_one` breaks the actors between; all arrive, in order.
async fn traffic(
    tree: &Arc<Node>,
    left: greenroom_testkit::scripted::Local,
    right: greenroom_testkit::scripted::Local,
    break_one: impl Fn(&Node, usize),
) {
    let (mut left, mut right) = (left, right);
    for number in 0..MESSAGES {
        let leaves = leaves(tree);
        assert_eq!(leaves.len(), 4, "two readers and two writers");
        break_one(&leaves[number % leaves.len()], number);
        let line = note("n", json!({ "n": number })).to_string();
        left.write(format!("{line}\n")).await;
        right.write(format!("{line}\n")).await;
        if number % 7 == 0 {
            tokio::task::yield_now().await;
        }
    }
    for number in 0..MESSAGES {
        let line = note("n", json!({ "n": number })).to_string();
        assert_eq!(soon(right.line()).await.as_ref(), Some(&line));
        assert_eq!(soon(left.line()).await.as_ref(), Some(&line));
    }
    let restarts: u32 = leaves(tree).iter().map(|leaf| leaf.restarts()).sum();
    assert!(restarts > 20, "the actors died, {restarts} times");
}

#[tokio::test]
async fn a_router_whose_actors_die_loses_nothing() {
    let (mut v1, link) = pair(1 << 20);
    let router = Agent.protocol_router().with_v1(link).options(options());
    let tree = router.tree();
    let (mut peer, run) = {
        let (peer, link) = pair(1 << 20);
        (peer, tokio::spawn(greenroom::ConnectTo::connect_to(router, link)))
    };
    // Before the selection, too.
    peer.send(&note("ignored", json!({}))).await;
    while leaves(&tree).len() < 2 {
        tokio::task::yield_now().await;
    }
    for leaf in leaves(&tree) {
        assert!(leaf.kill());
    }
    passes(&mut peer, &mut v1, &initialize(1, 1).to_string()).await;
    traffic(&tree, peer, v1, |leaf, number| {
        let _ = match number % 3 {
            0 => leaf.kill(),
            1 => leaf.inject(Fault::PanicInside),
            _ => leaf.stop(),
        };
    })
    .await;
    // Whoever wrote is gone by now: both inputs have ended.
    soon(run).await.expect("no panic").expect("a clean end");
}

#[tokio::test]
async fn the_death_of_a_supervisor_ends_both_sides() {
    for selected in [false, true] {
        for victim in ["peer", "implementation"] {
            if !selected && victim == "implementation" {
                continue;
            }
            let (mut v1, link) = pair(ROOM);
            let router = Agent.protocol_router().with_v1(link);
            let tree = router.tree();
            let (mut peer, run) = serve(router);
            if selected {
                passes(&mut peer, &mut v1, &initialize(1, 1).to_string()).await;
            }
            let side = soon(async {
                loop {
                    let side = tree.children().into_iter().find(|side| side.path().ends_with(victim));
                    if let Some(side) = side.filter(|side| side.cell().is_some()) {
                        break side;
                    }
                    tokio::task::yield_now().await;
                }
            })
            .await;
            assert!(side.kill());
            soon(peer.expect_end()).await;
            soon(v1.expect_end()).await;
            let error = soon(run).await.expect("no panic").expect_err("it died");
            assert_eq!(i32::from(error.code), -32603, "{victim} {selected}");
        }
    }
}

#[cfg(feature = "unstable_protocol_v2")]
mod connectors {
    use greenroom::Client;

    use super::*;

    #[tokio::test]
    async fn a_connector_whose_actors_die_loses_nothing() {
        let ((v2, mut clients), (transport, mut agents)) = (factory(), factory());
        let connector = Client.protocol_connector().with_v2(v2).options(options());
        let tree = connector.tree();
        let run = tokio::spawn(connector.connect_to(transport));
        let mut client = made(&mut clients).await;
        client.send(&initialize("i", 2)).await;
        let mut agent = made(&mut agents).await;
        assert_eq!(soon(agent.receive()).await["id"], "i");
        for leaf in leaves(&tree) {
            assert!(leaf.kill());
        }
        passes(&mut agent, &mut client, &result("i", json!({ "protocolVersion": 2 })).to_string()).await;
        traffic(&tree, client, agent, |leaf, _| assert!(leaf.kill() || leaf.cell().is_some())).await;
        soon(run).await.expect("no panic").expect("a clean end");
    }

    #[tokio::test]
    async fn the_death_of_a_supervisor_ends_the_attempt() {
        for victim in ["client", "agent"] {
            let ((v2, mut clients), (transport, mut agents)) = (factory(), factory());
            let (v1, _never) = factory();
            let connector = Client.protocol_connector().with_v2(v2).with_v1(v1);
            let tree = connector.tree();
            let run = tokio::spawn(connector.connect_to(transport));
            let mut client = made(&mut clients).await;
            client.send(&initialize("i", 2)).await;
            let mut agent = made(&mut agents).await;
            assert_eq!(soon(agent.receive()).await["id"], "i");
            let side = tree.children().into_iter().find(|side| side.path().ends_with(victim)).expect("a side");
            assert!(side.kill());
            soon(client.expect_end()).await;
            soon(agent.expect_end()).await;
            assert!(soon(run).await.expect("no panic").is_err(), "{victim}");
        }
    }
}
