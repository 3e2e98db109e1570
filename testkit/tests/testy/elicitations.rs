//! Elicitations: modes, scopes, answers, and clients that cannot.

use serde_json::{Value, json};

use crate::scenarios::capable;
use crate::support::{Scripted, friendly, never, result};

#[tokio::test]
async fn every_mode_scope_and_answer_is_covered() {
    let mut client = Scripted::v1(capable(), friendly).await;
    let session = client.open("/").await;
    let id = client.send_prompt(&session, "elicitations").await;
    let answer = client.wait(id).await;
    let asked: Vec<_> = answer.before.iter().filter(|message| message["method"] == "elicitation/create").collect();
    let scope = |message: &Value| match (&message["params"]["sessionId"], &message["params"]["requestId"]) {
        (Value::String(id), Value::Null) if *id == session => "session",
        (Value::Null, request) if *request == id => "request",
        other => panic!("one scope: {other:?}"),
    };
    let all: Vec<_> = asked.iter().map(|message| (message["params"]["mode"].as_str(), scope(message))).collect();
    let form = [(Some("form"), "session"), (Some("form"), "request"), (Some("form"), "session")];
    let url = form.map(|(_, scope)| (Some("url"), scope));
    assert_eq!(all, [form, url].concat());
    let said = [
        "elicitation/create form session: accept [agree, count, name]",
        "elicitation/create form request: decline",
        "elicitation/create form session: cancel",
        "elicitation/create url session: accept []",
        "elicitation/create url request: decline",
        "elicitation/create url session: cancel",
    ];
    assert_eq!(answer.texts(), said);
    // The one that was accepted is completed, under its own id.
    let complete = answer.before.iter().filter(|message| message["method"] == "elicitation/complete");
    let complete: Vec<_> = complete.map(|message| &message["params"]["elicitationId"]).collect();
    assert_eq!(complete, [&asked[3]["params"]["elicitationId"]]);
    let fields = &asked[0]["params"]["requestedSchema"]["properties"];
    let types: Vec<_> = fields.as_object().expect("fields").values().map(|field| field["type"].clone()).collect();
    for kind in ["string", "integer", "number", "boolean", "array"] {
        assert!(types.contains(&json!(kind)), "{kind}: {fields}");
    }
}

#[tokio::test]
async fn without_forms_nothing_is_asked() {
    for capabilities in [json!({}), json!({ "elicitation": {} }), json!({ "elicitation": { "url": {} } })] {
        let mut client = Scripted::v1(capabilities.clone(), never).await;
        let session = client.open("/").await;
        let answer = client.prompt(&session, "elicitations").await;
        assert_eq!((answer.code(), answer.before.len()), (-32602, 0), "{capabilities}");
        assert_eq!(answer.error()["data"]["reason"], "the client did not advertise elicitation.form");
    }
}

#[tokio::test]
async fn without_addresses_only_forms_are_asked() {
    let mut client = Scripted::v1(json!({ "elicitation": { "form": {} } }), friendly).await;
    let session = client.open("/").await;
    let answer = client.prompt(&session, "elicitations").await;
    assert_eq!((answer.code(), answer.methods()), (-32602, vec!["elicitation/create"; 3]));
    assert_eq!(answer.error()["data"]["reason"], "the client did not advertise elicitation.url");
}

fn declines(request: &Value) -> Value {
    result(request, json!({ "action": "decline" }))
}

#[tokio::test]
async fn what_is_declined_is_not_completed() {
    let mut client = Scripted::v1(capable(), declines).await;
    let session = client.open("/").await;
    let answer = client.prompt(&session, "elicitations").await;
    assert_eq!(answer.methods(), ["elicitation/create"; 6]);
    answer.result();
}
