//! WebSocket: the upgrade, messages in both directions, and every way to end.

use super::agent::{puppets, real_agents, serve};
use super::client::{Socket, post};
use super::ws_client::{Ws, upgrade};
use greenroom_actors::Batches;
use greenroom_transports::{CorsOptions, ServerOptions};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

fn call(id: u64, method: &str) -> String {
    json!({"jsonrpc":"2.0","id":id,"method":method,"params":{}}).to_string()
}

#[tokio::test]
async fn an_upgrade_makes_a_connection_and_an_agent() {
    let (server, agents) = puppets().await;
    let mut socket = Ws::open(server.local_addr()).await;
    agents.alive(1).await;
    assert_eq!((server.connections(), socket.id.len()), (1, 36));
    socket.send(call(0, "initialize")).await;
    assert_eq!(socket.message().await, json!({"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}));
}

#[tokio::test]
async fn an_upgrade_comes_before_the_rules_of_streams() {
    let (server, _) = puppets().await;
    // It accepts no event stream and names a connection that is not there.
    assert!(Ws::try_open(server.local_addr(), &upgrade().connection("nobody")).await.is_ok());
}

#[tokio::test]
async fn an_incomplete_upgrade_is_an_ordinary_get() {
    let (server, _) = puppets().await;
    let whole = upgrade().bytes();
    let text = String::from_utf8(whole).expect("ascii");
    for header in ["Connection", "Upgrade", "Sec-WebSocket-Version", "Sec-WebSocket-Key"] {
        let part: String =
            text.split_inclusive("\r\n").filter(|line| !line.starts_with(&format!("{header}:"))).collect();
        let mut socket = Socket::open(server.local_addr()).await;
        socket.send(part).await;
        socket.answer().await.is(406, "client must accept text/event-stream");
    }
    let mut socket = Socket::open(server.local_addr()).await;
    socket.send(text.replace("Version: 13", "Version: 8")).await;
    assert_eq!(socket.answer().await.status, 406);
}

#[tokio::test]
async fn an_origin_is_refused_while_cors_is_off() {
    let (server, agents) = puppets().await;
    let address = server.local_addr();
    for origin in ["https://evil.example", "http://127.0.0.1"] {
        let refused = Ws::try_open(address, &upgrade().header("Origin", origin)).await.err().expect("refused");
        refused.is(403, "WebSocket origin not allowed");
    }
    assert_eq!(agents.made(), 0);
    assert!(Ws::try_open(address, &upgrade()).await.is_ok(), "no origin, no browser");
}

#[tokio::test]
async fn a_listed_origin_must_match_exactly() {
    let cors = CorsOptions::allow_origins(["http://page.example"]).expect("legal");
    let (server, _) = serve(ServerOptions::default().with_cors(cors)).await;
    let address = server.local_addr();
    for origin in ["http://page.example:80", "https://page.example", "http://page.example.evil.example"] {
        let refused = Ws::try_open(address, &upgrade().header("Origin", origin)).await.err().expect("refused");
        refused.is(403, "WebSocket origin not allowed");
    }
    assert!(Ws::try_open(address, &upgrade().header("Origin", "http://page.example")).await.is_ok());
}

#[tokio::test]
async fn no_subprotocol_and_no_extension_is_chosen() {
    let (server, _) = puppets().await;
    let request = upgrade()
        .header("Sec-WebSocket-Protocol", "acp")
        .header("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits");
    // Opening it checks that the answer has neither.
    let mut socket = Ws::try_open(server.local_addr(), &request).await.unwrap_or_else(|_| panic!("no WebSocket"));
    socket.send(call(1, "x")).await;
    assert_eq!(socket.message().await["id"], 1);
}

#[tokio::test]
async fn malformed_text_is_answered_and_the_socket_stays() {
    let server = real_agents(ServerOptions::default()).await;
    let mut socket = Ws::open(server.local_addr()).await;
    socket.send("{").await;
    let answer = socket.message().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32700), &Value::Null));
    socket.send(call(1, "x")).await;
    assert_eq!(socket.message().await["id"], 1);
}

#[tokio::test]
async fn a_batch_is_one_frame_and_its_replies_are_one_frame() {
    let server = real_agents(ServerOptions::default()).await;
    let mut socket = Ws::open(server.local_addr()).await;
    socket.send(format!("[{},{},{{}}]", call(1, "a"), call(2, "b"))).await;
    let answers = socket.message().await;
    let ids: Vec<_> = answers.as_array().expect("an array").iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [json!(1), json!(2), Value::Null]);
}

#[tokio::test]
async fn batches_can_be_refused() {
    let (server, _) = serve(ServerOptions::default().with_batches(Batches::Reject)).await;
    let mut socket = Ws::open(server.local_addr()).await;
    socket.send(format!("[{},{}]", call(1, "a"), r#"{"jsonrpc":"2.0","method":"n"}"#)).await;
    let answer = socket.message().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &Value::Null));
    // Nothing of it reached the agent: the next frame is the answer to the next call.
    socket.send(call(2, "x")).await;
    assert_eq!(socket.message().await["id"], 2);
}

#[tokio::test]
async fn binary_is_ignored_and_a_ping_is_answered() {
    let (server, _) = puppets().await;
    let mut socket = Ws::open(server.local_addr()).await;
    socket.send(Message::Binary(call(1, "x").into_bytes().into())).await;
    socket.send(Message::Ping("hi".into())).await;
    let next = futures_util::StreamExt::next(&mut socket.socket).await;
    assert!(matches!(next, Some(Ok(Message::Pong(text))) if text == "hi"));
    socket.send(call(2, "x")).await;
    assert_eq!(socket.message().await["id"], 2);
}

#[tokio::test]
async fn a_message_in_fragments_is_one_message() {
    let (server, _) = puppets().await;
    let mut socket = Ws::open(server.local_addr()).await;
    use tokio_tungstenite::tungstenite::protocol::frame::Frame;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
    let text = call(1, "x");
    let (head, tail) = text.split_at(10);
    let first = Frame::message(head.as_bytes().to_vec(), OpCode::Data(Data::Text), false);
    let last = Frame::message(tail.as_bytes().to_vec(), OpCode::Data(Data::Continue), true);
    socket.send(Message::Frame(first)).await;
    socket.send(Message::Ping("between".into())).await;
    socket.send(Message::Frame(last)).await;
    assert_eq!(socket.message().await["id"], 1);
}

#[tokio::test]
async fn a_close_is_answered_and_takes_the_agent_along() {
    let (server, agents) = puppets().await;
    let mut socket = Ws::open(server.local_addr()).await;
    socket.send(Message::Close(None)).await;
    assert!(matches!(socket.next().await, Some(Message::Close(_))));
    assert!(socket.next().await.is_none());
    agents.alive(0).await;
    while server.connections() > 0 {
        tokio::task::yield_now().await;
    }
    post("{}").connection(&socket.id).send(server.local_addr()).await.is(404, "");
}

#[tokio::test]
async fn a_lost_socket_takes_the_agent_along() {
    let (server, agents) = puppets().await;
    let mut socket = Ws::open(server.local_addr()).await;
    // In the middle of work.
    socket.send(call(1, "silent")).await;
    agents.alive(1).await;
    drop(socket);
    agents.alive(0).await;
}

#[tokio::test]
async fn the_end_of_the_agent_comes_behind_what_it_said() {
    let (server, agents) = puppets().await;
    let mut socket = Ws::open(server.local_addr()).await;
    let flood = json!({"jsonrpc":"2.0","id":1,"method":"flood","params":{"sessionId":"s","count":200,"bytes":10_000}});
    socket.send(flood.to_string()).await;
    socket.send(call(2, "quit")).await;
    agents.alive(0).await;
    for n in 0..200 {
        assert_eq!(socket.message().await["params"]["n"], n);
    }
    assert_eq!(socket.message().await["id"], 1);
    assert_eq!(socket.close_code().await, Some(1000));
    assert!(socket.next().await.is_none());
}

#[tokio::test]
async fn a_message_above_the_limit_is_a_close_with_code_1009() {
    let (server, agents) = serve(ServerOptions::default().with_limits(|limits| limits.websocket_message = 1000)).await;
    let mut socket = Ws::open(server.local_addr()).await;
    socket.send("x".repeat(1001)).await;
    assert_eq!(socket.close_code().await, Some(1009));
    agents.alive(0).await;
}

#[tokio::test]
async fn text_that_is_not_utf_8_is_a_close_with_code_1007() {
    let (server, agents) = puppets().await;
    let mut socket = Ws::open(server.local_addr()).await;
    use tokio_tungstenite::tungstenite::protocol::frame::Frame;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
    let frame = Frame::message(vec![b'"', 0xff, b'"'], OpCode::Data(Data::Text), true);
    socket.send(Message::Frame(frame)).await;
    assert_eq!(socket.close_code().await, Some(1007));
    agents.alive(0).await;
}

#[tokio::test]
async fn an_unmasked_frame_ends_the_connection() {
    let (server, agents) = puppets().await;
    let mut socket = Socket::open(server.local_addr()).await;
    socket.send(upgrade().bytes()).await;
    assert_eq!(socket.head().await.0, 101);
    socket.send(b"\x81\x02{}").await;
    agents.alive(0).await;
}

#[tokio::test]
async fn messages_right_behind_the_upgrade_are_not_lost() {
    let (server, _) = puppets().await;
    let mut socket = Socket::open(server.local_addr()).await;
    // A masked text frame with the mask 0.
    let text = call(1, "x");
    let mut bytes = upgrade().bytes();
    bytes.extend([0x81, 0x80 | text.len() as u8, 0, 0, 0, 0]);
    assert!(text.len() < 126);
    bytes.extend(text.as_bytes());
    socket.send(bytes).await;
    assert_eq!(socket.head().await.0, 101);
    let mut head = [0; 2];
    tokio::io::AsyncReadExt::read_exact(&mut socket.stream, &mut head).await.expect("an answer");
    assert_eq!(head[0], 0x81);
}
