//! A connection over one WebSocket.

use futures_util::{SinkExt as _, StreamExt as _};
use greenroom_transports::{HttpClient, HttpClientOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Duration, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use crate::local::{Local, call, direct, in_session, initialize, note, result};
use crate::server::{PATIENCE, QUIET, Server};

async fn text(
    socket: &mut (impl futures_util::Stream<Item = Result<Message, tokio_tungstenite::tungstenite::Error>> + Unpin),
) -> Value {
    let heard = timeout(PATIENCE, socket.next()).await.expect("nothing came").unwrap().unwrap();
    assert!(heard.is_text(), "{heard:?}");
    serde_json::from_str(heard.to_text().unwrap()).unwrap()
}

#[tokio::test]
async fn messages_travel_one_a_text_frame_without_headers_or_order_of_sessions() {
    let mut server = Server::start().await;
    let mut local = Local::start(direct(&server.ws_url()));
    let sent = [initialize(0), call(1, "session/prompt", in_session("s")), note("_n", json!({})), result(9, json!({}))];
    for message in &sent {
        local.send(message.clone());
    }
    let get = server.expect("GET").await;
    assert_eq!(get.target, "/acp");
    assert_eq!(get.header("upgrade"), Some("websocket"));
    assert_eq!(get.header("connection"), Some("Upgrade"));
    assert_eq!(get.header("sec-websocket-version"), Some("13"));
    assert_eq!((get.header("sec-websocket-protocol"), get.header("sec-websocket-extensions")), (None, None));
    let mut socket = get.upgraded().await;
    for message in sent {
        assert_eq!(text(&mut socket).await, message);
    }
    let back = [result(0, json!({ "text": "中😀é" })), json!([note("_a", json!({})), note("_b", json!({}))])];
    for message in &back {
        socket.send(Message::text(message.to_string())).await.unwrap();
    }
    // Nothing but text has a meaning; a ping is answered.
    socket.send(Message::binary("{}")).await.unwrap();
    socket.send(Message::Ping("p".into())).await.unwrap();
    socket
        .send(Message::text(serde_json::to_string_pretty(&note("_pretty", json!({ "a": 1 }))).unwrap()))
        .await
        .unwrap();
    for message in back {
        assert_eq!(local.recv().await, message);
    }
    assert_eq!(local.recv().await["method"], "_pretty");
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::Pong("p".into()));
}

#[tokio::test]
async fn nothing_is_sent_before_the_handshake_is_checked() {
    type Change = fn(String) -> String;
    let rows: [(&str, Change); 7] = [
        ("101", |answer| answer.replace("101 Switching Protocols", "200 OK")),
        ("Upgrade: websocket", |answer| answer.replace("upgrade: websocket", "upgrade: h2c")),
        ("Connection: upgrade", |answer| answer.replace("connection: Upgrade", "connection: keep-alive")),
        ("Sec-WebSocket-Accept", |answer| answer.replace("sec-websocket-accept: ", "sec-websocket-accept: A")),
        ("Sec-WebSocket-Accept", |answer| answer.replace("sec-websocket-accept", "x-nothing")),
        ("subprotocol", |answer| answer + "sec-websocket-protocol: acp\r\n"),
        ("extension", |answer| answer + "sec-websocket-extensions: permessage-deflate\r\n"),
    ];
    for (named, change) in rows {
        let mut server = Server::start().await;
        let local = Local::start(direct(&server.ws_url()));
        local.send(initialize(0));
        let get = server.expect("GET").await;
        let answer = change(get.upgrade_answer()) + "\r\n";
        let mut stream = get.raw(&answer).await;
        let said = local.reason().await;
        let named = if named == "101" { "answered 200" } else { named };
        assert!(said.contains(named), "{named}: {said}");
        let mut rest = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut rest)).await.unwrap().unwrap();
        assert_eq!(rest, b"", "{named}");
    }
}

#[tokio::test]
async fn default_headers_cannot_change_the_handshake() {
    let mut server = Server::start().await;
    let mut headers = reqwest::header::HeaderMap::new();
    for (name, value) in [
        ("connection", "close"),
        ("upgrade", "h2c"),
        ("sec-websocket-key", "x"),
        ("sec-websocket-version", "1"),
        ("x-mine", "y"),
    ] {
        headers.insert(reqwest::header::HeaderName::from_static(name), value.parse().unwrap());
    }
    let client = HttpClient::builder(server.ws_url())
        .configure_http(|http| http.no_proxy().default_headers(headers))
        .build()
        .unwrap();
    let local = Local::start(client);
    local.send(initialize(0));
    let get = server.expect("GET").await;
    for (name, value) in
        [("connection", "Upgrade"), ("upgrade", "websocket"), ("sec-websocket-version", "13"), ("x-mine", "y")]
    {
        let values: Vec<_> = get.headers.iter().filter(|(other, _)| other == name).map(|(_, it)| it.as_str()).collect();
        assert_eq!(values, [value], "{name}");
    }
    let mut socket = get.upgraded().await;
    assert_eq!(text(&mut socket).await, initialize(0));
}

#[tokio::test]
async fn a_close_by_the_server_is_an_error_with_its_code_but_not_its_reason() {
    let mut server = Server::start().await;
    let mut local = Local::start(direct(&server.ws_url()));
    let mut socket = server.expect("GET").await.upgraded().await;
    socket.send(Message::text(note("_last", json!({})).to_string())).await.unwrap();
    let frame = CloseFrame { code: 1001.into(), reason: "private".into() };
    socket.send(Message::Close(Some(frame))).await.unwrap();
    assert_eq!(local.recv().await["method"], "_last");
    let error = local.outcome().await.unwrap_err();
    assert_eq!(error.data.as_ref().unwrap()["closeCode"], 1001);
    assert!(error.to_string().contains("the server closed the WebSocket with code 1001"), "{error}");
    assert!(!error.to_string().contains("private"));
}

#[tokio::test]
async fn a_socket_that_breaks_or_ends_is_an_error() {
    for rest in [&b""[..], &[0xff, 0xff, 0xff], &[0x81, 0x7f, 0]] {
        let mut server = Server::start().await;
        let local = Local::start(direct(&server.ws_url()));
        let get = server.expect("GET").await;
        let answer = get.upgrade_answer() + "\r\n";
        let mut stream = get.raw(&answer).await;
        stream.write_all(rest).await.unwrap();
        drop(stream);
        let said = local.reason().await;
        assert!(said.contains("the WebSocket broke") || said.contains("closed the WebSocket"), "{said}");
    }
}

#[tokio::test]
async fn finishing_sends_everything_and_then_a_close_and_hears_the_last_words() {
    let mut server = Server::start().await;
    let mut local = Local::start(direct(&server.ws_url()));
    for index in 0..20 {
        local.send(note("_n", json!({ "n": index })));
    }
    local.end();
    let mut socket = server.expect("GET").await.upgraded().await;
    for index in 0..20 {
        assert_eq!(text(&mut socket).await["params"]["n"], index);
    }
    assert!(matches!(socket.next().await, Some(Ok(Message::Close(_)))));
    // Both halves are closed: whatever comes now is dropped.
    assert!(socket.next().await.is_none_or(|end| end.is_err()));
    local.outcome().await.unwrap();
}

#[tokio::test]
async fn a_close_without_answer_takes_no_longer_than_its_deadline() {
    let mut server = Server::start().await;
    let options = HttpClientOptions::default().with_finish_deadline(Duration::from_millis(50));
    let mut local = Local::start(direct(&server.ws_url()).with_options(options));
    local.end();
    let get = server.expect("GET").await;
    let answer = get.upgrade_answer() + "\r\n";
    let _unread = get.raw(&answer).await;
    local.outcome().await.unwrap();
}

#[tokio::test]
async fn a_handshake_without_answer_is_given_up() {
    let mut server = Server::start().await;
    let options = HttpClientOptions::default().with_open_deadline(Duration::from_millis(50));
    let local = Local::start(direct(&server.ws_url()).with_options(options));
    let _unanswered = server.expect("GET").await;
    assert!(local.reason().await.contains("opening the WebSocket took longer than 50ms"));
}

#[tokio::test]
async fn a_dropped_connection_drops_its_socket() {
    let mut server = Server::start().await;
    let local = Local::start(direct(&server.ws_url()));
    let mut socket = server.expect("GET").await.upgraded().await;
    local.abandon().await;
    assert!(timeout(PATIENCE, socket.next()).await.unwrap().is_none_or(|end| end.is_err()));
}

#[tokio::test]
async fn reading_goes_on_while_the_server_does_not_read() {
    let mut server = Server::start().await;
    let mut local = Local::start(direct(&server.ws_url()));
    let get = server.expect("GET").await;
    let answer = get.upgrade_answer() + "\r\n";
    let mut stream = get.raw(&answer).await;
    // More than the sockets hold.
    local.send(note("_large", json!({ "x": "x".repeat(32 * 1024 * 1024) })));
    let message = note("_in", json!({})).to_string();
    stream.write_all(&[0x81, u8::try_from(message.len()).unwrap()]).await.unwrap();
    stream.write_all(message.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    assert_eq!(local.recv().await["method"], "_in");
    assert!(timeout(QUIET, local.outcome()).await.is_err());
}
