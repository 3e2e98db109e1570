//! Plain commands, their JSON form, and cancellation.

use greenroom_testkit::testy::{TestyCommand, TestyScenario};
use serde_json::json;

use crate::support::{Scripted, never};

#[tokio::test]
async fn plain_and_json_commands_do_the_same() {
    let mut client = Scripted::v1(json!({}), never).await;
    let session = client.open("/").await;
    for text in ["echo  Hello ", r#"{"command":"echo","message":" Hello "}"#, " Hello "] {
        let answer = client.prompt(&session, text).await;
        assert_eq!((answer.texts(), &answer.result()["stopReason"]), (vec![" Hello "], &json!("end_turn")), "{text}");
    }
    let help = client.prompt(&session, "help").await;
    for scenario in TestyScenario::ALL {
        assert!(help.texts()[0].contains(scenario.name()), "{:?}", help.texts());
        if matches!(scenario, TestyScenario::SessionUpdates | TestyScenario::Content | TestyScenario::ToolCalls) {
            let plain = client.prompt(&session, scenario.name()).await;
            let as_json = client.prompt(&session, &TestyCommand::RunScenario { scenario: *scenario }.to_json()).await;
            assert_eq!(plain.kinds(), as_json.kinds(), "{}", scenario.name());
            assert!(plain.kinds().len() > 4, "{:?}", plain.kinds());
        }
    }
    let unknown = client.prompt(&session, r#"{"command":"run_scenario","scenario":"dance"}"#).await;
    assert_eq!((unknown.code(), unknown.kinds()), (-32602, vec![]));
    assert!(unknown.error()["data"]["scenarios"].as_array().is_some_and(|all| all.contains(&json!("full"))));
}

#[tokio::test]
async fn a_waiting_turn_ends_in_each_way() {
    let mut client = Scripted::v1(json!({}), never).await;
    let session = client.open("/").await;
    let ask = async |client: &mut Scripted| client.prompt(&session, "cancel_status").await.texts()[0].to_owned();
    assert_eq!(ask(&mut client).await, "session/cancel received: no");

    // A request of its own.
    let id = client.send_prompt(&session, "wait_for_cancel").await;
    client.notify("$/cancel_request", json!({ "requestId": id })).await;
    assert_eq!(client.wait(id).await.code(), -32800);
    assert_eq!(ask(&mut client).await, "session/cancel received: no");

    // Two turns of one session, and one of another that goes on.
    let other = client.open("/").await;
    let ids =
        [client.send_prompt(&session, "wait_for_cancel").await, client.send_prompt(&session, "wait_for_cancel").await];
    let third = client.send_prompt(&other, "wait_for_cancel").await;
    client.notify("session/cancel", json!({ "sessionId": session })).await;
    let ended = client.answers(ids).await;
    assert!(ended.iter().all(|answer| answer["result"] == json!({ "stopReason": "cancelled" })), "{ended:?}");
    assert_eq!(ask(&mut client).await, "session/cancel received: yes");
    assert_eq!(client.prompt(&other, "cancel_status").await.texts(), ["session/cancel received: no"]);

    // The end of the session.
    let close = client.send("session/close", json!({ "sessionId": other })).await;
    let [answered, closed] = client.answers([third, close]).await;
    assert_eq!((&answered["result"]["stopReason"], &closed["result"]), (&json!("cancelled"), &json!({})));
    client.notify("session/cancel", json!({ "sessionId": "no such session" })).await;
    assert_eq!(client.prompt(&session, "echo still here").await.texts(), ["still here"]);
}
