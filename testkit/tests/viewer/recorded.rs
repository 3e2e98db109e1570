//! `greenroom --serve`: the page beside a chain that runs.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::driver::Browser;

struct Chain(Child);

impl Drop for Chain {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_running_chain_shows_its_messages_and_its_actors() {
    let child = Command::new(env!("CARGO_BIN_EXE_greenroom-under-test"))
        .args(["--serve", "agent", env!("CARGO_BIN_EXE_arrow_proxy"), env!("CARGO_BIN_EXE_testy")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut chain = Chain(child);
    let mut said = BufReader::new(chain.0.stderr.take().expect("piped")).lines();
    let url = said.next().expect("a line").expect("text");
    let url = url.strip_prefix("trace viewer: ").expect("the address");
    let mut input = chain.0.stdin.take().expect("piped");
    let mut output = BufReader::new(chain.0.stdout.take().expect("piped")).lines();
    let mut ask = |id: u64, method: &str, params: Value| -> Value {
        writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .expect("it reads");
        loop {
            let answer: Value = serde_json::from_str(&output.next().expect("a line").expect("text")).expect("JSON");
            if answer["id"] == id && answer.get("method").is_none() {
                return answer;
            }
        }
    };
    let browser = Browser::start();
    browser.open(url);
    ask(1, "initialize", json!({ "protocolVersion": 1 }));
    let session = ask(2, "session/new", json!({ "cwd": "/", "mcpServers": [] }))["result"]["sessionId"].clone();
    for id in 3..6 {
        let prompt = json!([{ "type": "text", "text": format!("echo number {id}") }]);
        ask(id, "session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    }
    browser.until("document.getElementById('count').textContent === '26 of 26 events'");
    let rows = browser.eval("[...document.querySelectorAll('.row')].map(row => row.innerText).join()");
    let rows = rows.as_str().expect("text");
    for part in
        ["initialize", "session/new", "echo number 5", "agent_message_chunk: → number 5", "result session/prompt"]
    {
        assert!(rows.contains(part), "{part} is missing in {rows}");
    }
    browser.until("!document.getElementById('treebox').hidden");
    browser.until("document.getElementById('tree').innerText.includes('component-1')");
    let tree = browser.eval("document.getElementById('tree').innerText");
    let tree = tree.as_str().expect("text");
    for actor in
        ["conductor-1", "router up", "trace up", "upstream", "component-0", "component-1", "writer", "mailbox 0"]
    {
        assert!(tree.contains(actor), "{actor} is missing in {tree}");
    }
    browser.eval("document.querySelector('.row[data-index=\"14\"]').click()");
    browser.screenshot("viewer-live.png");
}
