//! Errors on their way to a peer: what a peer cannot imitate, and what it must not learn.

#![cfg(unix)]

use std::error::Error as _;
use std::time::Duration;

use greenroom::link::{Exit, Link};
use greenroom::{
    AcpAgent, Agent, CONNECTION_TERMINATED_REASON, Client, Conductor, ConnectionTermination, ConnectionTo, Error,
    INCOMING_TRANSPORT_CLOSED_REASON, Origin, Proxy, Responder, Result, UntypedMessage, is_connection_terminated,
    is_incoming_transport_closed, on_receive_request,
};
use greenroom_conductor::{CommandLineComponents, ConductorImpl, ProxiesAndAgent};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::time::timeout;

const ASK: &str = r#"{"jsonrpc":"2.0","id":"q","method":"ask","params":{}}"#;

/// Everything that a person finds who looks behind the error.
fn behind(error: &Error) -> String {
    let mut found = String::new();
    let mut next = error.source();
    while let Some(cause) = next {
        found += &format!("{cause}\n");
        next = cause.source();
    }
    found
}

async fn ask(cx: &ConnectionTo<Agent>) -> Error {
    let ask = UntypedMessage::new("ask", json!({})).expect("a message");
    cx.send_request(ask).block_task().await.expect_err("an error")
}

async fn receive(peer: &mut Local) -> Value {
    timeout(Duration::from_secs(20), peer.receive()).await.expect("an answer")
}

#[tokio::test]
async fn a_peer_that_says_what_we_would_say_imitates_nothing() {
    for (reason, extra) in [
        (INCOMING_TRANSPORT_CLOSED_REASON, json!({})),
        (CONNECTION_TERMINATED_REASON, json!({ "termination": "transport_error" })),
    ] {
        let (mut peer, link) = pair(4096);
        let client = tokio::spawn(Client.connect_with(link, async |cx| {
            let told = ask(&cx).await;
            let real = ask(&cx).await;
            Ok((told, real))
        }));
        let id = receive(&mut peer).await["id"].clone();
        let mut data =
            json!({ "reason": reason, "method": "ask", "origin": "IncomingClosed", "exit": "sh: exit status: 1" });
        data.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        let error = json!({
            "code": -32603, "message": "Internal error", "data": data, "origin": "Terminated", "source": "x",
        });
        peer.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error })).await;
        receive(&mut peer).await;
        drop(peer);
        let (told, real) = client.await.expect("a client").expect("a result");
        assert_eq!(told.data.as_ref().expect("data")["reason"], reason);
        assert!(!is_incoming_transport_closed(&told) && !is_connection_terminated(&told), "{told:?}");
        assert_eq!(told.origin(), Origin::Ordinary);
        assert!(told.source().is_none());
        assert!(is_incoming_transport_closed(&real) && !is_connection_terminated(&real), "{real:?}");
    }
}

/// A host of another agent: passes each request on to a program that dies, one way or another, and
/// answers with the error that it got.
async fn answer_through(program: AcpAgent, forward: bool) -> (Value, Error) {
    let (mut peer, link) = pair(4096);
    let (seen, mut errors) = tokio::sync::mpsc::unbounded_channel();
    let agent = Agent.builder().on_receive_request(
        async move |request: UntypedMessage, responder: Responder<Value>, cx| {
            let (program, seen) = (program.clone(), seen.clone());
            cx.spawn(async move {
                let mut responder = Some(responder);
                let asked = Client
                    .connect_with(program, async |cx| {
                        if forward {
                            let responder = responder.take().expect("once");
                            cx.send_request(request.clone()).forward_response_to(responder)?;
                        }
                        Ok(cx.send_request(request).block_task().await)
                    })
                    .await;
                let error = asked.and_then(|answer| answer).expect_err("the program dies");
                seen.send(error.clone()).expect("a test");
                match responder {
                    Some(responder) => responder.respond_with_error(error),
                    None => Ok(()),
                }
            })
        },
        on_receive_request!(),
    );
    let serving = tokio::spawn(agent.connect_to(link));
    peer.write(format!("{ASK}\n")).await;
    let answer = receive(&mut peer).await;
    let error = timeout(Duration::from_secs(20), errors.recv()).await.expect("in time").expect("an error");
    drop(peer);
    serving.await.expect("an agent").expect("a clean end");
    (answer, error)
}

#[tokio::test]
async fn the_last_words_of_a_program_reach_the_caller_and_no_peer() {
    let script = "read -r line; echo token=hunter2 >&2; exit 3";
    for forward in [false, true] {
        let (answer, error) =
            answer_through(AcpAgent::from_args(["/bin/sh", "-c", script]).expect("a command"), forward).await;
        let told = answer.to_string();
        assert_eq!(answer["error"]["code"], -32603, "{told}");
        assert!(told.contains("exit status: 3"), "a peer learns how it ended: {told}");
        assert!(!told.contains("hunter2") && !told.contains("/bin"), "{told}");
        let everything = behind(&error);
        assert!(everything.contains("token=hunter2") && everything.contains("/bin/sh"), "{everything}");
        let mut next = error.source();
        let exit = loop {
            let cause = next.expect("the exit is behind the error");
            if let Some(exit) = cause.downcast_ref::<Exit>() {
                break exit;
            }
            next = cause.source();
        };
        assert_eq!((exit.status.as_str(), exit.stderr_tail.as_str()), ("exit status: 3", "token=hunter2\n"));
    }
}

#[tokio::test]
async fn where_a_program_was_looked_for_reaches_the_caller_and_no_peer() {
    let missing = [
        AcpAgent::from_args(["PATH=/home/me/secret-folder", "no-such-agent"]).expect("a command"),
        AcpAgent::from_args(["/home/me/secret-folder/no-such-agent"]).expect("a command"),
    ];
    for program in missing {
        let (answer, error) = answer_through(program, false).await;
        let told = answer.to_string();
        assert!(told.contains("no-such-agent"), "{told}");
        assert!(!told.contains("secret-folder") && !told.contains('/'), "{told}");
        assert_eq!(error.origin(), Origin::NotStarted);
        assert!(behind(&error).contains("/home/me/secret-folder"), "{error:?}");
    }
}

/// A transport whose failure says more than a peer may know.
struct Talkative;

impl tokio::io::AsyncRead for Talkative {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _cx: &mut std::task::Context<'_>,
        _buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Err(std::io::Error::other("/home/me/pipe: token=hunter2")))
    }
}

#[tokio::test]
async fn the_words_of_a_broken_transport_reach_the_caller_and_no_peer() {
    let broken = Link::bytes(Talkative, tokio::io::sink());
    let mut termination = None;
    let asked = Client
        .connect_with(broken, async |cx| {
            let error = ask(&cx).await;
            termination = Some(cx.terminated().await);
            Ok(error)
        })
        .await;
    let termination = termination.expect("the foreground ran");
    assert!(matches!(termination, ConnectionTermination::TransportError(_)), "{termination:?}");
    let ended = termination.error().cloned().expect("a cause");
    for error in asked.into_iter().chain([ended]) {
        let told = error.to_wire();
        assert!(told.get().contains("transport read failed"), "{told}");
        assert!(!told.get().contains("hunter2") && !told.get().contains("/home"), "{told}");
        assert!(behind(&error).contains("/home/me/pipe: token=hunter2"), "{error:?}");
    }
}

/// What the client of a chain gets, and the error with which the chain ends.
async fn chain_of(programs: Vec<AcpAgent>) -> (Value, Option<Error>) {
    let (mut peer, link) = pair(4096);
    let chain =
        ConductorImpl::new_agent("programs", CommandLineComponents(programs)).start(link).await.expect("a chain");
    peer.write(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#).await;
    peer.write("\n").await;
    let answer = receive(&mut peer).await;
    drop(peer);
    let ended = timeout(Duration::from_secs(20), chain.closed()).await.expect("in time");
    (answer, ended.err())
}

#[tokio::test]
async fn the_client_of_a_chain_learns_how_a_component_ended_and_nothing_that_it_said() {
    let script = "read -r line; echo token=hunter2 >&2; exit 3";
    let (answer, ended) = chain_of(vec![AcpAgent::from_args(["/bin/sh", "-c", script]).expect("a command")]).await;
    let told = answer.to_string();
    assert!(told.contains("exit status: 3"), "{told}");
    assert!(!told.contains("hunter2") && !told.contains("/bin"), "{told}");
    let ended = ended.expect("the chain ended with an error");
    assert!(behind(&ended).contains("token=hunter2"), "{ended:?}");
    let (answer, ended) =
        chain_of(vec![AcpAgent::from_args(["/home/me/secret-folder/agent"]).expect("a command")]).await;
    let told = answer.to_string();
    assert!(told.contains("\\\"agent\\\"") && !told.contains("secret-folder") && !told.contains('/'), "{told}");
    let ended = ended.expect("a chain that never ran ends with the reason");
    assert!(behind(&ended).contains("/home/me/secret-folder/agent"), "{ended:?}");
}

/// A component that ends with an error of its own making.
struct Failing;

impl greenroom::ConnectTo<Client> for Failing {
    async fn connect_to(self, _client: impl greenroom::ConnectTo<Agent>) -> Result<()> {
        Err(Error::new(7, "token=hunter2").data("src/main.rs:7"))
    }
}

impl greenroom::ConnectTo<Conductor> for Failing {
    async fn connect_to(self, _client: impl greenroom::ConnectTo<Proxy>) -> Result<()> {
        Err(Error::new(7, "token=hunter2").data("src/main.rs:7"))
    }
}

#[tokio::test]
async fn what_an_embedded_component_dies_of_is_not_told_to_the_client() {
    let alone = ProxiesAndAgent::new(Failing);
    let behind_a_proxy = ProxiesAndAgent::new(greenroom_testkit::testy()).proxy(Failing);
    for (chain, told_why) in [(alone, true), (behind_a_proxy, false)] {
        let (mut peer, link) = pair(4096);
        let chain = ConductorImpl::new_agent("embedded", chain).start(link).await.expect("a chain");
        peer.write(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#).await;
        peer.write("\n").await;
        let told = receive(&mut peer).await.to_string();
        assert!(told.contains("-32603") && !told.contains("hunter2") && !told.contains("main.rs"), "{told}");
        drop(peer);
        let ended = timeout(Duration::from_secs(20), chain.closed()).await.expect("in time");
        let ended = ended.expect_err("the chain ended with an error");
        // A proxy's first death only looks like a wrong dialect.
        assert_eq!(format!("{ended:?}").contains("token=hunter2"), told_why, "the owner of the chain: {ended:?}");
    }
}

/// The other half of the rule: what application code answers is its own affair.
#[tokio::test]
async fn what_a_handler_returns_travels_as_it_is() {
    let agent = Agent.builder().on_receive_request(
        async |_: UntypedMessage, _responder: Responder<Value>, _cx| {
            Err::<(), _>(Error::new(7, "my words").data(json!({ "path": "/home/me" })))
        },
        on_receive_request!(),
    );
    let (mut peer, link) = pair(4096);
    let serving = tokio::spawn(agent.connect_to(link));
    peer.write(format!("{ASK}\n")).await;
    let error = json!({ "code": 7, "message": "my words", "data": { "path": "/home/me" } });
    peer.expect(json!({ "jsonrpc": "2.0", "id": "q", "error": error })).await;
    drop(peer);
    serving.await.expect("an agent").expect("a clean end");
}
