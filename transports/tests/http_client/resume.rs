//! Event streams that go on behind their last event.

use greenroom_transports::{HttpClient, HttpClientOptions};
use serde_json::json;

use crate::local::{Local, call, direct, in_session, note, reason};
use crate::server::Server;

fn resuming(server: &Server, attempts: u32) -> HttpClient {
    direct(&server.url()).with_options(HttpClientOptions::default().with_resume_attempts(attempts))
}

#[tokio::test]
async fn a_connections_stream_goes_on_behind_its_last_event() {
    let mut server = Server::start().await;
    let client = resuming(&server, 2);
    let (mut local, mut events) = Local::connect(client, &mut server).await;
    events.write(&format!("id: a-1\ndata: {}\n\n", note("_one", json!({})))).await;
    assert_eq!(local.recv().await["method"], "_one");
    // In the middle of an event: the half that came is not taken for one.
    events.write("id: a-2\ndata: {\"half").await;
    drop(events);
    let again = server.expect("GET").await;
    assert_eq!(again.header("last-event-id"), Some("a-1"));
    assert_eq!(again.header("acp-connection-id"), Some("c-1"));
    let mut events = again.events().await;
    events.write(&format!("id: a-2\ndata: {}\n\n", note("_two", json!({})))).await;
    assert_eq!(local.recv().await["method"], "_two");
    // In order is no reason to stop either: proxies end long responses.
    events.end().await;
    let again = server.expect("GET").await;
    assert_eq!(again.header("last-event-id"), Some("a-2"));
    let mut events = again.events().await;
    events.write(&format!("data: {}\n\n", note("_three", json!({})))).await;
    assert_eq!(local.recv().await["method"], "_three");
}

#[tokio::test]
async fn a_stream_goes_on_behind_an_id_that_came_without_a_message() {
    let mut server = Server::start().await;
    let client = resuming(&server, 1);
    let (mut local, mut events) = Local::connect(client, &mut server).await;
    events.write("id: a-0\n\n").await;
    events.end().await;
    let again = server.expect("GET").await;
    assert_eq!(again.header("last-event-id"), Some("a-0"));
    again.events().await.send(note("_one", json!({}))).await;
    assert_eq!(local.recv().await["method"], "_one");
}

#[tokio::test]
async fn a_sessions_stream_goes_on_and_its_turn_ends() {
    let mut server = Server::start().await;
    let client = resuming(&server, 1);
    let (mut local, _events) = Local::connect(client, &mut server).await;
    local.send(call(1, "session/prompt", in_session("s")));
    let mut session = server.expect("GET").await.events().await;
    server.expect("POST").await.accepted().await;
    session.write(&format!("id: s-1\ndata: {}\n\n", note("session/update", in_session("s")))).await;
    assert_eq!(local.recv().await["method"], "session/update");
    session.end().await;
    let again = server.expect("GET").await;
    assert_eq!((again.header("last-event-id"), again.header("acp-session-id")), (Some("s-1"), Some("s")));
    let mut session = again.events().await;
    session.send(json!({ "jsonrpc": "2.0", "id": 1, "result": {} })).await;
    assert_eq!(local.recv().await["id"], 1);
}

#[tokio::test]
async fn a_session_that_is_closed_while_its_stream_is_down_can_be_opened_again() {
    let mut server = Server::start().await;
    let client = resuming(&server, 5);
    let (mut local, mut events) = Local::connect(client, &mut server).await;
    local.send(call(1, "session/prompt", in_session("s")));
    let mut session = server.expect("GET").await.events().await;
    server.expect("POST").await.accepted().await;
    session.write(&format!("id: s-1\ndata: {}\n\n", note("session/update", in_session("s")))).await;
    assert_eq!(local.recv().await["method"], "session/update");
    session.end().await;
    let late = server.expect("GET").await;
    assert_eq!(late.header("last-event-id"), Some("s-1"));
    local.send(call(2, "session/close", in_session("s")));
    server.expect("POST").await.accepted().await;
    events.send(json!({ "jsonrpc": "2.0", "id": 2, "result": {} })).await;
    assert_eq!(local.recv().await["id"], 2);
    local.send(call(3, "session/load", in_session("s")));
    let fresh = server.expect("GET").await;
    assert_eq!((fresh.header("last-event-id"), fresh.header("acp-session-id")), (None, Some("s")));
    let mut fresh = fresh.events().await;
    server.expect("POST").await.accepted().await;
    // Nobody wants what the old stream would have said.
    late.events().await.send(note("stale", in_session("s"))).await;
    fresh.send(note("session/update", in_session("s"))).await;
    assert_eq!(local.recv().await["method"], "session/update");
}

#[tokio::test]
async fn attempts_without_a_message_are_counted() {
    let mut server = Server::start().await;
    let client = resuming(&server, 2);
    let (mut local, mut events) = Local::connect(client, &mut server).await;
    events.write(&format!("id: a-1\ndata: {}\n\n", note("_one", json!({})))).await;
    local.recv().await;
    events.end().await;
    server.expect("GET").await.answer(503, &[], "").await;
    server.expect("GET").await.events().await.end().await;
    assert!(local.reason().await.contains("ended an event stream"));
    server.expect("DELETE").await.accepted().await;
}

#[tokio::test]
async fn events_that_are_lost_end_the_connection_and_say_so() {
    let mut server = Server::start().await;
    let client = resuming(&server, 5);
    let (mut local, mut events) = Local::connect(client, &mut server).await;
    events.write(&format!("id: a-1\ndata: {}\n\n", note("_one", json!({})))).await;
    local.recv().await;
    events.end().await;
    server.expect("GET").await.answer(410, &[], "").await;
    let error = local.outcome().await.unwrap_err();
    assert_eq!(error.data.as_ref().unwrap()["status"], 410);
    assert!(reason(&error).contains("is lost"), "{error}");
}

#[tokio::test]
async fn without_an_id_there_is_no_place_to_go_on_from() {
    let mut server = Server::start().await;
    let client = resuming(&server, 5);
    let (mut local, mut events) = Local::connect(client, &mut server).await;
    events.send(note("_one", json!({}))).await;
    local.recv().await;
    events.end().await;
    assert!(local.reason().await.contains("ended an event stream"));
}

#[cfg(feature = "service")]
mod with_our_server {
    use greenroom_actors::{Agent, Client, ConnectTo, ConnectionTo, UntypedMessage};
    use greenroom_transports::{AcpHttpServer, ServerOptions};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// Streams this many notifications as soon as somebody is there.
    const NOTES: u64 = 2000;

    fn agent() -> impl ConnectTo<Client> {
        Agent.builder().on_receive_request(
            async |request: UntypedMessage,
                   responder: greenroom_actors::Responder<serde_json::Value>,
                   cx: ConnectionTo<Client>| {
                if request.method == "initialize" {
                    return responder.respond(json!({ "protocolVersion": 1 }));
                }
                for number in 0..NOTES {
                    cx.send_notification(UntypedMessage::new("_note", json!({ "n": number }))?)?;
                }
                responder.respond(json!({}))
            },
            greenroom_actors::on_receive_request!(),
        )
    }

    /// Passes bytes on, and cuts each connection after so many bytes towards the client.
    async fn cutting(listener: TcpListener, to: std::net::SocketAddr, after: u64) {
        while let Ok((mut near, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut far = TcpStream::connect(to).await.unwrap();
                let (near_read, near_write) = near.split();
                let (far_read, far_write) = far.split();
                let (mut near_read, mut near_write, mut far_write) = (near_read, near_write, far_write);
                let mut back = far_read.take(after);
                tokio::select! {
                    _ = copy(&mut near_read, &mut far_write) => {}
                    _ = copy(&mut back, &mut near_write) => {}
                }
                let _ = near_write.shutdown().await;
            });
        }
    }

    #[tokio::test]
    async fn nothing_is_lost_although_every_socket_is_cut_again_and_again() {
        let options = ServerOptions::default().with_limits(|limits| limits.replay = 1 << 20);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(AcpHttpServer::new(agent).with_options(options).serve(listener));
        let front = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/acp", front.local_addr().unwrap());
        tokio::spawn(cutting(front, address, 20_000));
        let client = direct(&url).with_options(HttpClientOptions::default().with_resume_attempts(20));
        let (seen, mut notes) = tokio::sync::mpsc::unbounded_channel();
        Client
            .builder()
            .on_receive_notification(
                async move |note: UntypedMessage, _cx: ConnectionTo<Agent>| {
                    seen.send(note.params["n"].as_u64().unwrap()).unwrap();
                    Ok(())
                },
                greenroom_actors::on_receive_notification!(),
            )
            .connect_with(client, async |cx: ConnectionTo<Agent>| {
                let initialize = UntypedMessage::new("initialize", json!({ "protocolVersion": 1 }))?;
                cx.send_request(initialize).block_task().await?;
                cx.send_request(UntypedMessage::new("_stream", json!({}))?).block_task().await?;
                Ok(())
            })
            .await
            .unwrap();
        let mut all = Vec::new();
        while let Ok(number) = notes.try_recv() {
            all.push(number);
        }
        assert_eq!(all, (0..NOTES).collect::<Vec<_>>(), "each once, in order");
    }
}
