//! The log of the `greenroom` program, at every level: no secret, and traces are redacted.

use std::io::Read as _;

use serde_json::json;

use crate::support::{ARROW, Conversation, TESTY};

/// A whole session full of marked secrets, and input that is wrong; what the program logged.
fn log_at(level: &str) -> String {
    let mut client = Conversation::start_logging(level, &["TOKEN=hunter2-component-env", ARROW].join(" "), TESTY);
    let mut stderr = client.child.stderr.take().expect("piped");
    let reading = std::thread::spawn(move || {
        let mut log = String::new();
        stderr.read_to_string(&mut log).expect("UTF-8");
        log
    });
    client.write(b"Welcome, hunter2-noise\n");
    client.write(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"params\":{\"a\":\"hunter2-cut\n");
    assert_eq!(client.receive()["error"]["code"], -32700);
    let initialized = client.request(1, "initialize", &json!({ "protocolVersion": 1, "_meta": { "a": "hunter2" } }));
    assert_eq!(initialized["result"]["protocolVersion"], 1, "{initialized}");
    let servers = json!([
        { "name": "a", "command": "/a", "args": ["hunter2"], "env": [{ "name": "NAME", "value": "hunter2-env" }] },
        { "type": "http", "name": "b", "url": "u", "headers": [{ "name": "H", "value": "hunter2-header" }] },
    ]);
    let session = client.request(2, "session/new", &json!({ "cwd": "/", "mcpServers": servers }));
    client.prompt(3, &session["result"]["sessionId"], "hunter2 prompt");
    client.answer(&json!(3));
    client.request(4, "session/prompt", &json!({ "sessionId": ["hunter2"] }));
    client.request(5, "_unknown", &json!({ "a": "hunter2" }));
    client.send(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": ["hunter2"] } }));
    client.send(&json!({ "jsonrpc": "2.0", "id": 99, "result": "hunter2" }));
    client.send(&json!({ "jsonrpc": "2.0", "method": "_proxy/successor", "params": { "a": "hunter2" } }));
    client.close();
    assert_eq!(client.wait(), Some(0));
    reading.join().expect("a log")
}

#[test]
fn the_log_shows_no_secret_at_any_level() {
    for level in ["off", "error", "warn", "info", "debug"] {
        let log = log_at(level);
        assert!(!log.contains("hunter2"), "{level}: {log}");
        // A chain refuses bad input without a warning: its client can see the refusal. What it cannot
        // see is noise, which is shown by its length.
        let lines = log.lines().count();
        let noise = log.lines().filter(|line| line.contains("input that is not JSON was ignored")).collect::<Vec<_>>();
        match level {
            "off" | "error" => assert_eq!(lines, 0, "{log}"),
            "warn" | "info" => assert_eq!((lines, noise.len()), (1, 1), "{log}"),
            _ => assert!(lines > 1 && noise.len() == 1, "{log}"),
        }
        for noise in noise {
            for part in ["from=Client", "lines=1", "bytes=22", "total=1"] {
                assert!(noise.contains(part), "{part}: {noise}");
            }
        }
    }
    let log = log_at("trace");
    assert!(log.contains("hunter2 prompt") && log.contains("session/new") && log.contains("NAME"), "{log}");
    for hidden in ["hunter2-env", "hunter2-header", "hunter2-noise", "hunter2-cut", "hunter2-component-env"] {
        assert!(!log.contains(hidden), "{hidden}: {log}");
    }
}
