//! Every way in which a chain ends: whoever waits is told, and nothing is left.

use std::time::Duration;

use greenroom::link::Link;
use greenroom::schema::v1::InitializeRequest;
use greenroom::{
    Agent, Client, ConnectTo, ConnectionTo, DynConnectTo, Error, Responder, Result, UntypedMessage,
    on_receive_notification, on_receive_request,
};
use greenroom_conductor::{ConductorImpl, ProxiesAndAgent, RunningChain};
use greenroom_testkit::chaos::Parent;
use greenroom_testkit::scripted::{Local, pair};
use greenroom_testkit::{pass_through, testy};
use ractor::{Actor, ActorStatus};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

/// What no end takes longer than.
const SOON: Duration = Duration::from_secs(2);

fn ask(id: u64, method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} })
}

fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": 1 } })
}

/// Answers, sooner, later or never, as the method says.
fn agent() -> impl ConnectTo<Client> {
    Agent.builder().on_receive_request(
        async |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| match request
            .method
            .as_str()
        {
            "initialize" => responder.respond(json!({ "protocolVersion": 1 })),
            "_late" => cx.spawn(async move {
                sleep(Duration::from_secs(3)).await;
                responder.respond(json!("late"))
            }),
            "_never" => cx.spawn(async move {
                std::future::pending::<()>().await;
                responder.respond(Value::Null)
            }),
            _ => responder.respond(json!("at once")),
        },
        on_receive_request!(),
    )
}

/// A chain of two proxies that is initialised and works on a request without an end.
async fn busy() -> (Local, RunningChain) {
    let (mut peer, link) = pair(4096);
    let components = ProxiesAndAgent::new(agent()).proxy(pass_through()).proxy(pass_through());
    let chain = ConductorImpl::new_agent("ends", components).start(link).await.expect("a chain");
    peer.send(&initialize()).await;
    assert_eq!(peer.receive().await["result"]["protocolVersion"], 1);
    peer.send(&ask(1, "_never")).await;
    peer.send(&ask(2, "_now")).await;
    peer.expect(json!({ "jsonrpc": "2.0", "id": 2, "result": "at once" })).await;
    (peer, chain)
}

/// The answers until the stream ends, by id.
async fn rest(peer: &mut Local) -> Vec<Value> {
    let mut all = Vec::new();
    while let Some(line) = timeout(Duration::from_secs(20), peer.line()).await.expect("an end") {
        all.push(serde_json::from_str(&line).expect("JSON"));
    }
    all
}

fn is_error(answer: &Value, id: u64) -> bool {
    answer["id"] == id && answer["error"]["code"] == -32603
}

/// Waits until no task is left but this test.
async fn nothing_left() {
    let metrics = Handle::current().metrics();
    let gone = async {
        while metrics.num_alive_tasks() > 0 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    if timeout(SOON, gone).await.is_err() {
        panic!("{} tasks are left", metrics.num_alive_tasks());
    }
}

async fn closed(chain: &RunningChain) -> Result<()> {
    timeout(Duration::from_secs(10), chain.closed()).await.expect("the chain ends")
}

#[tokio::test(start_paused = true)]
async fn the_chain_is_killed() {
    let (mut peer, chain) = busy().await;
    assert!(chain.tree().kill());
    assert_eq!(rest(&mut peer).await, Vec::<Value>::new());
    closed(&chain).await.expect_err("it was no clean end");
    nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_component_is_killed() {
    for index in 0..3 {
        let (mut peer, chain) = busy().await;
        let tree = chain.tree();
        let name = format!("/component-{index}");
        let component = tree.children().into_iter().find(|node| node.path().ends_with(&name)).expect("a component");
        assert!(component.kill());
        let answers = rest(&mut peer).await;
        assert!(matches!(&answers[..], [answer] if is_error(answer, 1)), "{answers:?}");
        closed(&chain).await.expect_err("a component was killed");
        nothing_left().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_handle_is_dropped() {
    let (mut peer, chain) = busy().await;
    drop(chain);
    rest(&mut peer).await;
    nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn the_future_is_dropped() {
    let (mut peer, link) = pair(4096);
    let components = ProxiesAndAgent::new(agent()).proxy(pass_through());
    let running = tokio::spawn(ConductorImpl::new_agent("ends", components).run(link));
    peer.send(&initialize()).await;
    peer.receive().await;
    running.abort();
    rest(&mut peer).await;
    nothing_left().await;
}

/// The actor above does not look at events for a while: the end does not wait for it.
#[tokio::test(start_paused = true)]
async fn the_actor_above_is_busy() {
    struct Busy;
    #[cfg_attr(feature = "async-trait", ractor::async_trait)]
    impl Actor for Busy {
        type Msg = ();
        type State = ();
        type Arguments = ();
        async fn pre_start(
            &self,
            _me: ractor::ActorRef<()>,
            (): (),
        ) -> std::result::Result<(), ractor::ActorProcessingErr> {
            Ok(())
        }
        async fn handle(
            &self,
            _me: ractor::ActorRef<()>,
            (): (),
            _state: &mut (),
        ) -> std::result::Result<(), ractor::ActorProcessingErr> {
            sleep(Duration::from_secs(3600)).await;
            Ok(())
        }
    }
    let (parent, _done) = Actor::spawn(None, Busy, ()).await.expect("an actor");
    let (_peer, link) = pair(4096);
    let conductor = ConductorImpl::new_agent("ends", ProxiesAndAgent::new(agent()));
    let chain = conductor.spawn_linked(link, parent.get_cell()).await.expect("a chain");
    parent.cast(()).expect("it runs");
    sleep(Duration::from_millis(1)).await;
    chain.actor().kill();
    closed(&chain).await.expect_err("it was no clean end");
    parent.kill();
    nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn the_actor_above_dies() {
    let (parent, _done) = Actor::spawn(None, Parent, ()).await.expect("an actor");
    let (mut peer, link) = pair(4096);
    let conductor = ConductorImpl::new_agent("ends", ProxiesAndAgent::new(agent()).proxy(pass_through()));
    let chain = conductor.spawn_linked(link, parent.get_cell()).await.expect("a chain");
    peer.send(&initialize()).await;
    peer.receive().await;
    parent.kill();
    rest(&mut peer).await;
    closed(&chain).await.expect_err("it was no clean end");
    nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_closes_gets_late_answers() {
    let (mut peer, link) = pair(4096);
    let components = ProxiesAndAgent::new(agent()).proxy(pass_through());
    let chain = ConductorImpl::new_agent("ends", components).start(link).await.expect("a chain");
    for message in [initialize(), ask(1, "_late"), ask(2, "_late"), ask(3, "_now")] {
        peer.send(&message).await;
    }
    peer.close().await;
    let mut ids: Vec<_> = rest(&mut peer).await.into_iter().filter(|answer| answer["result"] != Value::Null).collect();
    ids.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(ids.iter().map(|answer| answer["id"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3]);
    closed(&chain).await.expect("a clean end");
    nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_never_answers_has_five_seconds() {
    let (mut peer, chain) = busy().await;
    let begin = Instant::now();
    peer.close().await;
    let answers = rest(&mut peer).await;
    assert!(matches!(&answers[..], [answer] if is_error(answer, 1)), "{answers:?}");
    let took = begin.elapsed();
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(7), "{took:?}");
    closed(&chain).await.expect("an end that the client asked for");
    nothing_left().await;
}

/// Components that take this long to be chosen.
fn slow(time: Duration) -> ConductorImpl<Agent> {
    ConductorImpl::new_agent("slow", move |request: InitializeRequest| async move {
        sleep(time).await;
        Ok((request, vec![DynConnectTo::new(pass_through())], DynConnectTo::new(agent())))
    })
}

#[tokio::test(start_paused = true)]
async fn a_client_that_closes_before_the_components_run_is_answered() {
    let (mut peer, link) = pair(4096);
    let chain = slow(Duration::from_secs(2)).start(link).await.expect("a chain");
    peer.send(&initialize()).await;
    peer.send(&ask(1, "_now")).await;
    peer.close().await;
    let answers = rest(&mut peer).await;
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert!(answers.iter().all(|answer| answer["result"] != Value::Null), "{answers:?}");
    closed(&chain).await.expect("a clean end");
    nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn components_that_never_start_are_not_waited_for() {
    let (mut peer, link) = pair(4096);
    let chain = slow(Duration::from_secs(3600)).start(link).await.expect("a chain");
    peer.send(&initialize()).await;
    peer.send(&ask(1, "_now")).await;
    peer.close().await;
    let answers = rest(&mut peer).await;
    assert!(matches!(&answers[..], [a, b] if is_error(a, 0) && is_error(b, 1)), "{answers:?}");
    closed(&chain).await.expect("an end that the client asked for");
    nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_ends_in_the_middle() {
    let (mut peer, link) = pair(4096);
    let (mut far, near) = pair(4096);
    let components = ProxiesAndAgent::new(near).proxy(pass_through());
    let chain = ConductorImpl::new_agent("ends", components).start(link).await.expect("a chain");
    peer.send(&initialize()).await;
    let id = far.receive().await["id"].clone();
    far.send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "protocolVersion": 1 } })).await;
    peer.receive().await;
    peer.send(&ask(1, "_a")).await;
    peer.send(&ask(2, "_b")).await;
    let id = far.receive().await["id"].clone();
    far.send(&json!({ "jsonrpc": "2.0", "id": id, "result": "in time" })).await;
    far.close().await;
    let answers = rest(&mut peer).await;
    let [first, second] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(*first, json!({ "jsonrpc": "2.0", "id": 1, "result": "in time" }));
    assert!(is_error(second, 2), "{second}");
    closed(&chain).await.expect_err("an agent does not end by itself");
    nothing_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_component_that_does_not_start_is_the_answer_to_everything() {
    let (mut peer, link) = pair(4096);
    let broken = Link::opening(async { Err(Error::internal_error().data("no such thing")) });
    let components = ProxiesAndAgent::new(testy()).proxy(pass_through()).proxy(broken);
    let chain = ConductorImpl::new_agent("ends", components).start(link).await.expect("a chain");
    peer.send(&initialize()).await;
    let refusal = peer.receive().await;
    assert_eq!(refusal["error"]["data"], "no such thing");
    for id in 1..3 {
        peer.send(&ask(id, "_now")).await;
        let again = peer.receive().await;
        assert_eq!((&again["id"], &again["error"]), (&json!(id), &refusal["error"]));
    }
    let alive: Vec<_> = chain.tree().flatten().into_iter().filter_map(|node| node.cell()).collect();
    assert!(alive.iter().any(|cell| cell.get_status() == ActorStatus::Running));
    peer.close().await;
    peer.expect_end().await;
    // The client is told what a peer may know; whoever runs the chain gets the error itself.
    assert_eq!(closed(&chain).await.expect_err("no clean end").data, Some("no such thing".into()));
    nothing_left().await;
}

/// The end of a component is not forgotten because it comes before the others run.
#[tokio::test(start_paused = true)]
async fn a_component_ends_while_another_starts() {
    let (mut peer, link) = pair(4096);
    let short = Link::component(|_link| async { Ok(()) });
    let slow = Link::opening(async {
        sleep(Duration::from_secs(1)).await;
        Ok(agent().into_link())
    });
    let components = ProxiesAndAgent::new(slow).proxy(short);
    let conductor = ConductorImpl::new_agent("ends", components);
    let chain = conductor.dialects(vec![greenroom_conductor::ProxyDialect::Legacy]).start(link).await.expect("a chain");
    peer.send(&initialize()).await;
    let answers = rest(&mut peer).await;
    assert!(matches!(&answers[..], [answer] if is_error(answer, 0)), "{answers:?}");
    closed(&chain).await.expect_err("a component ended");
    nothing_left().await;
}

/// A proxy that closes when it is asked for its dialect, and exists once.
#[tokio::test(start_paused = true)]
async fn a_proxy_that_cannot_be_started_anew_ends_the_chain() {
    let (mut peer, link) = pair(4096);
    let (mut far, near) = pair(4096);
    let components = ProxiesAndAgent::new(agent()).proxy(near);
    let chain = ConductorImpl::new_agent("ends", components).start(link).await.expect("a chain");
    peer.send(&initialize()).await;
    assert_eq!(far.receive().await["method"], "_proxy/initialize");
    drop(far);
    let answers = rest(&mut peer).await;
    let [answer] = &answers[..] else { panic!("{answers:?}") };
    assert!(is_error(answer, 0) && answer.to_string().contains("ProxyDialect"), "{answer}");
    closed(&chain).await.expect_err("a component ended");
    nothing_left().await;
}

/// What a client says right before it closes passes every proxy and reaches the agent.
#[tokio::test(start_paused = true)]
async fn last_words_arrive() {
    for proxies in [0, 1, 3] {
        let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let agent = Agent
            .builder()
            .on_receive_request(
                async |_: UntypedMessage, responder: Responder<Value>, _cx| {
                    responder.respond(json!({ "protocolVersion": 1 }))
                },
                on_receive_request!(),
            )
            .on_receive_notification(
                async move |note: UntypedMessage, _cx| {
                    told.send(note.params["n"].as_u64()).expect("the test listens");
                    Ok(())
                },
                on_receive_notification!(),
            );
        let (mut peer, link) = pair(1 << 16);
        let components = ProxiesAndAgent::new(agent).proxies((0..proxies).map(|_| pass_through()));
        let chain = ConductorImpl::new_agent("ends", components).start(link).await.expect("a chain");
        peer.send(&initialize()).await;
        peer.receive().await;
        for n in 0..200 {
            peer.send(&json!({ "jsonrpc": "2.0", "method": "_note", "params": { "n": n } })).await;
        }
        peer.close().await;
        rest(&mut peer).await;
        closed(&chain).await.expect("a clean end");
        for n in 0..200 {
            assert_eq!(heard.try_recv(), Ok(Some(n)), "{proxies} proxies");
        }
        nothing_left().await;
    }
}

/// An agent that neither reads nor ends is not waited for without an end.
#[tokio::test(start_paused = true)]
async fn a_component_that_does_not_read_is_killed() {
    let (mut peer, link) = pair(1 << 16);
    let (mut far, near) = pair(64);
    let chain = ConductorImpl::new_agent("ends", ProxiesAndAgent::new(near)).start(link).await.expect("a chain");
    peer.send(&initialize()).await;
    let id = far.receive().await["id"].clone();
    far.send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "protocolVersion": 1 } })).await;
    peer.receive().await;
    for id in 1..10 {
        peer.send(&ask(id, "_unread")).await;
    }
    peer.close().await;
    let begin = Instant::now();
    let answers = rest(&mut peer).await;
    assert_eq!(answers.len(), 9, "{answers:?}");
    assert!((1..10).all(|id| answers.iter().any(|answer| is_error(answer, id))), "{answers:?}");
    closed(&chain).await.expect("an end that the client asked for");
    assert!(begin.elapsed() < Duration::from_secs(16), "{:?}", begin.elapsed());
    drop(far);
    nothing_left().await;
}
