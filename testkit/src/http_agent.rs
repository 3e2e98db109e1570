//! An agent for the HTTP server's tests with clients of other people: it floods, asks and waits as
//! a prompt says.

use std::collections::HashMap;
use std::sync::Arc;

use greenroom::{
    Agent, Client, ConnectTo, ConnectionTo, Error, Responder, Result, UntypedMessage, on_receive_notification,
    on_receive_request,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

/// Cancellations of each session, counted.
#[derive(Clone, Default)]
struct Cancels(Arc<Mutex<HashMap<String, watch::Sender<u64>>>>);

impl Cancels {
    fn of(&self, session: &str) -> watch::Sender<u64> {
        self.0.lock().entry(session.to_owned()).or_default().clone()
    }
}

/// An agent of protocol version 1 without types. A prompt's text is a command: `flood N` sends N
/// updates `chunk 0` and so on; `perm` asks for a permission and says the outcome; `read` reads
/// `hello.txt` through the client; `slow` waits until it is cancelled, and says how; everything
/// else is echoed.
#[must_use]
pub fn http_agent() -> impl ConnectTo<Client> {
    let cancels = Cancels::default();
    let for_prompts = cancels.clone();
    let (mut sessions, folders) = (0, Mutex::new(HashMap::<String, String>::new()));
    Agent
        .builder()
        .name("http-agent")
        .on_receive_request(
            async move |request: UntypedMessage, responder: Responder<Value>, client: ConnectionTo<Client>| {
                match request.method() {
                    "initialize" => responder.respond(json!({ "protocolVersion": 1, "agentCapabilities": {} })),
                    "session/new" => {
                        sessions += 1;
                        let cwd = request.params()["cwd"].as_str().unwrap_or(".").to_owned();
                        folders.lock().insert(format!("session-{sessions}"), cwd);
                        responder.respond(json!({ "sessionId": format!("session-{sessions}") }))
                    }
                    "session/prompt" => {
                        // Before the turn begins: a cancellation right behind the prompt belongs to it.
                        let session = request.params()["sessionId"].as_str().unwrap_or_default().to_owned();
                        let cancelled = for_prompts.of(&session).subscribe();
                        let cwd = folders.lock().get(&session).cloned().unwrap_or_default();
                        let turn = prompt(request.params().clone(), session, cwd, cancelled, responder, client.clone());
                        client.spawn(turn)
                    }
                    _ => Err(Error::method_not_found()),
                }
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, _client| {
                if note.method() == "session/cancel"
                    && let Some(session) = note.params()["sessionId"].as_str()
                {
                    cancels.of(session).send_modify(|count| *count += 1);
                }
                Ok(())
            },
            on_receive_notification!(),
        )
}

async fn prompt(
    params: Value,
    session: String,
    cwd: String,
    mut cancelled: watch::Receiver<u64>,
    responder: Responder<Value>,
    client: ConnectionTo<Client>,
) -> Result<()> {
    let text = params["prompt"][0]["text"].as_str().unwrap_or_default().to_owned();
    let say = |text: &str| {
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
        let params = json!({ "sessionId": session, "update": update });
        client.send_notification(UntypedMessage::new("session/update", params)?)
    };
    if let Some(count) = text.strip_prefix("flood ") {
        for n in 0..count.parse().unwrap_or(0) {
            // A client that reads slowly slows us.
            client.ready().await;
            say(&format!("chunk {n}"))?;
        }
    } else if text == "slow" {
        let marker = responder.cancellation();
        let waiting = async { Ok(cancelled.changed().await.is_ok()) };
        let by = if marker.run_until_cancelled(waiting).await.is_ok() { "session/cancel" } else { "$/cancel_request" };
        say(&format!("slow ended by {by}"))?;
        return responder.respond(json!({ "stopReason": "cancelled" }));
    } else if text == "perm" {
        let options = json!([
            { "optionId": "yes", "name": "Allow", "kind": "allow_once" },
            { "optionId": "no", "name": "Deny", "kind": "reject_once" },
        ]);
        let call = json!({ "toolCallId": "call-1", "title": "a tool", "kind": "execute", "status": "pending" });
        let ask = json!({ "sessionId": session, "toolCall": call, "options": options });
        let request = UntypedMessage::new("session/request_permission", ask)?;
        let answer = client.send_request(request).block_task().await?;
        say(&format!("perm:{}", answer["outcome"]))?;
    } else if text == "read" {
        let path = format!("{cwd}/hello.txt");
        let request = UntypedMessage::new("fs/read_text_file", json!({ "sessionId": session, "path": path }))?;
        let answer = client.send_request(request).block_task().await?;
        say(&format!("read:{}", answer["content"].as_str().unwrap_or_default()))?;
    } else {
        say(&format!("echo: {text}"))?;
    }
    responder.respond(json!({ "stopReason": "end_turn" }))
}
