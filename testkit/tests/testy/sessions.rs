//! Every request of a client but prompts.

use serde_json::{Value, json};

use crate::support::{Scripted, never};

#[tokio::test]
async fn it_says_what_it_can_do() {
    let mut client = Scripted::serve(greenroom_testkit::testy::agent_v1(), never);
    let answer = client.request("initialize", json!({ "protocolVersion": 1 })).await;
    let result = answer.result();
    assert_eq!(result["agentInfo"]["name"], "testy");
    let capabilities = &result["agentCapabilities"];
    assert_eq!(capabilities["loadSession"], true);
    let prompt = json!({ "image": true, "audio": true, "embeddedContext": true });
    assert_eq!(capabilities["promptCapabilities"], prompt);
    for name in ["list", "delete", "additionalDirectories", "resume", "close"] {
        assert!(capabilities["sessionCapabilities"][name].is_object(), "{name}: {capabilities}");
    }
    assert!(capabilities["auth"]["logout"].is_object());
    let method = result["authMethods"][0]["id"].clone();
    assert_eq!(client.request("authenticate", json!({ "methodId": method })).await.result(), &json!({}));
    assert_eq!(client.request("authenticate", json!({ "methodId": "other" })).await.code(), -32602);
    assert_eq!(client.request("logout", json!({})).await.result(), &json!({}));
}

#[tokio::test]
async fn initialize_comes_first() {
    let mut client = Scripted::serve(greenroom_testkit::testy::agent_v1(), never);
    assert_eq!(client.request("session/new", json!({ "cwd": "/", "mcpServers": [] })).await.code(), -32600);
}

#[tokio::test]
async fn a_load_replays_and_a_resume_does_not() {
    let mut client = Scripted::v1(json!({}), never).await;
    let session = client.open("/first").await;
    client.prompt(&session, "echo one").await;
    client.prompt(&session, "two").await;
    client.request("session/close", json!({ "sessionId": session })).await.result();
    assert_eq!(client.prompt(&session, "three").await.code(), -32602, "closed");

    let params = json!({ "sessionId": session, "cwd": "/second", "mcpServers": [] });
    let resumed = client.request("session/resume", params.clone()).await;
    assert_eq!(resumed.before, [] as [Value; 0]);
    assert_eq!(resumed.result()["modes"]["currentModeId"], "ask");

    let loaded = client.request("session/load", params).await;
    let kinds = ["user_message_chunk", "agent_message_chunk", "user_message_chunk", "agent_message_chunk"];
    assert_eq!(loaded.kinds(), kinds);
    let said: Vec<_> = loaded.updates().iter().map(|update| update["content"]["text"].clone()).collect();
    assert_eq!(said, ["echo one", "one", "two", "two"]);
    assert_eq!(loaded.result(), resumed.result());
    client.prompt(&session, "three").await.result();

    for method in ["session/load", "session/resume"] {
        let params = json!({ "sessionId": "session-9", "cwd": "/", "mcpServers": [] });
        assert_eq!(client.request(method, params).await.code(), -32602, "{method}");
    }
}

#[tokio::test]
async fn sessions_are_listed_page_by_page() {
    let mut client = Scripted::v1(json!({}), never).await;
    for number in 1..=60 {
        client.open(if number % 10 == 0 { "/tenth" } else { "/" }).await;
    }
    let ids = |page: &Value| -> Vec<String> {
        let sessions = page["sessions"].as_array().expect("a list");
        sessions.iter().map(|session| session["sessionId"].as_str().expect("an id").to_owned()).collect()
    };
    let first = client.request("session/list", json!({})).await.result().clone();
    let second = client.request("session/list", json!({ "cursor": first["nextCursor"] })).await.result().clone();
    let all = [ids(&first), ids(&second)].concat();
    assert_eq!((ids(&first).len(), all.len(), &second["nextCursor"]), (50, 60, &Value::Null));
    assert_eq!(all, (1..=60).map(|number| format!("session-{number}")).collect::<Vec<_>>());
    let tenth = client.request("session/list", json!({ "cwd": "/tenth" })).await.result().clone();
    assert_eq!(ids(&tenth), ["10", "20", "30", "40", "50", "60"].map(|number| format!("session-{number}")));
    assert_eq!(client.request("session/list", json!({ "cursor": "x" })).await.code(), -32602);

    client.request("session/delete", json!({ "sessionId": "session-10" })).await.result();
    let tenth = client.request("session/list", json!({ "cwd": "/tenth" })).await.result().clone();
    assert_eq!(ids(&tenth).len(), 5);
    assert_eq!(client.request("session/delete", json!({ "sessionId": "session-10" })).await.code(), -32602);
    assert_eq!(client.prompt("session-10", "help").await.code(), -32602);
    assert_eq!(client.open("/").await, "session-61", "an id is never used again");
}

#[tokio::test]
async fn modes_and_options_are_kept() {
    let boolean = json!({ "session": { "configOptions": { "boolean": {} } } });
    for (capabilities, options) in [(json!({}), 1), (boolean, 2)] {
        let mut client = Scripted::v1(capabilities, never).await;
        let opened = client.request("session/new", json!({ "cwd": "/", "mcpServers": [] })).await;
        let count = |result: &Value| result["configOptions"].as_array().expect("a list").len();
        assert_eq!(count(opened.result()), options, "a boolean option is for clients that know them");

        client.request("session/set_mode", json!({ "sessionId": "session-1", "modeId": "code" })).await.result();
        let set = |value: Value| json!({ "sessionId": "session-1", "configId": "model", "value": value });
        let changed = client.request("session/set_config_option", set(json!("careful"))).await;
        assert_eq!(
            (count(changed.result()), &changed.result()["configOptions"][0]["currentValue"]),
            (options, &json!("careful"))
        );
        assert_eq!(client.request("session/set_config_option", set(json!("none"))).await.code(), -32602);
        let none = json!({ "sessionId": "session-1", "modeId": "none" });
        assert_eq!(client.request("session/set_mode", none).await.code(), -32602);

        let params = json!({ "sessionId": "session-1", "cwd": "/", "mcpServers": [] });
        let resumed = client.request("session/resume", params).await;
        assert_eq!(resumed.result()["modes"]["currentModeId"], "code");
        assert_eq!(resumed.result()["configOptions"][0]["currentValue"], "careful");
    }
}
