//! A scripted client that answers what it is asked.

use greenroom::{Client, ConnectTo};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};

/// A client in the hands of a test.
pub(crate) struct Scripted {
    pub(crate) peer: Local,
    requests: i64,
    /// How it answers requests of the agent.
    answer: fn(&Value) -> Value,
}

/// An answer to a request and everything that came before it.
pub(crate) struct Answer {
    pub(crate) message: Value,
    pub(crate) before: Vec<Value>,
}

impl Answer {
    pub(crate) fn result(&self) -> &Value {
        self.message.get("result").unwrap_or_else(|| panic!("a result: {}", self.message))
    }

    pub(crate) fn error(&self) -> &Value {
        self.message.get("error").unwrap_or_else(|| panic!("an error: {}", self.message))
    }

    pub(crate) fn code(&self) -> i64 {
        self.error()["code"].as_i64().expect("a code")
    }

    /// The updates, without what they are wrapped in.
    pub(crate) fn updates(&self) -> Vec<&Value> {
        self.before.iter().map(|message| &message["params"]["update"]).filter(|update| !update.is_null()).collect()
    }

    pub(crate) fn kinds(&self) -> Vec<&str> {
        self.updates().iter().map(|update| update["sessionUpdate"].as_str().expect("a kind")).collect()
    }

    /// What the agent said.
    pub(crate) fn texts(&self) -> Vec<&str> {
        let chunks = self.updates().into_iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    /// The methods of the agent's requests and notifications, but updates.
    pub(crate) fn methods(&self) -> Vec<&str> {
        let methods = self.before.iter().filter_map(|message| message["method"].as_str());
        methods.filter(|method| *method != "session/update").collect()
    }
}

impl Scripted {
    pub(crate) fn serve(agent: impl ConnectTo<Client>, answer: fn(&Value) -> Value) -> Self {
        let (peer, link) = pair(1 << 20);
        tokio::spawn(agent.connect_to(link));
        Self { peer, requests: 0, answer }
    }

    /// A client of version 1, initialized with these capabilities.
    pub(crate) async fn v1(capabilities: Value, answer: fn(&Value) -> Value) -> Self {
        let mut client = Self::serve(greenroom_testkit::testy::agent_v1(), answer);
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        let answer = client.request("initialize", params).await;
        assert_eq!(answer.result()["protocolVersion"], 1);
        client
    }

    /// Sends a request and says its id.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> i64 {
        self.requests += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.requests, "method": method, "params": params });
        self.peer.send(&request).await;
        self.requests
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.peer.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Reads up to the answer to this request, and answers what the agent asks meanwhile.
    pub(crate) async fn wait(&mut self, id: i64) -> Answer {
        let mut before = Vec::new();
        loop {
            let message = self.peer.receive().await;
            if message["id"] == id && message.get("method").is_none() {
                return Answer { message, before };
            }
            if message.get("id").is_some() && message.get("method").is_some() {
                let answer = (self.answer)(&message);
                self.peer.send(&answer).await;
            }
            before.push(message);
        }
    }

    /// Reads the answers to these requests, in whatever order they come.
    pub(crate) async fn answers<const N: usize>(&mut self, ids: [i64; N]) -> [Value; N] {
        let mut answers = [const { None }; N];
        while answers.iter().any(Option::is_none) {
            let message = self.peer.receive().await;
            if let Some(place) = ids.iter().position(|id| message["id"] == *id) {
                answers[place] = Some(message);
            }
        }
        answers.map(|answer| answer.expect("all are there"))
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Answer {
        let id = self.send(method, params).await;
        self.wait(id).await
    }

    pub(crate) async fn open(&mut self, cwd: &str) -> String {
        let answer = self.request("session/new", json!({ "cwd": cwd, "mcpServers": [] })).await;
        answer.result()["sessionId"].as_str().expect("an id").to_owned()
    }

    pub(crate) async fn prompt(&mut self, session: &str, text: &str) -> Answer {
        let id = self.send_prompt(session, text).await;
        self.wait(id).await
    }

    pub(crate) async fn send_prompt(&mut self, session: &str, text: &str) -> i64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.send("session/prompt", json!({ "sessionId": session, "prompt": prompt })).await
    }
}

/// Answers with this result.
pub(crate) fn result(request: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
}

/// Nothing is asked in the test.
pub(crate) fn never(request: &Value) -> Value {
    panic!("the agent asks: {request}")
}

/// A friendly client with a file and a terminal of its own.
pub(crate) fn friendly(request: &Value) -> Value {
    let answer = match request["method"].as_str().expect("a method") {
        "session/request_permission" => json!({ "outcome": { "outcome": "selected", "optionId": "allow-once" } }),
        "fs/write_text_file" | "terminal/kill" | "terminal/release" => json!({}),
        "fs/read_text_file" => json!({ "content": "written by testy\n" }),
        "terminal/create" => json!({ "terminalId": "terminal-1" }),
        "terminal/output" => json!({ "output": "testy\n", "truncated": false }),
        "terminal/wait_for_exit" => json!({ "exitCode": 0 }),
        "elicitation/create" => obedient(request),
        other => panic!("nobody should ask {other}"),
    };
    result(request, answer)
}

/// The user does what the question wishes.
pub(crate) fn obedient(request: &Value) -> Value {
    let message = request["params"]["message"].as_str().expect("a message");
    if message.contains("decline") {
        json!({ "action": "decline" })
    } else if message.contains("cancel") {
        json!({ "action": "cancel" })
    } else if request["params"]["mode"] == "form" {
        json!({ "action": "accept", "content": { "name": "Testy", "count": 3, "agree": true } })
    } else {
        json!({ "action": "accept" })
    }
}
