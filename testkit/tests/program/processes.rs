//! Child processes of a chain: no orphan, no full pipe, no hang.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::{
    Conversation, FLOOD, GREENROOM, PASS_THROUGH, TESTY, children, eventually, peak_memory, processes_with,
};

/// Row C36: an agent behind shells, one of which ignores the end of its input, is gone with the
/// chain, and so is everything it started.
#[test]
fn grandchildren_end_with_the_chain() {
    let inner = "sh -c 'trap \"\" HUP; sleep 87651 & sleep 87652 & wait' & ";
    let command = format!("sh -c \"{}exec {TESTY}\"", inner.replace('"', "\\\""));
    let mut client = Conversation::start(&[PASS_THROUGH, &command]);
    client.open();
    eventually("the grandchildren run", || processes_with("8765").len() >= 2);
    client.close();
    assert_eq!(client.wait(), Some(0));
    eventually("the grandchildren are gone", || processes_with("8765").is_empty());
}

/// Row C37: a component that talks a lot on stderr is not held up, and its words do not pile up.
#[test]
fn stderr_never_blocks_a_component() {
    let command = format!("sh -c 'head -c 50000000 /dev/zero >&2; exec {TESTY}'");
    let mut client = Conversation::start(&[&command]);
    let session = client.open();
    client.prompt(3, &session, "echo alive");
    let (answer, _) = client.answer(&json!(3));
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let memory = peak_memory(client.child.id());
    assert!(memory < 20 * 1024, "{memory} KiB");
}

/// Row C6: what a shell profile says before the first frame is noise, not the end.
#[test]
fn a_chatty_shell_in_front_of_an_agent_is_ignored() {
    let command = format!(r#"sh -c 'printf "\033[?2004hWelcome back\n\n"; exec {TESTY}'"#);
    for chain in [&[&*command][..], &[PASS_THROUGH, &command]] {
        let mut client = Conversation::start(chain);
        let session = client.open();
        client.prompt(3, &session, "echo here");
        let (answer, updates) = client.answer(&json!(3));
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{chain:?}: {answer}");
        assert_eq!(updates.len(), 1, "{chain:?}: the noise went nowhere");
        client.close();
        assert_eq!(client.wait(), Some(0));
    }
}

/// Row C2: a line that never ends is cut at the limit, in bounded memory, and the program says so.
#[test]
fn an_endless_line_ends_the_program_at_the_limit() {
    let mut program = Command::new(GREENROOM)
        .args(["agent", TESTY])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = program.stdin.take().expect("piped");
    let block = vec![b'a'; 1024 * 1024];
    // 1 GiB, if the program would take it.
    let taken = (0..1024).take_while(|_| input.write_all(&block).is_ok()).count();
    assert!((63..80).contains(&taken), "{taken} MiB went in");
    let memory = peak_memory(program.id());
    let output = program.wait_with_output().expect("its output can be read");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("overflow") && said.contains("67108864"), "{said}");
    // The process may be gone before its memory is read.
    assert!(memory < 200 * 1024, "{memory} KiB");
}

/// Row C31: the end of the input ends the program, also when its agent ignores it.
#[test]
fn an_agent_that_ignores_the_end_of_its_input_is_ended() {
    let command = format!("sh -c '{TESTY}; trap \"\" TERM; sleep 76543'");
    let mut client = Conversation::start(&[&command]);
    client.open();
    client.close();
    assert_eq!(client.wait(), Some(0));
    eventually("the agent is gone", || processes_with("76543").is_empty());
}

/// A client that vanishes in the middle of a stream leaves nothing behind: the pipe breaks under
/// the program, and it ends by itself.
#[test]
fn a_client_that_vanishes_ends_the_chain() {
    let mut program = Command::new(GREENROOM)
        .args(["agent", PASS_THROUGH, FLOOD])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut input = program.stdin.take().expect("piped");
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1 } }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {
            "sessionId": "flood", "prompt": [{ "type": "text", "text": "flood 1000000 200" }] } }),
    ] {
        writeln!(input, "{message}").expect("the program reads");
    }
    let mut first = String::new();
    BufReader::new(program.stdout.take().expect("piped")).read_line(&mut first).expect("UTF-8");
    let components = children(program.id());
    assert_eq!(components.len(), 2, "{first}");
    drop(input);
    eventually("the program ends", || program.try_wait().expect("our child").is_some());
    for component in components {
        eventually("its components are gone", || !std::path::Path::new(&format!("/proc/{component}")).exists());
    }
}
