//! What a peer may write on a line, and what becomes of it.

use greenroom::link::Link;
use greenroom::{
    Agent, Client, ConnectTo, ConnectionTo, Responder, UntypedMessage, on_receive_notification, on_receive_request,
};
use greenroom_testkit::capture::Capture;
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Answers requests with their params; passes the methods of notifications on.
fn echo(notes: mpsc::UnboundedSender<String>) -> impl ConnectTo<Client> {
    Agent
        .builder()
        .on_receive_request(
            async |request: UntypedMessage, responder: Responder<Value>, _cx| responder.respond(request.params),
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, _cx| {
                let _ = notes.send(note.method);
                Ok(())
            },
            on_receive_notification!(),
        )
}

fn serve(link: Link) -> (JoinHandle<greenroom::Result<()>>, mpsc::UnboundedReceiver<String>) {
    let (notes, noted) = mpsc::unbounded_channel();
    (tokio::spawn(echo(notes).connect_to(link)), noted)
}

fn request(id: impl Into<Value>, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": "echo", "params": params })
}

fn answer(id: impl Into<Value>, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "result": result })
}

/// Whether the endpoint still answers.
async fn alive(peer: &mut Local) {
    peer.send(&request("alive", &json!([1]))).await;
    peer.expect(answer("alive", &json!([1]))).await;
}

#[tokio::test]
async fn a_long_line_is_like_any_other() {
    let (mut peer, link) = pair(1 << 20);
    let (_serving, _) = serve(link);
    let text = json!({ "text": "x".repeat(70_000) });
    peer.send(&request(1, &text)).await;
    peer.send(&request(2, &json!({}))).await;
    peer.expect(answer(1, &text)).await;
    peer.expect(answer(2, &json!({}))).await;
}

#[tokio::test(start_paused = true)]
async fn an_endless_line_ends_the_connection_with_an_overflow() {
    let (mut peer, link) = pair(64 * 1024);
    let (tell, mut told) = mpsc::unbounded_channel();
    let calling = tokio::spawn(Client.builder().connect_with(
        link.with_max_frame(100_000),
        async move |cx: ConnectionTo<Agent>| {
            let error = cx.send_request(UntypedMessage::new("wait", Value::Null)?).block_task().await.unwrap_err();
            tell.send(error).unwrap();
            std::future::pending::<greenroom::Result<()>>().await
        },
    ));
    peer.receive().await;
    // Far more than the limit: the endpoint stops reading on its own.
    let through = peer.flood(&[b'a'; 4096], 100 << 20).await;
    assert!(through < 1 << 20, "{through} bytes were taken");
    let told = told.recv().await.expect("the caller is told");
    let ended = calling.await.unwrap().unwrap_err();
    for error in [told, ended] {
        let text = error.to_string();
        assert!(text.contains("overflow") && text.contains("100000"), "{text}");
    }
}

#[tokio::test]
async fn the_last_line_needs_no_line_feed() {
    let (mut peer, link) = pair(1024);
    let (serving, _) = serve(link);
    peer.write(request(1, &json!(["last"])).to_string()).await;
    peer.close().await;
    peer.expect(answer(1, &json!(["last"]))).await;
    peer.expect_end().await;
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn noise_is_passed_over() {
    let (mut peer, link) = pair(1024);
    let (_serving, _) = serve(link);
    for noise in ["not json\n", "\u{1b}[?2004hWelcome back\n\n", "\n\n", "\r\n", "  \t\n"] {
        peer.write(noise).await;
        alive(&mut peer).await;
    }
}

/// Cases C6 and C8: what came together is one line in the log, by number and length.
#[tokio::test]
async fn noise_is_reported_once() {
    let log = Capture::here();
    let reports = |log: &Capture| {
        let reports = log.with("input that is not JSON was ignored");
        let fields = |text: &str| text.split(" lines=").nth(1).unwrap_or(text).to_owned();
        reports.iter().map(|line| format!("{} lines={}", line.level, fields(&line.text))).collect::<Vec<_>>()
    };
    let (mut peer, link) = pair(1024);
    let (serving, _) = serve(link);
    peer.write("\u{1b}[?2004hWelcome back\n\n").await;
    alive(&mut peer).await;
    assert_eq!(reports(&log), ["WARN lines=1 bytes=20 total=1"]);
    peer.write(format!("{}\ndone\nbye\n[hook] over\n", request(1, &json!({})))).await;
    peer.close().await;
    // The third looks like JSON and is none: that is refused, by the actor in front of the handler.
    assert_eq!(peer.receive().await["error"]["code"], -32700);
    peer.expect(answer(1, &json!({}))).await;
    peer.expect_end().await;
    serving.await.unwrap().unwrap();
    assert_eq!(reports(&log)[1..], ["WARN lines=2 bytes=7 total=3"]);
}

#[tokio::test]
async fn a_byte_order_mark_is_skipped() {
    let (mut peer, link) = pair(1024);
    let (_serving, _) = serve(link);
    peer.write("\u{feff}").await;
    alive(&mut peer).await;
}

#[tokio::test]
async fn a_carriage_return_is_no_part_of_the_message() {
    let (mut peer, link) = pair(1024);
    let (_serving, _) = serve(link);
    peer.write(format!("{}\r\n\r\n{}\r\n", request(1, &json!({})), request(2, &json!({})))).await;
    peer.expect(answer(1, &json!({}))).await;
    peer.expect(answer(2, &json!({}))).await;
}

#[tokio::test]
async fn noise_before_the_end_leaves_a_clean_end() {
    let (mut peer, link) = pair(1024);
    let (serving, _) = serve(link);
    alive(&mut peer).await;
    peer.write("hook ran\ndebug: bye\n[done]x\n").await;
    peer.close().await;
    // The last line looks like an array and is none: that much is said.
    while let Some(line) = peer.line().await {
        assert!(line.contains("-32700"), "{line}");
    }
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn text_is_the_same_wherever_it_is_cut() {
    let text = json!({ "text": "中😀é\u{301}" });
    let line = format!("{}\n", request(1, &text));
    for at in 0..=line.len() {
        let (mut peer, link) = pair(4096);
        let (serving, _) = serve(link);
        peer.write_cut(&line, at).await;
        let answer = peer.receive().await;
        assert_eq!(answer["result"], text, "cut at {at}");
        serving.abort();
    }
}

#[tokio::test]
async fn a_notification_needs_no_params() {
    let (mut peer, link) = pair(1024);
    let (_serving, mut noted) = serve(link);
    peer.write("{\"jsonrpc\":\"2.0\",\"method\":\"x/y\"}\n").await;
    assert_eq!(noted.recv().await.as_deref(), Some("x/y"));
}

#[tokio::test]
async fn null_is_a_result() {
    let (mut peer, link) = pair(1024);
    let calling = tokio::spawn(Client.builder().connect_with(link, async |cx: ConnectionTo<Agent>| {
        cx.send_request(UntypedMessage::new("void", Value::Null)?).block_task().await
    }));
    let id = peer.receive().await["id"].clone();
    peer.send(&answer(id, &Value::Null)).await;
    assert_eq!(calling.await.unwrap().unwrap(), Value::Null);
}
