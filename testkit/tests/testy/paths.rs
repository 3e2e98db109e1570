//! Every path is below the session's working directory.

use serde_json::{Value, json};

use crate::scenarios::capable;
use crate::support::{Scripted, friendly, never};

/// Every member that holds a path or a URI.
fn paths(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), member) {
                    ("path" | "cwd" | "uri" | "from" | "to", Value::String(path)) => found.push(path.clone()),
                    _ => paths(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| paths(item, found)),
        _ => {}
    }
}

#[tokio::test]
async fn sessions_share_no_file() {
    let mut client = Scripted::v1(capable(), friendly).await;
    for cwd in ["/no-such/first", "/no-such/second folder"] {
        let session = client.open(cwd).await;
        let answer = client.prompt(&session, "full").await;
        answer.result();
        let mut found = Vec::new();
        answer.before.iter().for_each(|message| paths(message, &mut found));
        let files = ["testy-write.txt", "testy-input.txt", "testy-output.txt"];
        for name in files {
            assert!(found.contains(&format!("{cwd}/{name}")), "{name}: {found:?}");
        }
        assert!(found.contains(&cwd.to_owned()), "the terminal's directory: {found:?}");
        let uri = format!("file://{}/", cwd.replace(' ', "%20"));
        let uris = found.iter().filter(|path| path.starts_with("file:")).count();
        assert_eq!(uris, 4, "picture, link and two resources: {found:?}");
        for path in found {
            assert!(path == cwd || path.starts_with(&format!("{cwd}/")) || path.starts_with(&uri), "{path}");
        }
    }
}

#[tokio::test]
async fn working_directories_are_absolute_and_plain() {
    let mut client = Scripted::v1(json!({}), never).await;
    let session = client.open("/").await;
    for cwd in [".", "", "relative", "/a/../b"] {
        for method in ["session/new", "session/load", "session/resume"] {
            let params = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
            let answer = client.request(method, params).await;
            assert_eq!((answer.code(), &answer.error()["data"]["field"]), (-32602, &json!("cwd")), "{method} {cwd}");
        }
    }
    let params = json!({ "cwd": "/", "additionalDirectories": ["relative"], "mcpServers": [] });
    assert_eq!(client.request("session/new", params).await.code(), -32602);
}

/// Nothing is sent when a link of this machine leads out.
#[cfg(unix)]
#[tokio::test]
async fn links_lead_nowhere() {
    let folder = std::env::temp_dir().join(format!("testy-links-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    for name in ["testy-write.txt", "testy-input.txt", "testy-output.txt"] {
        std::os::unix::fs::symlink("/etc/hostname", folder.join(name)).expect("a link");
    }
    let mut client = Scripted::v1(capable(), friendly).await;
    let session = client.open(folder.to_str().expect("UTF-8")).await;
    for (scenario, methods) in
        [("content", &[][..]), ("tool_calls", &[]), ("callbacks", &["session/request_permission"])]
    {
        let answer = client.prompt(&session, scenario).await;
        assert_eq!((answer.code(), answer.methods()), (-32602, methods.to_vec()), "{scenario}");
        assert!(answer.error()["data"]["reason"].as_str().is_some_and(|reason| reason.contains("symbolic link")));
    }
    std::fs::remove_dir_all(&folder).expect("our folder");
}
