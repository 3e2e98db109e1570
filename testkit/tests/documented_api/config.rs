//! "Migrating the Config API": the configuration of an agent process.

use agent_client_protocol::{AcpAgent, AcpAgentConfig};

#[test]
fn an_agent_configuration() {
    let config = AcpAgentConfig::new("python")
        .arg("agent.py")
        .args(["--mode", "fast"])
        .env("RUST_LOG", "info")
        .envs([("NO_COLOR", "1")]);

    assert_eq!(config.command(), std::path::Path::new("python"));
    assert_eq!(config.arguments(), ["agent.py", "--mode", "fast"]);
    let environment: Vec<_> = config.environment().iter().collect();
    assert_eq!(environment, [(&"NO_COLOR".to_owned(), &"1".to_owned()), (&"RUST_LOG".to_owned(), &"info".to_owned())]);
    let again: AcpAgentConfig = serde_json::from_str(&serde_json::to_string(&config).unwrap()).unwrap();
    assert_eq!(again, config);
}

/// Required command, empty defaults, and no unknown members.
#[test]
fn as_json() {
    let config: AcpAgentConfig = serde_json::from_str(r#"{"command":"python"}"#).unwrap();
    assert!(config.arguments().is_empty() && config.environment().is_empty());
    serde_json::from_str::<AcpAgentConfig>(r#"{"args":[]}"#).unwrap_err();
    serde_json::from_str::<AcpAgentConfig>(r#"{"command":"python","cwd":"/"}"#).unwrap_err();
    assert_eq!(*AcpAgent::new(config.clone()).config(), config);
    assert_eq!("python".parse::<AcpAgent>().unwrap().into_config(), config);
}
