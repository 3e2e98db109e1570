//! The program `testy` as it is built without the draft of version 2: an agent of version 1, over the
//! pipes of a process.
//!
//! `cargo test -p greenroom-testkit --no-default-features --test stable_only`

#![cfg(not(feature = "unstable_protocol_v2"))]

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// The program, in the hands of a test.
struct Program {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_testy"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, lines }
    }

    /// Sends a request; gives the answer and what came before it.
    fn ask(&mut self, id: u64, method: &str, params: Value) -> (Value, Vec<Value>) {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.child.stdin.as_mut().expect("piped"), "{request}").expect("the program reads");
        let mut before = Vec::new();
        loop {
            let line = self.lines.next().expect("the program goes on").expect("text");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == id {
                return (message, before);
            }
            before.push(message);
        }
    }

    /// The end of its input is the end of the program.
    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.lines.next().is_none(), "nothing is left to say");
        assert!(self.child.wait().expect("our child").success());
    }
}

/// Whatever version of the protocol a client asks for, this agent speaks version 1.
#[test]
fn every_initialize_ends_with_version_1() {
    for requested in [0, 1, 2, 3, 65_535] {
        let mut agent = Program::start();
        let info = json!({ "name": "client", "version": "1" });
        let params = json!({ "protocolVersion": requested, "info": info, "capabilities": { "session": {} } });
        let (answer, before) = agent.ask(1, "initialize", params);
        assert_eq!(answer["result"]["protocolVersion"], 1, "{requested}: {answer}");
        assert_eq!(answer["result"]["agentInfo"]["name"], "testy", "in the form of version 1");
        assert!(answer["result"]["agentCapabilities"].is_object() && before.is_empty(), "{answer}");
        let (opened, _) = agent.ask(2, "session/new", json!({ "cwd": "/", "mcpServers": [] }));
        assert_eq!(opened["result"]["sessionId"], "session-1", "{opened}");
        let prompt = json!([{ "type": "text", "text": "echo hello" }]);
        let (answer, said) = agent.ask(3, "session/prompt", json!({ "sessionId": "session-1", "prompt": prompt }));
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        let texts: Vec<_> = said.iter().map(|update| &update["params"]["update"]["content"]["text"]).collect();
        assert_eq!(texts, ["hello"]);
        agent.end();
    }
}

#[test]
fn what_is_no_version_is_refused_and_another_try_is_welcome() {
    let mut agent = Program::start();
    for (id, version) in (0..).zip([json!("2"), json!(-1), json!(1.5), json!(65_536), json!(null)]) {
        let (answer, _) = agent.ask(id, "initialize", json!({ "protocolVersion": version }));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    let (answer, _) = agent.ask(9, "initialize", json!({ "protocolVersion": 1 }));
    assert_eq!(answer["result"]["protocolVersion"], 1, "{answer}");
    agent.end();
}

/// Requests that only the draft knows are refused by name, and nothing else suffers.
#[test]
fn requests_of_the_draft_are_unknown() {
    let mut agent = Program::start();
    agent.ask(1, "initialize", json!({ "protocolVersion": 2, "info": { "name": "c", "version": "1" } }));
    let (answer, _) = agent.ask(2, "auth/login", json!({ "methodId": "m" }));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let (answer, _) = agent.ask(3, "session/new", json!({ "cwd": "/", "mcpServers": [] }));
    assert_eq!(answer["result"]["sessionId"], "session-1", "{answer}");
    agent.end();
}
