//! The actors around a child process die all the time; the process does not, until the end.

#![cfg(target_os = "linux")]

use std::time::Duration;

use greenroom::runtime::RestartPolicy;
use greenroom::schema::ProtocolVersion;
use greenroom::schema::v1::{
    ContentBlock, InitializeRequest, NewSessionRequest, PromptRequest, StopReason, TextContent,
};
use greenroom::{AcpAgent, Agent, Client, ConnectionOptions, ConnectionTo, is_incoming_transport_closed};
use greenroom_testkit::chaos::{FaultKind, Monkey};

/// This process's children of this name, dead or alive. Alone in this file, so that no other test
/// has children at the same time.
fn children() -> usize {
    let parent = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").expect("a process table").flatten();
    let stats = processes.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
    // "pid (name) state ppid …"
    let parents = stats.filter_map(|stat| stat.rsplit_once(") ")?.1.split(' ').nth(1).map(str::to_owned));
    parents.filter(|found| *found == parent).count()
}

/// One test, so that children are those of one connection.
#[tokio::test]
async fn a_child_process_survives_the_actors_around_it_and_is_gone_at_the_end() {
    let mut options = ConnectionOptions::default();
    options.restart = RestartPolicy { deaths: usize::MAX, window: Duration::from_micros(1) };
    let agent = AcpAgent::from_args([env!("CARGO_BIN_EXE_testy")]).expect("a command");
    let report = Client
        .builder()
        .options(options)
        .connect_with(agent, async |cx: ConnectionTo<Agent>| {
            cx.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
            let session = cx.send_request(NewSessionRequest::new("/")).block_task().await?.session_id;
            assert_eq!(children(), 1);
            let attack = Monkey::new(1).attack(vec![cx.tree()]);
            for _ in 0..300 {
                let text = ContentBlock::Text(TextContent::new("echo again"));
                let answer = cx.send_request(PromptRequest::new(session.clone(), vec![text])).block_task().await?;
                assert_eq!(answer.stop_reason, StopReason::EndTurn);
            }
            assert_eq!(children(), 1, "still the same one");
            Ok(attack.stop().await)
        })
        .await
        .unwrap();
    eprintln!("{report}");
    assert!(report.attacks("child-process", FaultKind::Kill) > 0, "{report}");
    assert_eq!(children(), 0);
    a_grandchild_that_keeps_the_pipe_open().await;
}

/// The agent ends in order, but its background process holds its output: the end must be heard all
/// the same.
async fn a_grandchild_that_keeps_the_pipe_open() {
    let agent = AcpAgent::from_args(["sh", "-c", "read line; sleep 1000 & exit 0"]).expect("a command");
    let asked = Client.builder().connect_with(agent, async |cx: ConnectionTo<Agent>| {
        let request = cx.send_request(NewSessionRequest::new("/")).block_task();
        Ok(tokio::time::timeout(Duration::from_secs(20), request).await.expect("the caller is told"))
    });
    let outcome = asked.await.and_then(|outcome| outcome);
    let error = outcome.expect_err("nobody answers");
    assert!(is_incoming_transport_closed(&error), "{error:?}");
    let exit = error.data.as_ref().map(|data| data["exit"].clone());
    assert_eq!(exit, Some("sh: exit status: 0".into()), "the reason is named: {error:?}");
    assert_eq!(children(), 0);
}
