//! Prompts an agent over HTTP or WebSocket, for trying the client on servers of other people.
//!
//! `greenroom-http-prompt URL PROMPT…` opens one session and prompts it with each PROMPT in turn. The
//! agent gets every permission that it asks for. Of a turn, the number of updates and the last text
//! are printed, with the time that it took.

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use greenroom_actors::{
    Agent, Client, ConnectionTo, Error, Responder, Result, UntypedMessage, on_receive_notification, on_receive_request,
};
use greenroom_transports::HttpClient;
use serde_json::{Value, json};

/// What one turn brought so far.
#[derive(Default)]
struct Turn {
    updates: usize,
    last: String,
}

fn message(method: &str, params: Value) -> Result<UntypedMessage> {
    UntypedMessage::new(method, params)
}

fn answer(request: &UntypedMessage) -> Result<Value> {
    match request.method.as_str() {
        "session/request_permission" => {
            let option = &request.params["options"][0]["optionId"];
            Ok(json!({ "outcome": { "outcome": "selected", "optionId": option } }))
        }
        "fs/read_text_file" => Ok(json!({ "content": "the file" })),
        _ => Err(Error::method_not_found()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let url = words.next().ok_or("usage: greenroom-http-prompt URL PROMPT…")?;
    let client = HttpClient::builder(url).configure_http(|http| http.no_proxy()).build()?;
    let turn: Arc<Mutex<Turn>> = Arc::default();
    let noted = turn.clone();
    Client
        .builder()
        .on_receive_request(
            async |request: UntypedMessage, responder: Responder<Value>, _cx| {
                responder.respond_with_result(answer(&request))
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, _cx| {
                if let (Some(text), Ok(mut turn)) = (note.params["update"]["content"]["text"].as_str(), noted.lock()) {
                    turn.updates += 1;
                    text.clone_into(&mut turn.last);
                }
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_with(client, async |cx: ConnectionTo<Agent>| {
            let capabilities = json!({ "fs": { "readTextFile": true } });
            let hello = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
            cx.send_request(message("initialize", hello)?).block_task().await?;
            let here = json!({ "cwd": "/", "mcpServers": [] });
            let opened: Value = cx.send_request(message("session/new", here)?).block_task().await?;
            let session = opened["sessionId"].clone();
            for prompt in words {
                let begun = Instant::now();
                let text = json!([{ "type": "text", "text": prompt }]);
                let params = json!({ "sessionId": session, "prompt": text });
                let result: Value = cx.send_request(message("session/prompt", params)?).block_task().await?;
                let turn = std::mem::take(&mut *turn.lock().map_err(Error::into_internal_error)?);
                let took = begun.elapsed();
                let line = format!(
                    "{prompt}: {} updates, last {:?}, {}, {took:?}",
                    turn.updates, turn.last, result["stopReason"]
                );
                writeln!(std::io::stdout(), "{line}").map_err(Error::into_internal_error)?;
            }
            Ok(())
        })
        .await?;
    Ok(())
}
