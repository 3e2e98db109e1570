//! Agents as child processes: started, watched and ended, with real processes.
#![cfg(target_os = "linux")]

mod vanish;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom_protocol::Error;
use greenroom_transports::{AcpAgent, AcpAgentConfig, AgentProcess, ByteReader, Exit, Ladder, LineDirection};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::watch;
use vanish::{is_alive, is_in_table, until_gone};

/// Short where the test wants the next step, long where it does not.
const SOON: Duration = Duration::from_millis(50);
const LATE: Duration = Duration::from_secs(30);
const PATIENT: Ladder = Ladder { eof_grace: LATE, term_grace: LATE, kill_grace: LATE };

fn bash(script: &str) -> AcpAgent {
    AcpAgent::new(AcpAgentConfig::new("bash").args(["-c", script])).with_ladder(PATIENT)
}

async fn line(stdout: &mut BufReader<ByteReader>) -> String {
    let mut line = String::new();
    stdout.read_line(&mut line).await.unwrap();
    line.trim_end().to_owned()
}

async fn pid(stdout: &mut BufReader<ByteReader>) -> u32 {
    line(stdout).await.parse().unwrap()
}

/// Ends the process like a connection does: closes its stdin and asks the driver to finish.
async fn end(process: AgentProcess) -> (Result<(), Error>, Exit) {
    let AgentProcess { stdin, stdout, mut driver, exit, id, .. } = process;
    assert!(driver.request_finish());
    drop((stdin, stdout));
    let outcome = driver.await;
    assert!(!is_in_table(id), "the process was not reaped");
    (outcome, known(&exit))
}

fn known(exit: &watch::Receiver<Option<Exit>>) -> Exit {
    exit.borrow().clone().expect("the exit is known")
}

#[tokio::test]
async fn an_agent_that_heeds_the_end_of_its_input_is_not_signalled() {
    let mut process = AcpAgent::from_args(["cat"]).unwrap().with_ladder(PATIENT).start().unwrap();
    process.stdin.write_all("中😀é\n".as_bytes()).await.unwrap();
    let mut echoed = [0; 10];
    process.stdout.read_exact(&mut echoed).await.unwrap();
    assert_eq!(&echoed, "中😀é\n".as_bytes());
    let (outcome, exit) = end(process).await;
    outcome.unwrap();
    let status = "exit status: 0".to_owned();
    let stderr_tail = String::new();
    assert_eq!(
        exit,
        Exit { program: "cat".into(), status, success: true, requested: true, rung: "stdin closed", stderr_tail }
    );
}

#[tokio::test]
async fn shutting_stdin_down_is_the_end_of_input() {
    let mut process = AcpAgent::from_args(["cat"]).unwrap().with_ladder(PATIENT).start().unwrap();
    process.stdin.write_all(b"x\n").await.unwrap();
    process.stdin.shutdown().await.unwrap();
    let mut echoed = String::new();
    let ended = tokio::time::timeout(LATE, process.stdout.read_to_string(&mut echoed)).await;
    ended.expect("cat ends with its input").unwrap();
    assert_eq!(echoed, "x\n");
    process.driver.await.unwrap();
    assert!(process.stdin.write_all(b"more").await.is_err());
}

#[tokio::test]
async fn the_status_of_a_requested_end_is_no_failure() {
    let (outcome, exit) = end(bash("read; exit 7").start().unwrap()).await;
    outcome.unwrap();
    assert_eq!((exit.status.as_str(), exit.requested, exit.rung), ("exit status: 7", true, "stdin closed"));
}

#[tokio::test]
async fn a_program_that_ignores_its_input_is_terminated() {
    let ladder = Ladder { eof_grace: SOON, ..PATIENT };
    let agent = AcpAgent::from_args(["sleep", "1000"]).unwrap().with_ladder(ladder);
    let (outcome, exit) = end(agent.start().unwrap()).await;
    outcome.unwrap();
    assert_eq!((exit.status.as_str(), exit.rung), ("signal: 15 (SIGTERM)", "SIGTERM"));
}

#[tokio::test]
async fn a_program_that_ignores_sigterm_is_killed() {
    let ladder = Ladder { eof_grace: SOON, term_grace: SOON, kill_grace: LATE };
    let mut process =
        bash("trap '' TERM; echo ready; while :; do sleep 1000; done").with_ladder(ladder).start().unwrap();
    process.stdout.read_exact(&mut [0; 6]).await.unwrap();
    let (outcome, exit) = end(process).await;
    outcome.unwrap();
    assert_eq!((exit.status.as_str(), exit.rung), ("signal: 9 (SIGKILL)", "SIGKILL"));
}

/// Case C36, and its worse form in which the inner agent ignores `SIGTERM` too.
#[tokio::test]
async fn a_wrapped_agent_does_not_outlive_its_wrapper() {
    for inner in ["echo $$; while :; do sleep 1000; done", "trap \"\" TERM; echo $$; while :; do sleep 1000; done"] {
        let ladder = Ladder { eof_grace: SOON, term_grace: 10 * SOON, kill_grace: LATE };
        let mut process = bash(&format!("bash -c '{inner}'; :")).with_ladder(ladder).start().unwrap();
        let mut stdout = BufReader::new(process.stdout);
        let inner = pid(&mut stdout).await;
        assert!(is_alive(inner) && inner != process.id);
        process.stdout = Box::new(stdout);
        end(process).await.0.unwrap();
        assert!(!is_alive(inner));
    }
}

#[tokio::test]
async fn a_process_left_behind_by_an_agent_that_ended_is_ended_too() {
    let agent = bash("bash -c 'trap \"\" TERM; echo $$; while :; do sleep 1000; done' & read; exit 4")
        .with_ladder(Ladder { term_grace: SOON, ..PATIENT });
    let mut process = agent.start().unwrap();
    let mut stdout = BufReader::new(process.stdout);
    let left_behind = pid(&mut stdout).await;
    process.stdin.write_all(b"\n").await.unwrap();
    process.driver.await.unwrap_err();
    assert!(!is_alive(left_behind));
    assert_eq!((known(&process.exit).rung, known(&process.exit).requested), ("own exit", false));
}

#[tokio::test]
async fn the_exit_is_known_before_the_rest_of_the_group_has_ended() {
    let agent = bash("bash -c 'trap \"\" TERM; echo $$; while :; do sleep 1000; done' & read; exit 4");
    let mut process = agent.start().unwrap();
    let mut stdout = BufReader::new(process.stdout);
    let left_behind = pid(&mut stdout).await;
    process.stdin.write_all(b"\n").await.unwrap();
    let mut exit = process.exit.clone();
    tokio::select! {
        _ = &mut process.driver => panic!("the group is not empty"),
        seen = exit.wait_for(Option::is_some) => drop(seen.unwrap()),
    }
    assert!(is_alive(left_behind));
    assert_eq!(known(&exit).status, "exit status: 4");
    // Dropped while it waits for the rest: the rest is killed.
    drop(process.driver);
    until_gone(left_behind).await;
}

#[tokio::test]
async fn a_failure_names_program_status_and_the_end_of_stderr() {
    let process = bash("echo one >&2; echo 'two 中' >&2; exit 3").start().unwrap();
    let error = process.driver.await.unwrap_err();
    assert_eq!(error.message, "agent process \"bash\" ended: exit status: 3");
    let expected = serde_json::json!({ "reason": "the process failed", "program": "bash", "status": "exit status: 3" });
    assert_eq!(error.data, Some(expected), "what a peer may see");
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<Exit>());
    assert_eq!(source, process.exit.borrow().as_ref(), "what the caller sees");
    let exit = process.exit.borrow().clone().unwrap();
    assert_eq!((exit.success, exit.requested, exit.stderr_tail.as_str()), (false, false, "one\ntwo 中\n"));
}

/// The driver looks for the first time when the process has ended: everything is still in the pipe.
#[tokio::test]
async fn what_was_written_just_before_the_exit_is_not_lost() {
    let process = bash("seq 1 10000 >&2; echo last >&2; exit 3").start().unwrap();
    until_gone(process.id).await;
    process.driver.await.unwrap_err();
    let tail = known(&process.exit).stderr_tail;
    assert!(tail.starts_with("1\n2\n") && tail.ends_with("\n10000\nlast\n"), "{} bytes", tail.len());
}

#[tokio::test]
async fn a_success_that_nobody_asked_for_is_no_failure() {
    let process = bash("exit 0").start().unwrap();
    process.driver.await.unwrap();
    assert_eq!((known(&process.exit).success, known(&process.exit).rung), (true, "own exit"));
}

/// Case C37.
#[tokio::test]
async fn a_flood_on_stderr_neither_blocks_nor_grows() {
    let mut process = bash("yes 0123456789 | head -c 209715198 >&2; echo last >&2; echo done; read").start().unwrap();
    let mut stdout = BufReader::new(process.stdout);
    let seen = tokio::select! {
        _ = &mut process.driver => panic!("the agent waits for input"),
        seen = line(&mut stdout) => seen,
    };
    assert_eq!(seen, "done");
    process.stdout = Box::new(stdout);
    let (outcome, exit) = end(process).await;
    outcome.unwrap();
    assert!(exit.stderr_tail.ends_with("0123456789\nlast\n"), "{:?}", exit.stderr_tail.len());
    assert!(exit.stderr_tail.starts_with("0123456789\n"));
    assert!((60_000..=64 * 1024).contains(&exit.stderr_tail.len()), "{}", exit.stderr_tail.len());
}

#[tokio::test]
async fn the_callback_sees_stderr_line_by_line() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let agent = bash("printf 'one\\r\\n\\n' >&2; printf 'half' >&2; printf ' line 中' >&2").with_debug({
        let seen = Arc::clone(&seen);
        move |line, direction| seen.lock().unwrap().push((line.to_owned(), direction))
    });
    agent.start().unwrap().driver.await.unwrap();
    let expected = ["one", "", "half line 中"].map(|line| (line.to_owned(), LineDirection::Stderr));
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test]
async fn dropping_the_driver_kills_the_whole_group_at_once() {
    let process = bash("trap '' TERM; bash -c 'trap \"\" TERM; echo $$; while :; do sleep 1000; done'; :").start();
    let process = process.unwrap();
    let mut stdout = BufReader::new(process.stdout);
    let inner = pid(&mut stdout).await;
    drop(process.driver);
    until_gone(inner).await;
    until_gone(process.id).await;
}

#[test]
fn the_end_of_the_runtime_leaves_no_process() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (inner, outer) = runtime.block_on(async {
        let process = bash("bash -c 'echo $$; while :; do sleep 1000; done'; :").start().unwrap();
        let mut stdout = BufReader::new(process.stdout);
        let inner = pid(&mut stdout).await;
        tokio::spawn(process.driver);
        // Held open for ever, as a leaked connection would.
        tokio::spawn(async move {
            let _stdin = process.stdin;
            std::future::pending::<()>().await;
        });
        (inner, process.id)
    });
    assert!(is_alive(inner) && is_alive(outer));
    drop(runtime);
    let watching = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    watching.block_on(async {
        until_gone(inner).await;
        until_gone(outer).await;
    });
}

#[tokio::test]
async fn the_environment_reaches_the_process() {
    let agent: AcpAgent = "GREETING='hello  world' bash -c 'echo \"$GREETING\"'".parse().unwrap();
    let process = agent.start().unwrap();
    let mut stdout = BufReader::new(process.stdout);
    assert_eq!(line(&mut stdout).await, "hello  world");
    process.driver.await.unwrap();
}
