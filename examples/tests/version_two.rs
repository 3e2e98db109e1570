//! The pair of programs of protocol version 2, against each other and against programs of version 1.

#![cfg(feature = "unstable_protocol_v2")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const CLIENT: &str = env!("CARGO_BIN_EXE_v2_one_shot_client");
const AGENT: &str = env!("CARGO_BIN_EXE_simple_agent_v2");

fn run(arguments: &[&str]) -> Output {
    Command::new(CLIENT).args(arguments).output().expect("the program starts")
}

#[test]
fn a_prompt_is_accepted_answered_and_done() {
    let output = run(&["--command", AGENT, "Hello from ACP v2"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", output.status);
    let text = "Prompt accepted; waiting for session output and completion...\n\
                Echo: Hello from ACP v2\n\
                Session is idle: Some(EndTurn)\n";
    assert_eq!((String::from_utf8(output.stdout).expect("text").as_str(), &*stderr), (text, ""));
}

#[test]
fn what_goes_wrong_is_said_on_stderr() {
    for (arguments, what) in [
        (&["--command", "/no/such/agent", "Hello"][..], "/no/such/agent"),
        (&["--command", env!("CARGO_BIN_EXE_simple_agent"), "Hello"], "version"),
        (&["--command", "true", "Hello"], "closed"),
        (&["Hello"], "usage"),
        (&["--command", AGENT, ""], ""),
    ] {
        let output = run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(i32::from(!what.is_empty())), "{arguments:?}: {stderr}");
        assert!(stderr.contains(what), "{arguments:?}: {stderr}");
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert_eq!(stdout.is_empty(), !what.is_empty(), "{arguments:?}: {stdout}");
    }
}

/// The agent alone, in the hands of the test.
struct Agent {
    child: std::process::Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Agent {
    fn start() -> Self {
        let mut command = Command::new(AGENT);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut agent = Self { child, lines };
        let info = json!({ "name": "client", "version": "1" });
        agent.send(1, "initialize", json!({ "protocolVersion": 2, "info": info }));
        assert_eq!(agent.read()["result"]["capabilities"], json!({ "session": {} }));
        agent.send(2, "session/new", json!({ "cwd": "/" }));
        assert_eq!(agent.read()["result"]["sessionId"], "session-1");
        agent
    }

    fn write(&mut self, message: Value) {
        let input = self.child.stdin.as_mut().expect("piped");
        writeln!(input, "{message}").expect("the program reads");
    }

    fn send(&mut self, id: i64, method: &str, params: Value) {
        self.write(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    fn read(&mut self) -> Value {
        let line = self.lines.next().expect("a line").expect("text");
        serde_json::from_str(&line).expect("JSON")
    }

    /// The next `count` messages, in short: what was answered, which update it is.
    fn short(&mut self, count: usize) -> Vec<String> {
        let short = |message: Value| match (&message["id"], &message["error"]["code"]) {
            (Value::Null, _) => {
                let update = &message["params"]["update"];
                let kind = update["sessionUpdate"].as_str().expect("a kind");
                let more = ["state", "stopReason"].map(|name| update[name].as_str().unwrap_or_default());
                format!("{kind} {}", more.join(" ")).trim_end().to_owned()
            }
            (id, Value::Null) => format!("{id} {}", message["result"]),
            (id, code) => format!("{id} {code}"),
        };
        (0..count).map(|_| short(self.read())).collect()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait().expect("our child");
        if !std::thread::panicking() {
            assert!(status.success(), "the end of its input is a clean end: {status}");
        }
    }
}

fn prompt(text: &str) -> Value {
    json!({ "sessionId": "session-1", "prompt": [{ "type": "text", "text": text }], "idempotencyKey": text })
}

#[test]
fn an_agent_speaks_the_whole_baseline() {
    let mut agent = Agent::start();
    agent.send(3, "session/prompt", prompt("one"));
    let done = [
        r#"3 {"messageId":"user-1"}"#,
        "user_message",
        "state_update running",
        "agent_message",
        "state_update idle end_turn",
    ];
    assert_eq!(agent.short(5), done);
    agent.send(4, "session/prompt", prompt("one"));
    assert_eq!(agent.short(1), [r#"4 {"messageId":"user-1"}"#], "the same submission once more");
    agent.send(5, "session/prompt", json!({ "sessionId": "session-1", "prompt": [] }));
    agent.send(6, "session/prompt", json!({ "sessionId": "session-9", "prompt": [{ "type": "text", "text": "x" }] }));
    assert_eq!(agent.short(2), ["5 -32602", "6 -32002"]);

    agent.send(7, "session/resume", json!({ "sessionId": "session-1", "cwd": "/" }));
    assert_eq!(agent.short(2), ["state_update idle", "7 {}"]);
    let replay = json!({ "sessionId": "session-1", "cwd": "/", "replayFrom": { "type": "start" } });
    agent.send(8, "session/resume", replay);
    assert_eq!(agent.short(5), ["user_message", "agent_message", "replay_complete", "state_update idle", "8 {}"]);
    let elsewhere = json!({ "sessionId": "session-1", "cwd": "/", "replayFrom": { "type": "_elsewhere" } });
    agent.send(9, "session/resume", elsewhere);
    agent.send(10, "session/resume", json!({ "sessionId": "session-9", "cwd": "/" }));
    assert_eq!(agent.short(2), ["9 -32602", "10 -32002"]);

    agent.send(11, "session/list", json!({}));
    assert_eq!(agent.short(1), [r#"11 {"sessions":[{"sessionId":"session-1","cwd":"/"}]}"#]);
    agent.send(12, "session/close", json!({ "sessionId": "session-1" }));
    agent.send(13, "session/prompt", prompt("two"));
    agent.send(14, "session/close", json!({ "sessionId": "session-9" }));
    assert_eq!(agent.short(3), ["12 {}", "13 -32002", "14 {}"]);
    agent.send(15, "session/new", json!({ "cwd": "relative" }));
    assert_eq!(agent.short(1), ["15 -32602"]);
}

/// Three prompts and a cancellation in one piece. How many of them are accepted before the
/// cancellation depends on when the agent reads; each gets one answer, in order, and the session
/// ends idle.
#[test]
fn each_prompt_has_one_answer_whenever_it_is_cancelled() {
    let mut agent = Agent::start();
    for id in 3..6 {
        agent.send(id, "session/prompt", prompt(&id.to_string()));
    }
    agent.write(json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "session-1" } }));
    agent.send(6, "session/close", json!({ "sessionId": "session-1" }));
    let mut answers = Vec::new();
    let (mut running, mut idle) = (0, 0);
    while answers.last() != Some(&6) {
        let message = agent.read();
        match (message["id"].as_i64(), message["params"]["update"]["state"].as_str()) {
            (Some(id), _) => answers.push(id),
            (_, Some("running")) => running += 1,
            (_, Some("idle")) => idle += 1,
            _ => {}
        }
    }
    assert_eq!((answers, running), (vec![3, 4, 5, 6], idle));
}
