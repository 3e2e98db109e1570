//! Shared sessions, over real stdio.
#![cfg(feature = "unstable_protocol_v2")]

use std::process::{Command, Output};

const CLIENT: &str = env!("CARGO_BIN_EXE_v2_session_coordination");
const AGENT: &str = env!("CARGO_BIN_EXE_stored_session_agent");

fn run(arguments: &[&str]) -> Output {
    Command::new(CLIENT).args(arguments).output().expect("the program starts")
}

#[test]
fn views_share_a_load_and_the_next_one_starts_afresh() {
    let output = run(&["--command", AGENT, "--session-id", "stored"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", output.status);
    let expected = "\
Two views share one load of 4 updates:
  user: Where were we?
  agent: In the middle of it.
  agent: (resume number 1)
One view is closed; the other has 4 updates.
Both were closed; a fresh load has 4 updates:
  user: Where were we?
  agent: In the middle of it.
  agent: (resume number 2)
";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{stderr}");
    assert_eq!(stderr, "");
}

#[test]
fn a_session_that_the_agent_does_not_know_is_refused() {
    let output = run(&["--command", AGENT, "--session-id", "unknown"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("there is no such session"), "{stderr}");
}

#[test]
fn arguments_that_are_missing_are_named() {
    for arguments in [&["--command", AGENT][..], &["--session-id"], &["--what"], &[]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("usage: v2_session_coordination"), "{stderr}");
    }
}
