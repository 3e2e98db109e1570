//! How a connection ends: in order, by a failure, by being dropped.

use futures_util::FutureExt as _;
use greenroom_actors::{Agent, Client, ConnectionTo, UntypedMessage};
use greenroom_transports::HttpClientOptions;
use serde_json::json;
use tokio::time::Duration;

use crate::local::{Local, call, direct, in_session, initialize, note, reason, result};
use crate::server::Server;

#[tokio::test]
async fn a_message_that_the_server_refuses_ends_the_connection() {
    let mut server = Server::start().await;
    let (local, _events) = Local::connected(&mut server).await;
    local.abandon().await;
    server.expect("DELETE").await.accepted().await;
    for (status, named) in [
        (400, "it refuses the message"),
        (401, "check the credentials"),
        (404, "has forgotten the connection; check the URL, or connect again"),
        (413, "too long"),
        (500, "the agent or the server failed"),
        (503, "it is busy"),
    ] {
        let (local, _events) = Local::connected(&mut server).await;
        local.send(call(1, "_x", json!({})));
        server.expect("POST").await.answer(status, &[], "why").await;
        let error = local.outcome().await.unwrap_err();
        assert_eq!(error.data.as_ref().unwrap()["status"], status);
        assert!(reason(&error).contains("posting a message failed") && reason(&error).contains(named), "{error}");
        let delete = server.expect("DELETE").await;
        assert_eq!(delete.header("acp-connection-id"), Some("c-1"));
        delete.accepted().await;
    }
}

#[tokio::test]
async fn the_end_of_any_stream_ends_the_connection() {
    let mut server = Server::start().await;
    let (local, events) = Local::connected(&mut server).await;
    events.end().await;
    assert!(local.reason().await.contains("ended an event stream"));
    server.expect("DELETE").await.accepted().await;

    let (local, _events) = Local::connected(&mut server).await;
    local.send(call(1, "session/prompt", in_session("s")));
    let session = server.expect("GET").await.events().await;
    server.expect("POST").await.accepted().await;
    session.end().await;
    assert!(local.reason().await.contains("ended an event stream"));
}

#[tokio::test]
async fn a_stream_that_breaks_ends_the_connection_after_what_came_before() {
    let mut server = Server::start().await;
    let (mut local, mut events) = Local::connected(&mut server).await;
    events.send(note("_last", json!({}))).await;
    events.write("data: {\"half").await;
    drop(events);
    assert_eq!(local.recv().await["method"], "_last");
    assert!(local.reason().await.contains("an event stream broke"));
}

#[tokio::test]
async fn no_stream_is_opened_again_by_itself() {
    let mut server = Server::start().await;
    let (local, events) = Local::connected(&mut server).await;
    events.end().await;
    local.outcome().await.unwrap_err();
    server.expect("DELETE").await.accepted().await;
    server.stays_quiet().await;
}

#[tokio::test]
async fn finishing_posts_everything_and_then_says_goodbye() {
    let mut server = Server::start().await;
    let (mut local, mut events) = Local::connected(&mut server).await;
    events.send(call(9, "_ask", json!({}))).await;
    local.recv().await;
    local.send(call(1, "_one", json!({})));
    local.send(call(2, "session/prompt", in_session("s")));
    local.send(result(9, json!({})));
    local.end();
    let mut posted = Vec::new();
    let mut streams = Vec::new();
    let delete = loop {
        let heard = server.next().await;
        match heard.method.as_str() {
            "POST" => {
                posted.push(heard.json()["id"].as_i64().unwrap());
                heard.accepted().await;
            }
            "GET" => streams.push(heard.events().await),
            _ => break heard,
        }
    };
    posted.sort_unstable();
    assert_eq!((posted, delete.method.as_str()), (vec![1, 2, 9], "DELETE"));
    assert_eq!(delete.header("acp-connection-id"), Some("c-1"));
    assert_eq!(delete.header("acp-session-id"), None);
    delete.accepted().await;
    local.outcome().await.unwrap();
    events.left().await;
}

#[tokio::test]
async fn a_goodbye_that_fails_is_of_no_interest() {
    let mut server = Server::start().await;
    let (mut local, _events) = Local::connected(&mut server).await;
    local.end();
    server.expect("DELETE").await.answer(500, &[], "").await;
    local.outcome().await.unwrap();
}

#[tokio::test]
async fn a_goodbye_without_answer_takes_no_longer_than_its_deadline() {
    let mut server = Server::start().await;
    let options = HttpClientOptions::default().with_finish_deadline(Duration::from_millis(50));
    let client = direct(&server.url()).with_options(options);
    let (mut local, _events) = Local::connect(client, &mut server).await;
    local.end();
    let _unanswered = server.expect("DELETE").await;
    local.outcome().await.unwrap();
}

#[tokio::test]
async fn a_dropped_connection_says_goodbye_if_it_can() {
    let mut server = Server::start().await;
    let (local, events) = Local::connected(&mut server).await;
    local.abandon().await;
    assert_eq!(server.expect("DELETE").await.header("acp-connection-id"), Some("c-1"));
    events.left().await;
}

#[tokio::test]
async fn an_initialize_that_nobody_waits_for_is_abandoned() {
    let mut server = Server::start().await;
    let mut local = Local::start(direct(&server.url()));
    local.send(initialize(0));
    let _unanswered = server.expect("POST").await;
    local.end();
    local.outcome().await.unwrap();
    server.stays_quiet().await;
}

#[tokio::test]
async fn open_requests_fail_with_the_cause() {
    let mut server = Server::start().await;
    let client = direct(&server.url());
    let asking = Client.builder().connect_with(client, async |cx: ConnectionTo<Agent>| {
        let message = |method: &str| UntypedMessage::new(method, json!({})).unwrap();
        cx.send_request(message("initialize")).block_task().await?;
        let error = cx.send_request(message("_never")).block_task().await.unwrap_err();
        Ok(error)
    });
    let serving = async {
        server.expect("POST").await.initialized().await;
        let events = server.expect("GET").await.events().await;
        server.expect("POST").await.accepted().await;
        events.end().await;
    };
    let (asked, ()) = tokio::join!(asking, serving);
    // Either the request or the whole connection is told first.
    let error = asked.unwrap_or_else(|error| error);
    assert!(error.to_string().contains("the server ended an event stream"), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_take_a_message_is_given_up() {
    let mut server = Server::start().await;
    let options = HttpClientOptions::default().with_post_deadline(Duration::from_millis(50));
    let client = direct(&server.url()).with_options(options);
    let (local, _events) = Local::connect(client, &mut server).await;
    local.send(call(1, "_x", json!({})));
    let _unanswered = server.expect("POST").await;
    assert!(local.reason().await.contains("posting a message took longer than 50ms"));
}

#[tokio::test]
async fn a_stream_without_headers_is_given_up() {
    let mut server = Server::start().await;
    let options = HttpClientOptions::default().with_open_deadline(Duration::from_millis(50));
    let local = Local::start(direct(&server.url()).with_options(options));
    local.send(initialize(0));
    server.expect("POST").await.initialized().await;
    let _unanswered = server.expect("GET").await;
    assert!(local.reason().await.contains("opening the connection's event stream took longer than 50ms"));
}

#[tokio::test]
async fn an_answer_to_initialize_may_take_longer_than_any_post() {
    let mut server = Server::start().await;
    let options = HttpClientOptions::default()
        .with_post_deadline(Duration::from_millis(20))
        .with_open_deadline(Duration::from_millis(20));
    let mut local = Local::start(direct(&server.url()).with_options(options));
    local.send(initialize(0));
    let post = server.expect("POST").await;
    local.hears_nothing().await;
    post.initialized().await;
    assert!(local.recv().boxed().await["result"].is_object());
}
