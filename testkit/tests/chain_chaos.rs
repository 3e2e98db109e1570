//! The actors of a chain die all the time, and neither the client nor the agent notices.

use std::sync::Arc;
use std::time::Duration;

use greenroom::link::Link;
use greenroom::runtime::{Node, RestartPolicy};
use greenroom::{
    Agent, Client, ConnectTo, ConnectionOptions, ConnectionTo, HasPeer, Responder, Result, Role, UntypedMessage,
    on_receive_notification, on_receive_request,
};
use greenroom_conductor::trace::TraceEvent;
use greenroom_conductor::{ConductorImpl, ProxiesAndAgent, RunningChain};
use greenroom_testkit::chaos::{FaultKind, Flavour, Ledger, Monkey, Report};
use greenroom_testkit::pass_through;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

/// Messages of each side.
const MESSAGES: usize = 1_000;

/// Requests of one side that may be under way at once.
const WINDOW: u32 = 32;

/// How the client reaches the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By value.
    InProcess,
    /// Through a narrow pipe.
    Bytes,
}

fn options() -> ConnectionOptions {
    let mut options = ConnectionOptions::default();
    options.restart = RestartPolicy { deaths: usize::MAX, window: Duration::from_micros(1) };
    // Who is not there cannot be attacked.
    options.passivate_after = Duration::MAX;
    options
}

/// One direction: sends numbered messages, two thirds of them requests, and waits for every answer.
async fn produce<C: Role + HasPeer<C>>(cx: ConnectionTo<C>, ledger: Arc<Ledger>) -> Result<()> {
    let window = Arc::new(Semaphore::new(WINDOW as usize));
    for turn in 0..MESSAGES {
        let is_request = turn % 3 != 0;
        let number = ledger.sending(is_request);
        let message = |method| UntypedMessage::new(method, json!({ "n": number }));
        if !is_request {
            cx.send_notification(message("_note")?)?;
            continue;
        }
        let place = window.clone().acquire_owned().await.expect("never closed");
        let request = cx.send_request(message("_ask")?).block_task();
        let ledger = ledger.clone();
        tokio::spawn(async move {
            ledger.settled(number, &request.await);
            drop(place);
        });
    }
    drop(window.acquire_many(WINDOW).await.expect("never closed"));
    Ok(())
}

fn number(message: &UntypedMessage) -> u64 {
    message.params["n"].as_u64().expect("a number")
}

/// Answers, and sends as much itself once it is asked to.
fn agent(arriving: &Arc<Ledger>, sending: &Arc<Ledger>) -> impl ConnectTo<Client> {
    let (requests, notes, sending) = (arriving.clone(), arriving.clone(), sending.clone());
    Agent
        .builder()
        .on_receive_request(
            async move |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
                match request.method.as_str() {
                    "initialize" => return responder.respond(json!({ "protocolVersion": 1 })),
                    "_begin" => {
                        let ledger = sending.clone();
                        return cx.clone().spawn(async move {
                            produce(cx, ledger).await?;
                            responder.respond(json!("done"))
                        });
                    }
                    _ => {}
                }
                requests.arrived(number(&request));
                tokio::task::yield_now().await;
                responder.respond(request.params)
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, _cx| {
                notes.arrived(number(&note));
                Ok(())
            },
            on_receive_notification!(),
        )
}

/// Everything that has nothing below it: what may die without ending a connection.
fn leaves(trees: &[Arc<Node>]) -> Vec<Arc<Node>> {
    trees.iter().flat_map(Node::flatten).filter(|node| node.children().is_empty()).collect()
}

/// A link to the chain, which is told when it runs.
async fn reach(
    way: Way,
    chain: ConductorImpl<Agent>,
    tell: oneshot::Sender<Arc<Node>>,
) -> (Link, Option<RunningChain>) {
    match way {
        Way::InProcess => {
            let link = Link::component(|link| async move {
                let chain = chain.start(link).await?;
                let _ = tell.send(chain.tree());
                chain.closed().await
            });
            (link, None)
        }
        Way::Bytes => {
            let (ours, theirs) = tokio::io::duplex(700);
            let (reader, writer) = tokio::io::split(theirs);
            let chain = chain.start(Link::bytes(reader, writer)).await.expect("a chain");
            let _ = tell.send(chain.tree());
            let (reader, writer) = tokio::io::split(ours);
            (Link::bytes(reader, writer), Some(chain))
        }
    }
}

async fn run(way: Way, proxies: usize, seed: u64) -> Report {
    let before = Handle::current().metrics().num_alive_tasks();
    let to_agent = Arc::new(Ledger::new("client to agent"));
    let to_client = Arc::new(Ledger::new("agent to client"));
    let components = ProxiesAndAgent::new(agent(&to_agent, &to_client)).proxies((0..proxies).map(|_| pass_through()));
    let (writer, recorded) = futures::channel::mpsc::unbounded();
    let chain = ConductorImpl::new_agent("chaos", components).options(options()).trace_to(writer);
    let (tell, told) = oneshot::channel();
    let (link, chain) = reach(way, chain, tell).await;
    let (requests, notes) = (to_client.clone(), to_client.clone());
    let client = Client
        .builder()
        .options(options())
        .on_receive_request(
            async move |request: UntypedMessage, responder: Responder<Value>, _cx| {
                requests.arrived(number(&request));
                tokio::task::yield_now().await;
                responder.respond(request.params)
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, _cx| {
                notes.arrived(number(&note));
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_with(link, async |cx: ConnectionTo<Agent>| {
            let tree = told.await.expect("the chain starts");
            let initialize = UntypedMessage::new("initialize", json!({ "protocolVersion": 1 }))?;
            cx.send_request(initialize).block_task().await?;
            let trees = [cx.tree(), tree];
            let attack = Monkey::new(seed).pace(8).attack(leaves(&trees));
            let theirs = cx.send_request(UntypedMessage::new("_begin", Value::Null)?).block_task();
            let ours = produce(cx.clone(), to_agent.clone());
            let flow = async {
                let (ours, theirs) = tokio::join!(ours, theirs);
                ours?;
                theirs?;
                // Notifications are not answered: the last ones may still be under way.
                while !(to_agent.is_complete() && to_client.is_complete()) {
                    sleep(Duration::from_millis(1)).await;
                }
                Ok::<_, greenroom::Error>(())
            };
            let outcome = timeout(Duration::from_secs(20), flow).await;
            let mut report = attack.stop().await;
            if outcome.is_err() {
                panic!(
                    "hung: {:?} {:?}\n{}\n{}",
                    to_agent.check(),
                    to_client.check(),
                    trees[0].snapshot(),
                    trees[1].snapshot()
                );
            }
            outcome.expect("checked")?;
            report.runs = 1;
            for node in leaves(&trees) {
                report.restarted(node.kind(), u64::from(node.restarts()));
            }
            Ok(report)
        });
    let mut report = timeout(Duration::from_secs(30), client).await.expect("the client ends").expect("no error");
    for ledger in [&to_agent, &to_client] {
        assert_eq!(ledger.check(), Vec::<String>::new());
        assert_eq!(ledger.interrupted(), 0, "no handler was in an actor that was attacked");
        report.messages += ledger.sent();
    }
    if let Some(chain) = chain {
        timeout(Duration::from_secs(5), chain.closed()).await.expect("the chain ends").expect("no error");
    }
    nothing_left(before).await;
    let calls = recorded_calls(recorded).await;
    let sent = to_agent.sent() + to_client.sent();
    assert_eq!(calls, sent * (proxies as u64 + 1), "every message is recorded on every hop");
    report
}

/// The messages of both sides in a recording, which has to be complete.
async fn recorded_calls(mut recorded: futures::channel::mpsc::UnboundedReceiver<TraceEvent>) -> u64 {
    let mut calls = 0;
    while let Some(event) = futures::StreamExt::next(&mut recorded).await {
        let method = match event {
            TraceEvent::Request(request) => request.method,
            TraceEvent::Notification(note) => note.method,
            TraceEvent::Lost(lost) => panic!("{lost:?}"),
            _ => continue,
        };
        calls += u64::from(method == "_ask" || method == "_note");
    }
    calls
}

/// Waits until no task is left that was not there before.
async fn nothing_left(before: usize) {
    let metrics = Handle::current().metrics();
    for _ in 0..1_000 {
        if metrics.num_alive_tasks() <= before {
            return;
        }
        sleep(Duration::from_millis(2)).await;
    }
    panic!("{} tasks are left", metrics.num_alive_tasks() - before);
}

fn campaign(way: Way, actors: &[&str]) {
    let mut report = Report::default();
    for flavour in [Flavour::CurrentThread, Flavour::TwoThreads] {
        for proxies in [0, 1, 3] {
            for seed in 1..=2 {
                eprintln!("{way:?}, {flavour}, {proxies} proxies, seed {seed}");
                let runtime = flavour.runtime();
                let one = async { tokio::spawn(run(way, proxies, seed)).await.expect("a good run") };
                report.add(&runtime.block_on(one));
            }
        }
    }
    eprintln!("{report}");
    for actor in actors {
        assert!(FaultKind::ALL.iter().any(|fault| report.attacks(actor, *fault) > 0), "{actor} was spared");
        assert!(report.restarts(actor) > 0, "{actor} was never started again");
    }
}

#[test]
fn nothing_is_lost_in_a_chain_of_this_process() {
    campaign(
        Way::InProcess,
        &["router", "trace", "reader", "component", "incoming", "dispatch", "outgoing", "pending"],
    );
}

#[test]
fn nothing_is_lost_in_a_chain_behind_a_pipe() {
    campaign(
        Way::Bytes,
        &["router", "trace", "reader", "writer", "component", "incoming", "dispatch", "outgoing", "pending"],
    );
}
