//! Memory is bounded when somebody does not read.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Conversation, FLOOD, GREENROOM, PASS_THROUGH, children, peak_memory};

/// What a process may take at its peak beside its own code, in KiB. The bound that the project
/// promises for a whole process is 20 MiB; a program that is not optimised has much more code in
/// memory, which says nothing about who keeps what, so code is left out and the rest has less room.
const LIMIT_KIB: u64 = 12 * 1024;

/// 44 MB are streamed through chains whose client reads nothing for two seconds.
#[test]
fn a_client_that_does_not_read_costs_no_memory() {
    for chain in [&[FLOOD][..], &[PASS_THROUGH, FLOOD], &[PASS_THROUGH, PASS_THROUGH, PASS_THROUGH, FLOOD]] {
        let mut conductor = Command::new(GREENROOM)
            .arg("agent")
            .args(chain)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut input = conductor.stdin.take().expect("piped");
        let mut output = conductor.stdout.take().expect("piped");
        let messages = [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1 } }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "session/new", "params": { "cwd": "/", "mcpServers": [] } }),
            json!({ "jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {
                "sessionId": "flood", "prompt": [{ "type": "text", "text": "flood 200000 100" }] } }),
        ];
        for message in messages {
            use std::io::Write as _;
            writeln!(input, "{message}").expect("the program reads");
        }
        // The pause is what is tested; it ends when its time is over, not when something happened.
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until {
            std::thread::park_timeout(until - Instant::now());
        }
        let mut ours = vec![conductor.id()];
        ours.extend(children(conductor.id()));
        let memory: Vec<u64> = ours.iter().map(|process| peak_memory(*process)).collect();
        // From here on the client reads again; its input ended, which must not cut anything short.
        drop(input);
        let mut text = String::new();
        output.read_to_string(&mut text).expect("UTF-8");
        assert_eq!(text.matches("session/update").count(), 200_000, "{chain:?}: nothing is lost");
        assert!(text.len() > 40_000_000, "{} bytes", text.len());
        assert!(memory.iter().all(|kib| *kib > 0 && *kib < LIMIT_KIB), "{chain:?}: {memory:?} KiB");
        conductor.wait().expect("our child");
    }
}

/// A client that sends requests as fast as it can and never reads the answers is held back.
#[test]
fn a_client_that_floods_costs_no_memory() {
    use std::io::Write as _;
    let mut client = Conversation::start(&[PASS_THROUGH, crate::support::TESTY]);
    client.open();
    let id = client.child.id();
    let mut ours = vec![id];
    ours.extend(children(id));
    // The reading thread of the conversation takes the answers of `open`; from here on the
    // requests go to a second program whose output nobody reads at all.
    let mut silent = Command::new(GREENROOM)
        .args(["agent", PASS_THROUGH, crate::support::TESTY])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut input = silent.stdin.take().expect("piped");
    let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": 1 } });
    writeln!(input, "{initialize}").expect("the program reads");
    let flood = std::thread::spawn(move || {
        let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "_flood", "params": { "text": "x".repeat(200) } });
        let line = format!("{line}\n");
        for _ in 0..200_000 {
            if input.write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    });
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until && !flood.is_finished() {
        std::thread::park_timeout(Duration::from_millis(50));
    }
    ours.push(silent.id());
    ours.extend(children(silent.id()));
    let memory: Vec<u64> = ours.iter().map(|process| peak_memory(*process)).collect();
    silent.kill().expect("our child");
    silent.wait().expect("our child");
    flood.join().expect("the flood ends with its reader");
    assert!(memory.iter().all(|kib| *kib > 0 && *kib < LIMIT_KIB), "{memory:?} KiB");
}
