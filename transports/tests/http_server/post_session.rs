//! The session that a POST belongs to: header and params.

use super::agent::puppets;
use super::client::{connect, post, say};
use super::sse_client::Events;
use serde_json::json;

#[tokio::test]
async fn p11_the_session_of_the_header_is_put_into_params_that_name_none() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut session = Events::session(address, &id, "s").await;
    for (params, expected) in [
        (r#","params":{"sessionId":"s","a":1}"#, json!({"sessionId":"s","a":1})),
        (r#","params":{"a":1}"#, json!({"sessionId":"s","a":1})),
        (r#","params":null"#, json!({"sessionId":"s"})),
        ("", json!({"sessionId":"s"})),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"session/prompt"{params}}}"#);
        post(body).connection(&id).session("s").send(address).await.is(202, "");
        assert_eq!(session.message().await["result"]["params"], expected);
    }
}

#[tokio::test]
async fn p11_a_header_that_contradicts_the_params_is_refused() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    for (params, text) in [
        (r#"{"sessionId":"t"}"#, "Acp-Session-Id header does not match params.sessionId"),
        (r#"{"sessionId":7}"#, "params.sessionId must be a string"),
        (r#"{"sessionId":null}"#, "params.sessionId must be a string"),
        ("[1]", "Acp-Session-Id header requires object params"),
    ] {
        for method in ["session/prompt", "anything"] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            post(body).connection(&id).session("s").send(address).await.is(400, text);
        }
    }
}

#[tokio::test]
async fn p11_the_last_of_two_session_ids_counts() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"sessionId":"s","sessionId":"t"}}"#;
    let answer = post(body).connection(&id).session("s").send(address).await;
    answer.is(400, "Acp-Session-Id header does not match params.sessionId");
}

#[tokio::test]
async fn p12_methods_that_need_a_session_must_name_one() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    for method in [
        "session/prompt",
        "session/cancel",
        "session/close",
        "session/delete",
        "session/fork",
        "session/load",
        "session/resume",
        "session/set_config_option",
        "session/set_mode",
        "session/set_model",
    ] {
        for params in ["{}", r#"{"sessionId":3}"#, "[]", "null"] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            post(body).connection(&id).send(address).await.is(400, "Acp-Session-Id header required");
        }
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"sessionId":"s"}}}}"#);
        say(address, &id, &body).await;
    }
    for method in ["session/new", "session/list", "session/archive", "terminal/cancel", "anything"] {
        say(address, &id, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}"#)).await;
    }
}

#[tokio::test]
async fn what_belongs_to_the_connection_ignores_the_header() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut events = Events::connection(address, &id).await;
    let cancel = json!({"method":"$/cancel_request","params":{"requestId":1}});
    for (method, params) in [
        ("$/cancel_request", json!({"requestId":1})),
        ("$/other", json!([1])),
        ("_proxy/successor", cancel.clone()),
        ("proxy/successor", json!({"method":"_proxy/successor","params":cancel})),
    ] {
        let body = json!({"jsonrpc":"2.0","method":method,"params":params}).to_string();
        post(body).connection(&id).session("s").send(address).await.is(202, "");
        assert_eq!(events.message().await["params"], json!({"method":method,"params":params}));
    }
}

#[tokio::test]
async fn a_header_that_is_there_twice_or_no_text_is_refused() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#;
    let twice = post(call).connection(&id).session("s").session("t").send(address).await;
    twice.is(400, "an Acp header is there twice");
    let odd = post(call).connection(&id).session("\u{e9}").send(address).await;
    odd.is(400, "an Acp header is no visible ASCII");
}
