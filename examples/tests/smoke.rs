//! Runs every program and compares what it prints.

use std::process::{Command, Output};

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().expect("the program starts")
}

fn stdout_of(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} ended with {}: {stderr}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

const YOLO: &str = env!("CARGO_BIN_EXE_yolo_one_shot_client");
const AGENT: &str = env!("CARGO_BIN_EXE_simple_agent");

#[test]
fn the_client_prints_what_the_agent_streams() {
    let text = stdout_of(YOLO, &["--command", AGENT, "Hello from a client"]);
    assert_eq!(text, "Hello from a client\nEndTurn\n");
}

#[test]
fn the_client_picks_the_first_option_that_allows() {
    let text = stdout_of(YOLO, &["--command", AGENT, "delete it"]);
    assert_eq!(text, "[yes] delete it\nEndTurn\n");
}

#[test]
fn an_agent_that_does_not_start_is_named() {
    let output = run(YOLO, &["--command", "/no/such/agent", "Hello"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("/no/such/agent"), "{stderr}");
}

const ORDERED: &str = env!("CARGO_BIN_EXE_ordered_application_dispatch");

#[test]
fn an_application_sees_everything_in_order() {
    let text = stdout_of(ORDERED, &["--command", AGENT, "one two three"]);
    assert_eq!(text, "1: one\n2: two\n3: three\nanswered: EndTurn\n3 updates, all of them applied\n");
}

#[test]
fn custom_messages() {
    let text = stdout_of(env!("CARGO_BIN_EXE_custom_messages"), &[]);
    assert_eq!(text, "indexing a.rs\nindexing main.rs\nwords: 11\nrefused: -32602 Some(String(\"no files\"))\n");
}

#[test]
fn an_embedded_connection_survives_the_death_of_its_actors() {
    let text = stdout_of(env!("CARGO_BIN_EXE_embedded_host"), &[]);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("connection: Up, restarts 0"), "{text}");
    let actors: Vec<&str> = lines.by_ref().take_while(|line| line.starts_with("  ")).collect();
    for kind in ["incoming", "dispatch", "outgoing"] {
        assert!(actors.contains(&format!("  {kind}: Up, restarts 1").as_str()), "{text}");
    }
    assert!(text.ends_with("the host was told about the end\n"), "{text}");
}

#[cfg(feature = "unstable_mcp_over_acp")]
#[test]
fn an_agent_calls_the_tool_of_its_client() {
    let agent = env!("CARGO_BIN_EXE_mcp_agent");
    let text = stdout_of(env!("CARGO_BIN_EXE_mcp_tool"), &["--command", agent, "hello"]);
    assert_eq!(text, "shout: HELLO\nshouter says HELLO\n");
}
