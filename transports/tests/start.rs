//! Agent configurations: every way to write one, and what is said when it cannot be started.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use std::error::Error as _;

use greenroom_protocol::Error;
use greenroom_transports::{AcpAgent, AcpAgentConfig};

/// What the person reads who runs this process, and no peer.
fn local(error: &Error) -> String {
    error.source().expect("what lies behind the error").to_string()
}

#[test]
fn reads_a_json_configuration() {
    let agent: AcpAgent =
        r#" {"command": "python", "args": ["agent.py"], "env": {"RUST_LOG": "info"}} "#.parse().unwrap();
    assert_eq!(*agent.config(), AcpAgentConfig::new("python").arg("agent.py").env("RUST_LOG", "info"));
    let agent: AcpAgent = r#"{"command": "python"}"#.parse().unwrap();
    assert_eq!(agent.into_config(), AcpAgentConfig::new("python"));
}

#[test]
fn refuses_a_bad_json_configuration() {
    for (text, part) in [
        ("{", "EOF"),
        ("{}", "command"),
        (r#"{"command": ""}"#, "empty command"),
        (r#"{"command": "a", "cwd": "/"}"#, "cwd"),
        (r#"{"type": "stdio", "command": "a"}"#, "type"),
        (r#"{"command": "a", "env": [{"name": "A", "value": "b"}]}"#, "map"),
        (r#"{"command": "a", "args": "b"}"#, "sequence"),
    ] {
        let error = text.parse::<AcpAgent>().unwrap_err();
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

#[test]
fn a_configuration_survives_json() {
    let config = AcpAgentConfig::new("a b").args(["-x", "中"]).envs([("A", "1"), ("B", "")]);
    let json = serde_json::to_string(&config).unwrap();
    assert_eq!(json, r#"{"command":"a b","args":["-x","中"],"env":{"A":"1","B":""}}"#);
    assert_eq!(serde_json::from_str::<AcpAgentConfig>(&json).unwrap(), config);
}

#[test]
fn reads_a_command_line() {
    let agent: AcpAgent = r#"A=1 B="two words" python 'my agent.py' C=3 -- \"x"#.parse().unwrap();
    let expected =
        AcpAgentConfig::new("python").args(["my agent.py", "C=3", "--", "\"x"]).envs([("A", "1"), ("B", "two words")]);
    assert_eq!(*agent.config(), expected);
    for text in ["", "  ", "A=1", "''", "'' x"] {
        let error = text.parse::<AcpAgent>().unwrap_err();
        assert!(error.to_string().contains("names no program"), "{text:?}: {error}");
    }
    assert!("a 'b".parse::<AcpAgent>().unwrap_err().to_string().contains("never closed"));
}

#[test]
fn shows_no_value_of_the_environment() {
    let agent = AcpAgent::from_args(["TOKEN=hunter2", "a"]).unwrap();
    let shown = format!("{agent:?}");
    assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
}

#[tokio::test]
async fn a_missing_program_is_named_with_the_folders_that_were_searched() {
    let config = AcpAgentConfig::new("no-such-agent").env("PATH", "/nowhere/a:/nowhere/b");
    let error = AcpAgent::new(config).start().unwrap_err();
    assert_eq!(error.message, "cannot start agent program \"no-such-agent\": not in any folder of PATH");
    assert_eq!(
        local(&error),
        "cannot start agent program \"no-such-agent\": not in any folder of PATH (/nowhere/a, /nowhere/b)"
    );
    let error = AcpAgent::from_args(["no-such-agent"]).unwrap().start().unwrap_err();
    assert!(local(&error).contains("/bin") && !error.to_wire().get().contains("/bin"), "{error:?}");
}

#[tokio::test]
async fn a_program_that_cannot_be_run_is_named_with_the_reason() {
    let folder = std::env::temp_dir().join(format!("greenroom-start-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (plain, orphan) = (folder.join("plain"), folder.join("orphan"));
    fs::write(&plain, "").unwrap();
    fs::write(&orphan, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&orphan, fs::Permissions::from_mode(0o755)).unwrap();
    for (program, reason) in [
        (folder.join("absent"), "there is no such file"),
        (plain, "denied"),
        (orphan, "interpreter"),
        (folder.clone(), "denied"),
        ("a\0b".into(), "nul byte"),
    ] {
        let error = AcpAgent::new(AcpAgentConfig::new(&program)).start().unwrap_err();
        assert!(local(&error).contains(&format!("{:?}", program.display().to_string())), "{error:?}");
        let everything = format!("{error:?}");
        assert!(everything.contains(reason), "{everything}");
        let wire = error.to_wire();
        assert!(!wire.get().contains(folder.to_str().unwrap()) && !wire.get().contains('/'), "{wire}");
    }
    let config = AcpAgentConfig::new("orphan").env("PATH", folder.to_str().unwrap());
    let error = AcpAgent::new(config).start().unwrap_err();
    assert!(error.message.contains("interpreter"), "{error}");
    fs::remove_dir_all(&folder).unwrap();
}
