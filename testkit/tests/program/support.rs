//! Starting programs and watching them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub(crate) const GREENROOM: &str = env!("CARGO_BIN_EXE_greenroom-under-test");
pub(crate) const TESTY: &str = env!("CARGO_BIN_EXE_testy");
pub(crate) const ARROW: &str = env!("CARGO_BIN_EXE_arrow_proxy");
pub(crate) const PASS_THROUGH: &str = env!("CARGO_BIN_EXE_pass-through-proxy");
pub(crate) const FLOOD: &str = env!("CARGO_BIN_EXE_flood-agent");

/// Longer than anything here should take on a loaded machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// An agent that is gone the moment it has answered its first prompt, in `chunks` pieces.
pub(crate) fn leaving_agent(chunks: usize) -> String {
    let script = format!(
        r#"while read -r line; do
            id=${{line#*\"id\":}}; id=${{id%%[,\}}]*}}
            case $line in
                *initialize*) echo "{{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{{\"protocolVersion\":1}}}}" ;;
                *session/new*) echo "{{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{{\"sessionId\":\"s\"}}}}" ;;
                *session/prompt*)
                    n=0
                    while [ $n -lt {chunks} ]; do
                        echo "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s\",\"update\":{{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":\"$n \"}}}}}}}}"
                        n=$((n + 1))
                    done
                    echo "{{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{{\"stopReason\":\"end_turn\"}}}}"
                    exit 0 ;;
            esac
        done"#
    );
    format!("sh -c '{script}'")
}

/// Runs `greenroom` with these arguments, its input closed, and waits for its end.
pub(crate) fn greenroom(arguments: &[&str]) -> Output {
    greenroom_into(Stdio::piped(), arguments)
}

/// The same with another output.
pub(crate) fn greenroom_into(output: Stdio, arguments: &[&str]) -> Output {
    let child = Command::new(GREENROOM)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let id = child.id();
    let (done, finished) = channel();
    std::thread::spawn(move || done.send(child.wait_with_output()));
    match finished.recv_timeout(LIMIT) {
        Ok(output) => output.expect("its output can be read"),
        Err(_) => {
            signal(id, "KILL");
            panic!("greenroom {arguments:?} did not end");
        }
    }
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `greenroom agent` with a raw client in front of it.
pub(crate) struct Conversation {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl Conversation {
    pub(crate) fn start(components: &[&str]) -> Self {
        Self::run(Command::new(GREENROOM).arg("agent").args(components))
    }

    /// The same at a level of `RUST_LOG`.
    pub(crate) fn start_logging(level: &str, proxy: &str, agent: &str) -> Self {
        Self::run(Command::new(GREENROOM).env("RUST_LOG", level).args(["agent", proxy, agent]))
    }

    pub(crate) fn run(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let output = child.stdout.take().expect("piped");
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let line = line.expect("UTF-8");
                let value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line}"));
                if tell.send(value).is_err() {
                    return;
                }
            }
        });
        Self { input: child.stdin.take(), child, lines }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("open");
        input.write_all(bytes).expect("the program reads");
        input.flush().expect("the program reads");
    }

    pub(crate) fn close(&mut self) {
        self.input = None;
    }

    pub(crate) fn receive(&self) -> Value {
        self.lines.recv_timeout(LIMIT).expect("a line from the program")
    }

    /// The next message with this id, and everything that came before it.
    pub(crate) fn answer(&self, id: &Value) -> (Value, Vec<Value>) {
        let mut before = Vec::new();
        loop {
            let message = self.receive();
            if message["id"] == *id && message.get("method").is_none() {
                return (message, before);
            }
            before.push(message);
        }
    }

    pub(crate) fn request(&mut self, id: i64, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.answer(&json!(id)).0
    }

    /// Initialize and one new session.
    pub(crate) fn open(&mut self) -> Value {
        let initialized = self.request(1, "initialize", &json!({ "protocolVersion": 1 }));
        assert_eq!(initialized["result"]["protocolVersion"], 1, "{initialized}");
        let session = self.request(2, "session/new", &json!({ "cwd": "/", "mcpServers": [] }));
        session["result"]["sessionId"].clone()
    }

    pub(crate) fn prompt(&mut self, id: i64, session: &Value, text: &str) {
        let prompt = json!([{ "type": "text", "text": text }]);
        let params = json!({ "sessionId": session, "prompt": prompt });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params }));
    }

    /// Waits for the end; `None` when it takes too long.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let until = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("our child") {
                return Some(status.code().unwrap_or(-1));
            }
            if Instant::now() > until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn signal(process: u32, name: &str) {
    let _ = Command::new("kill").args([format!("-{name}"), process.to_string()]).status();
}

/// Polls until the condition holds, within the limit.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < until, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes whose command line contains this text, without this test itself.
pub(crate) fn processes_with(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("a proc file system").flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if id != std::process::id() && String::from_utf8_lossy(&command).contains(text) {
            found.push(id);
        }
    }
    found
}

/// Children of a process.
pub(crate) fn children(process: u32) -> Vec<u32> {
    let all = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    all.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

/// The most memory that a process ever used beside its mapped files, which are its code, in KiB.
pub(crate) fn peak_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let size = |name: &str| -> Option<u64> {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    size("VmHWM:").unwrap_or_default().saturating_sub(size("RssFile:").unwrap_or_default())
}
