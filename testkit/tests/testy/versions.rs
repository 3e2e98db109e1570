//! One agent of both versions.

use serde_json::{Value, json};

use crate::support::{Scripted, never};

fn hello(version: Value) -> Value {
    json!({ "protocolVersion": version, "info": { "name": "client", "version": "1" }, "capabilities": {} })
}

#[tokio::test]
async fn the_clients_initialize_selects() {
    for (requested, selected) in [(0, 1), (1, 1), (2, 2), (3, 2), (65535, 2)] {
        let mut client = Scripted::serve(greenroom_testkit::testy(), never);
        let answer = client.request("initialize", hello(json!(requested))).await;
        assert_eq!(answer.result()["protocolVersion"], selected, "{requested}");
        let session = client.open("/").await;
        let answer = client.prompt(&session, "help").await;
        let member = if selected == 1 { "stopReason" } else { "messageId" };
        assert!(answer.result()[member].is_string(), "{requested}: {}", answer.message);
    }
}

#[tokio::test]
async fn an_agent_of_one_version_stays_one() {
    let mut client = Scripted::serve(greenroom_testkit::testy::agent_v1(), never);
    assert_eq!(client.request("initialize", hello(json!(2))).await.result()["protocolVersion"], 1);
    let mut client = Scripted::serve(greenroom_testkit::testy::agent_v2(), never);
    let answer = client.request("initialize", hello(json!(1))).await;
    assert_eq!((answer.code(), &answer.error()["data"]["supported"]), (-32022, &json!([2])));
    assert_eq!(client.request("initialize", hello(json!(2))).await.result()["protocolVersion"], 2);
}

#[tokio::test]
async fn the_end_of_the_client_is_the_end_of_both() {
    for version in [1, 2] {
        let mut client = Scripted::serve(greenroom_testkit::testy(), never);
        client.request("initialize", hello(json!(version))).await.result();
        client.peer.close().await;
        client.peer.expect_end().await;
    }
    let mut client = Scripted::serve(greenroom_testkit::testy(), never);
    client.peer.close().await;
    client.peer.expect_end().await;
}
