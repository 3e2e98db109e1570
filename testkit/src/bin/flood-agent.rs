//! An agent that streams as fast as its client reads, without any actors: the other side of
//! memory tests. The prompt `flood <count> <bytes>` gets that many updates of that size.

use std::io::{self, BufRead as _, Write as _};

use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let Ok(request) = serde_json::from_str::<Value>(&line?) else { continue };
        let id = &request["id"];
        let result = match request["method"].as_str() {
            Some("initialize") => json!({ "protocolVersion": 1 }),
            Some("session/new") => json!({ "sessionId": "flood" }),
            Some("session/prompt") => {
                flood(&mut out, request["params"]["prompt"][0]["text"].as_str().unwrap_or_default())?;
                json!({ "stopReason": "end_turn" })
            }
            _ => continue,
        };
        writeln!(out, "{}", json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
        out.flush()?;
    }
    Ok(())
}

fn flood(out: &mut impl io::Write, command: &str) -> io::Result<()> {
    let mut words = command.split(' ').skip(1).map(str::parse::<usize>);
    let (Some(Ok(count)), Some(Ok(bytes))) = (words.next(), words.next()) else { return Ok(()) };
    let text = "x".repeat(bytes);
    for number in 0..count {
        let update = json!({
            "sessionUpdate": "agent_message_chunk",
            "content": { "type": "text", "text": format!("{number} {text}") },
        });
        let params = json!({ "sessionId": "flood", "update": update });
        writeln!(out, "{}", json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))?;
    }
    Ok(())
}
