//! The order of the decisions about a POST: content type, size, text, connection.

use super::agent::{puppets, real_agents, serve};
use super::client::{INITIALIZE, Socket, connect, post, request, say};
use super::sse_client::Events;
use super::ws_client::Ws;
use greenroom_transports::ServerOptions;
use serde_json::json;

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn p1_the_content_type_must_begin_with_application_json() {
    let (server, agents) = puppets().await;
    let address = server.local_addr();
    for kind in ["text/plain", "Application/JSON", "application/jso"] {
        let answer = request("POST").header("Content-Type", kind).body(INITIALIZE).send(address).await;
        answer.is(415, "Content-Type must be application/json");
    }
    request("POST").body(INITIALIZE).send(address).await.is(415, "Content-Type must be application/json");
    assert_eq!(agents.made(), 0);
    for kind in ["application/json; charset=utf-8", "application/jsonxyz"] {
        let answer = request("POST").header("Content-Type", kind).body(INITIALIZE).send(address).await;
        assert_eq!(answer.status, 200, "{kind}");
    }
}

#[tokio::test]
async fn p2_a_declared_body_above_the_limit_is_refused_before_it_is_read() {
    let (server, _) = puppets().await;
    let mut socket = Socket::open(server.local_addr()).await;
    let length = 16 * MIB + 1;
    socket
        .send(format!(
            "POST /acp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        ))
        .await;
    socket.answer().await.is(413, "POST body too large");
}

#[tokio::test]
async fn p3_a_streamed_body_above_the_limit_is_refused() {
    let (server, _) = serve(ServerOptions::default().with_limits(|limits| limits.body = 100)).await;
    let head =
        "POST /acp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut socket = Socket::open(server.local_addr()).await;
    socket.send(format!("{head}32\r\n{}\r\n33\r\n{}\r\n", "x".repeat(50), "x".repeat(51))).await;
    socket.answer().await.is(413, "POST body too large");
    // Exactly the limit is read; then it is no JSON-RPC that opens anything.
    let mut socket = Socket::open(server.local_addr()).await;
    socket.send(format!("{head}32\r\n{0}\r\n32\r\n{0}\r\n0\r\n\r\n", "x".repeat(50))).await;
    socket.answer().await.is(400, "Acp-Connection-Id header required");
}

#[tokio::test]
async fn p3_a_body_of_exactly_the_limit_is_accepted() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let frame = r#"{"jsonrpc":"2.0","method":"n","params":{"x":""}}"#;
    let filled = frame.replace("\"\"", &format!("\"{}\"", "x".repeat(16 * MIB - frame.len())));
    assert_eq!(filled.len(), 16 * MIB);
    say(address, &id, &filled).await;
}

#[tokio::test]
async fn p3_a_broken_body_is_refused() {
    let (server, _) = puppets().await;
    let mut socket = Socket::open(server.local_addr()).await;
    socket
        .send(
            "POST /acp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        )
        .await;
    socket.answer().await.is(400, "");
}

#[tokio::test]
async fn p4_a_body_that_is_not_utf_8_is_refused() {
    let (server, _) = puppets().await;
    let answer = post([b'{', 0xff, b'}']).send(server.local_addr()).await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().starts_with("Invalid JSON-RPC:"), "{}", answer.text());
}

#[tokio::test]
async fn p8_everything_but_initialize_needs_a_connection() {
    let (server, agents) = puppets().await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}"#;
    for body in [call, "{", "hello", "", "[]", r#"{"jsonrpc":"2.0","method":"initialize"}"#] {
        post(body).send(server.local_addr()).await.is(400, "Acp-Connection-Id header required");
    }
    assert_eq!(agents.made(), 0);
}

#[tokio::test]
async fn p9_an_unknown_connection_is_not_found() {
    let (server, _) = puppets().await;
    for body in ["{}", r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#] {
        post(body).connection("00000000-0000-4000-8000-000000000000").send(server.local_addr()).await.is(404, "");
    }
}

#[tokio::test]
async fn p10_malformed_json_is_the_agents_to_answer() {
    let server = real_agents(ServerOptions::default()).await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut events = Events::connection(address, &id).await;
    for (body, code) in [("{", -32700), ("{}", -32600)] {
        say(address, &id, body).await;
        let answer = events.message().await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &json!(null)), "{body}");
    }
    // The connection is as good as before.
    say(address, &id, r#"{"jsonrpc":"2.0","id":5,"method":"x","params":{"a":1}}"#).await;
    assert_eq!(events.message().await, json!({"jsonrpc":"2.0","id":5,"result":{"echo":{"a":1}}}));
}

#[tokio::test]
async fn p13_a_call_is_accepted_and_answered_on_the_stream() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut events = Events::connection(address, &id).await;
    say(address, &id, r#"{"jsonrpc":"2.0","id":"a","method":"x","params":[1]}"#).await;
    assert_eq!(events.message().await, json!({"jsonrpc":"2.0","id":"a","result":{"method":"x","params":[1]}}));
    // Without any session header, as the Python client does.
    say(address, &id, r#"{"jsonrpc":"2.0","id":9,"result":{"ok":true}}"#).await;
    let seen = events.message().await;
    assert_eq!(seen["params"]["response"], json!({"jsonrpc":"2.0","id":9,"result":{"ok":true}}));
}

#[tokio::test]
async fn p13_the_exact_text_reaches_the_agent() {
    let server = real_agents(ServerOptions::default()).await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut events = Events::connection(address, &id).await;
    let pretty = "\n {\r\n \"jsonrpc\" : \"2.0\", \"id\":1,\n\"method\":\"x\",\"params\":{\"a\":[1,\n2]}}\n ";
    say(address, &id, pretty).await;
    assert_eq!(events.message().await["result"], json!({"echo":{"a":[1,2]}}));
}

#[tokio::test]
async fn p14_an_agent_that_ended_is_an_error() {
    let (server, agents) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    // What it said is not fetched, so the connection is still known for a while.
    let emit = json!({"jsonrpc":"2.0","id":1,"method":"emit","params":{"frames":[{"jsonrpc":"2.0","method":"m"}]}});
    say(address, &id, &emit.to_string()).await;
    say(address, &id, r#"{"jsonrpc":"2.0","id":2,"method":"quit"}"#).await;
    agents.alive(0).await;
    let answer = loop {
        let answer = post(r#"{"jsonrpc":"2.0","id":3,"method":"x"}"#).connection(&id).send(address).await;
        // Its last word may still be on the way to the router.
        if answer.status != 202 {
            break answer;
        }
    };
    answer.is(500, "agent closed");
}

#[tokio::test]
async fn p15_accept_does_not_matter_for_a_post() {
    let (server, _) = puppets().await;
    let answer = post(INITIALIZE).header("Accept", "text/html").send(server.local_addr()).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn p16_a_post_with_the_id_of_a_websocket_is_answered_on_the_socket() {
    let (server, _) = puppets().await;
    let mut socket = Ws::open(server.local_addr()).await;
    let id = socket.id.clone();
    say(server.local_addr(), &id, r#"{"jsonrpc":"2.0","id":7,"method":"x"}"#).await;
    assert_eq!(socket.message().await["id"], 7);
}

#[tokio::test]
async fn other_methods_are_not_allowed() {
    let (server, _) = puppets().await;
    for method in ["PUT", "PATCH", "OPTIONS", "HEAD"] {
        let mut socket = Socket::open(server.local_addr()).await;
        socket.send(request(method).bytes()).await;
        let (status, headers) = socket.head().await;
        assert_eq!(status, 405, "{method}");
        assert_eq!(headers["allow"], "GET,POST,DELETE");
    }
}

#[tokio::test]
async fn two_posts_with_one_id_are_both_answered() {
    let (server, _) = puppets().await;
    let address = server.local_addr();
    let id = connect(address).await;
    let mut first = Events::session(address, &id, "a").await;
    let mut second = Events::session(address, &id, "b").await;
    for session in ["a", "b"] {
        let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"sessionId":"{session}"}}}}"#);
        say(address, &id, &call).await;
    }
    assert_eq!(first.message().await["result"]["params"]["sessionId"], "a");
    assert_eq!(second.message().await["result"]["params"]["sessionId"], "b");
}
