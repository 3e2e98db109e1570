//! `greenroom prompt`: what it prints and how it exits.

use crate::support::{
    ARROW, FLOOD, PASS_THROUGH, TESTY, eventually, greenroom, greenroom_into, leaving_agent, processes_with, stderr,
    stdout,
};

#[test]
fn the_embedded_chain_answers() {
    let output = greenroom(&["prompt", "Hello"]);
    assert_eq!(stdout(&output), "→ Hello\n");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_chain_of_processes_answers() {
    let output = greenroom(&["prompt", "--chain", ARROW, TESTY, "--", "echo hi there"]);
    assert_eq!(stdout(&output), "→ hi there\n", "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn arrows_add_up() {
    let output = greenroom(&["prompt", "--chain", ARROW, PASS_THROUGH, ARROW, TESTY, "--", "echo x"]);
    assert_eq!(stdout(&output), "→ → x\n", "{}", stderr(&output));
}

#[test]
fn an_agent_alone_answers() {
    let output = greenroom(&["prompt", "--agent", TESTY, "echo one\ntwo 中😀é"]);
    assert_eq!(stdout(&output), "one\ntwo 中😀é\n", "{}", stderr(&output));
}

#[test]
fn a_whole_answer_counts_although_its_agent_is_gone() {
    let (agent, expected) = (leaving_agent(300), (0..300).map(|n| format!("{n} ")).collect::<String>() + "\n");
    for chain in [&[&*agent][..], &[PASS_THROUGH, PASS_THROUGH, PASS_THROUGH, &agent]] {
        let output = greenroom(&[&["prompt", "--chain"], chain, &["--", "all of it"]].concat());
        assert_eq!(stdout(&output), expected, "{}", stderr(&output));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

#[test]
fn an_agent_that_exits_is_reported_with_its_last_words() {
    for arguments in [
        &["prompt", "--agent", "sh -c 'echo first >&2; echo last words >&2; exit 3'", "hi"][..],
        &["prompt", "--chain", "sh -c 'echo last words >&2; exit 3'", "--", "hi"],
    ] {
        let output = greenroom(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        for part in ["initialize", "exit status: 3", "last words"] {
            assert!(said.contains(part), "{part} is missing in: {said}");
        }
    }
}

#[test]
fn a_missing_program_is_reported_with_the_folders_that_were_tried() {
    for arguments in [
        &["prompt", "--agent", "no-such-agent --flag", "hi"][..],
        &["prompt", "--chain", ARROW, "no-such-agent --flag", "--", "hi"],
    ] {
        let output = greenroom(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("no-such-agent") && said.contains("PATH"), "{said}");
    }
}

/// Row C39: a command that is no agent does not hang anybody, and is ended.
#[test]
fn a_command_that_is_no_agent_runs_into_the_deadline() {
    let output = greenroom(&["prompt", "--timeout", "1", "--agent", "sleep 98765", "hi"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("initialize") && said.contains("no answer within 1 s"), "{said}");
    eventually("the command is ended", || processes_with("98765").is_empty());

    let output = greenroom(&["prompt", "--timeout", "5", "--agent", "cat", "hi"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("initialize"), "{}", stderr(&output));
}

#[test]
fn an_answer_that_cannot_be_written_is_no_success() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device of every Linux");
    let output = greenroom_into(full.into(), &["prompt", "Hello"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("output") && said.contains("No space left"), "{said}");
}

#[test]
fn an_agent_of_another_protocol_version_is_refused() {
    let script = r#"read -r line; id=${line#*\"id\":}; id=${id%%[,\}]*}; echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":99}}"; cat >/dev/null"#;
    let output = greenroom(&["prompt", "--agent", &format!("sh -c '{script}'"), "hi"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("initialize") && said.contains("selected 99"), "{said}");
}

#[test]
fn wrong_arguments_have_their_own_exit_status() {
    assert_eq!(greenroom(&["prompt"]).status.code(), Some(2));
    assert_eq!(greenroom(&["agent"]).status.code(), Some(2));
    let output = greenroom(&["prompt", "--agent", "'unfinished", "hi"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn a_long_answer_arrives_whole() {
    let output = greenroom(&["prompt", "--chain", PASS_THROUGH, FLOOD, "--", "flood 3000 100"]);
    let text = stdout(&output);
    let numbers = text.split_whitespace().filter_map(|word| word.trim_start_matches('x').parse::<u32>().ok());
    assert!(numbers.eq(0..3000), "every chunk once and in order");
}
