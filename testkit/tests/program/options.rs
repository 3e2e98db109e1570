//! Options and subcommands beside the protocol: recordings, logs, proxies, completions, the manual.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{ARROW, Conversation, GREENROOM, PASS_THROUGH, TESTY, greenroom, stderr, stdout};

/// A place for the files of one test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("greenroom-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn talk(mut client: Conversation) {
    let session = client.open();
    client.prompt(3, &session, "echo hello");
    assert_eq!(client.answer(&json!(3)).0["result"]["stopReason"], "end_turn");
    client.close();
    assert_eq!(client.wait(), Some(0));
}

fn events(file: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("the recording");
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn a_chain_of_programs_is_recorded_to_its_last_message() {
    let folder = folder("record");
    let file = folder.join("trace.jsons");
    let mut command = Command::new(GREENROOM);
    command.arg("--trace").arg(&file).args(["--name", "named", "agent", PASS_THROUGH, ARROW, TESTY]);
    talk(Conversation::run(&mut command));
    let events = events(&file);
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((of("request"), of("response"), of("notification")), (9, 9, 3));
    let last = events.last().expect("an event");
    assert_eq!((&last["from"], &last["to"], &last["id"]), (&json!("Proxy(0)"), &json!("Client"), &json!(3)));
    std::fs::remove_dir_all(folder).expect("the folder");
}

#[test]
fn a_prompt_is_recorded_with_an_agent_a_chain_and_neither() {
    let folder = folder("prompt");
    let file = folder.join("trace.jsons");
    let path = file.to_str().expect("a plain name");
    for (arguments, parties) in [
        (&["--trace", path, "prompt", "hi"][..], 2),
        (&["prompt", "--agent", TESTY, "--trace", path, "hi"], 1),
        (&["--trace", path, "prompt", "--chain", ARROW, PASS_THROUGH, TESTY, "--", "hi"], 3),
    ] {
        let output = greenroom(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let prompts = events(&file).iter().filter(|event| event["method"] == "session/prompt").count();
        assert_eq!(prompts, parties, "{arguments:?}");
    }
    std::fs::remove_dir_all(folder).expect("the folder");
}

#[test]
fn a_chain_of_proxies_is_a_proxy_of_a_larger_one() {
    let inner = format!("{GREENROOM} --name inner proxy {ARROW} '{GREENROOM} proxy {ARROW} {PASS_THROUGH}'");
    let output = greenroom(&["prompt", "--chain", &inner, ARROW, TESTY, "--", "echo x"]);
    assert_eq!(stdout(&output), "→ → → x\n", "{}", stderr(&output));
    let empty = format!("{GREENROOM} proxy");
    let output = greenroom(&["prompt", "--chain", &empty, TESTY, "--", "echo x"]);
    assert_eq!(stdout(&output), "x\n", "{}", stderr(&output));
}

#[test]
fn the_log_of_debug_has_every_message_without_its_secrets() {
    let folder = folder("debug");
    let mut command = Command::new(GREENROOM);
    command.args(["--debug", "--debug-dir"]).arg(folder.join("logs")).args(["agent", TESTY]);
    let mut client = Conversation::run(&mut command);
    let params = json!({ "cwd": "/", "mcpServers": [], "env": { "KEY": "hunter2" } });
    client.request(1, "initialize", &json!({ "protocolVersion": 1 }));
    client.request(2, "session/new", &params);
    client.close();
    assert_eq!(client.wait(), Some(0));
    let logs: Vec<PathBuf> =
        std::fs::read_dir(folder.join("logs")).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    assert_eq!(logs.len(), 1);
    let text = std::fs::read_to_string(&logs[0]).expect("a log");
    assert!(text.contains("session/new") && text.contains("KEY") && !text.contains("hunter2"), "{text}");
    std::fs::remove_dir_all(folder).expect("the folder");
}

#[test]
fn files_that_cannot_be_written_and_recordings_that_are_not_there_are_named() {
    for (arguments, part) in [
        (&["--trace", "/no-such-folder/t.jsons", "agent", TESTY][..], "/no-such-folder/t.jsons"),
        (&["--debug", "--debug-dir", "/proc/nowhere", "agent", TESTY], "debug log"),
        (&["trace", "view", "/no-such-recording", "--no-open"], "/no-such-recording"),
    ] {
        let output = greenroom(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn wrong_arguments_are_status_2_and_the_help_says_so() {
    for arguments in [
        &["agent"][..],
        &["agent", "'unclosed"],
        &["proxy", "'unclosed"],
        &["--trace"],
        &["trace"],
        &["trace", "view"],
        &["trace", "view", "x", "--port", "65536"],
        &["completions", "no-such-shell"],
        &["mcp", "1"],
        &["--serve", "trace", "view", "x", "--no-open"],
        &["man", "--trace", "x"],
        &["--serve", "completions", "bash"],
    ] {
        let output = greenroom(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(!stderr(&output).is_empty());
    }
    let help = stdout(&greenroom(&["--help"]));
    for part in ["Exit status:", "--trace <FILE>", "--serve", "--debug-dir <DIR>", "agent", "proxy", "prompt", "trace"]
    {
        assert!(help.contains(part), "{part} is missing in {help}");
    }
}

#[test]
fn completions_and_the_manual_know_every_subcommand() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = stdout(&greenroom(&["completions", shell]));
        for part in ["no-open", "debug-dir", "completions", "chain"] {
            assert!(text.contains(part), "{shell}: {part} is missing");
        }
    }
    let page = stdout(&greenroom(&["man"]));
    for part in [".TH greenroom", "Exit status", ".SH GREENROOM AGENT", ".SH GREENROOM TRACE", "\\-\\-trace"] {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
}

/// In chains a missing program is told to the client and on stderr, with where it was looked for.
#[test]
fn a_missing_component_is_named_with_what_was_tried() {
    for (mode, chain) in [("agent", &["no-such-proxy --x", TESTY][..]), ("proxy", &["no-such-proxy --x"])] {
        let mut client = Conversation::run(Command::new(GREENROOM).arg(mode).args(chain));
        let method = if mode == "agent" { "initialize" } else { "_proxy/initialize" };
        let answer = client.request(1, method, &json!({ "protocolVersion": 1 }));
        let text = answer["error"].to_string();
        assert!(text.contains("no-such-proxy") && !text.contains("--x"), "{mode}: {text}");
        client.close();
        let _ = client.wait();
    }
}
