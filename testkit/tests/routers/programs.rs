//! A router on the stdin and stdout of a process, and a process behind a router.

use std::process::Stdio;

use greenroom::{AcpAgent, Agent, ProxyVersions};
use greenroom_conductor::{ConductorImpl, ProxiesAndAgent};
use greenroom_testkit::pass_through;
use greenroom_testkit::scripted::{Scripted, pair};
use serde_json::json;

use super::support::*;

const PROGRAM: &str = env!("CARGO_BIN_EXE_router-agent");

/// A process and its two pipes.
struct Process {
    child: tokio::process::Child,
    pipes: Scripted<tokio::process::ChildStdout, tokio::process::ChildStdin>,
}

impl Process {
    fn start(options: &[&str]) -> Self {
        let mut command = tokio::process::Command::new(PROGRAM);
        command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the program");
        let (stdin, stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        Self { child, pipes: Scripted::new(stdout, stdin) }
    }
}

#[tokio::test]
async fn a_rejection_is_on_stdout_before_the_process_ends() {
    let mut process = Process::start(&["--only-v2", "--close"]);
    process.pipes.send(&initialize("i", 1)).await;
    let answer = soon(process.pipes.receive()).await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("i"), &json!(-32022)));
    soon(process.pipes.expect_end()).await;
    assert!(soon(process.child.wait()).await.expect("a status").success());
}

#[tokio::test]
async fn a_rejected_client_may_try_again_on_the_same_pipes() {
    let mut process = Process::start(&["--only-v2"]);
    process.pipes.send(&initialize(1, 1)).await;
    assert_eq!(soon(process.pipes.receive()).await["error"]["code"], -32022);
    process.pipes.send(&request(2, "session/new", json!({}))).await;
    assert_eq!(soon(process.pipes.receive()).await["error"]["code"], -32600);
    process.pipes.send(&initialize(3, 2)).await;
    let answer = soon(process.pipes.receive()).await;
    if cfg!(feature = "unstable_protocol_v2") {
        assert_eq!(answer["result"]["protocolVersion"], 2);
    } else {
        assert_eq!(answer["error"]["data"], json!({ "requested": 2, "supported": [] }));
    }
    process.pipes.close().await;
    soon(process.pipes.expect_end()).await;
    assert!(soon(process.child.wait()).await.expect("a status").success());
}

#[tokio::test]
async fn a_program_can_be_an_implementation() {
    let agent = AcpAgent::from_args([env!("CARGO_BIN_EXE_testy")]).expect("a command");
    let (mut peer, run) = serve(Agent.protocol_router().with_v1(agent));
    peer.send(&initialize(1, 2)).await;
    assert_eq!(soon(peer.receive()).await["result"]["agentInfo"]["name"], "testy");
    peer.close().await;
    soon(peer.expect_end()).await;
    soon(run).await.expect("no panic").expect("a clean end");

    let missing = AcpAgent::from_args(["./no-such-program"]).expect("a command");
    let (mut peer, run) = serve(Agent.protocol_router().with_v1(missing));
    peer.send(&initialize("i", 1)).await;
    assert_eq!(refused(&mut peer, "i").await, -32603);
    soon(peer.expect_end()).await;
    assert!(soon(run).await.expect("no panic").is_err());
}

#[tokio::test]
async fn a_chain_ends_in_a_program_with_a_router() {
    let highest = if cfg!(feature = "unstable_protocol_v2") { 2 } else { 1 };
    for version in 1..=highest {
        let (mut client, link) = pair(ROOM);
        let agent = AcpAgent::from_args([PROGRAM]).expect("a command");
        let chain = ProxiesAndAgent::new(agent).proxy(any_proxy());
        let run = tokio::spawn(ConductorImpl::new_agent("chain", chain).run(link));
        client.send(&initialize("i", version)).await;
        let answer = soon(client.receive()).await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        client.close().await;
        soon(client.expect_end()).await;
        soon(run).await.expect("no panic").expect("a clean end");
    }
}

/// A proxy of every version of this build, whichever dialect it is spoken to in.
fn any_proxy() -> greenroom::ProxyProtocolRouter {
    let mut options = greenroom::ConnectionOptions::default();
    options.proxy_versions = ProxyVersions::ByDialect;
    let router = greenroom::Proxy.protocol_router().with_v1(pass_through()).options(options);
    #[cfg(feature = "unstable_protocol_v2")]
    let router = router.with_v2(greenroom::Proxy.v2());
    router
}

/// Whoever stands at the other end, the connector finds a version.
#[tokio::test]
async fn a_connector_meets_programs_of_every_version() {
    let highest = if cfg!(feature = "unstable_protocol_v2") { 2 } else { 1 };
    for (agent, version) in
        [(&[PROGRAM, "--only-v1"][..], 1), (&[PROGRAM], highest), (&[env!("CARGO_BIN_EXE_testy")], highest)]
    {
        let mut client = tokio::process::Command::new(env!("CARGO_BIN_EXE_connector-client"));
        let said = soon(client.args(agent).output()).await.expect("the program");
        let said = (String::from_utf8(said.stdout).expect("text"), String::from_utf8(said.stderr).expect("text"));
        assert!(said.0.starts_with(&format!("version {version}, session ")), "{said:?}");
    }
}
