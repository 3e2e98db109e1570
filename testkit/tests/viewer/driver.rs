//! A browser, steered through WebDriver: as little of it as these tests need.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longer than anything here should take on a loaded machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// One HTTP exchange on a connection of its own: status, head and body.
pub(crate) fn http(port: u16, request: &str, headers: &[&str], body: &str) -> (u16, String, Vec<u8>) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a server");
    stream.set_read_timeout(Some(LIMIT)).expect("a socket");
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = body.len();
    write!(stream, "{request} HTTP/1.1\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        .expect("the server reads");
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), None);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("an answer");
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<usize>().ok();
        }
        head.push_str(&line);
    }
    let status =
        head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("no HTTP: {head}"));
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).expect("the whole answer");
    (status, head, body)
}

pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

impl Browser {
    /// Starts a driver and a browser without a window.
    pub(crate) fn start() -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver: this test needs the packages chromium and chromium-driver");
        let mut lines = BufReader::new(driver.stdout.take().expect("piped")).lines();
        let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            port.trim_end_matches('.').parse().ok()
        });
        // It may say more; nobody must block it.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let mut browser = Self { driver, port: port.expect("a port"), session: String::new() };
        let flags =
            ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1500,900"];
        let options = json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": { "args": flags } } } });
        let session = browser.call("POST", "", &options);
        browser.session = format!("/{}", session["sessionId"].as_str().unwrap_or_else(|| panic!("{session}")));
        browser
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let headers = [&*format!("Host: 127.0.0.1:{}", self.port), "Content-Type: application/json"];
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let request = format!("{method} /session{}{path}", self.session);
        let (status, _, answer) = http(self.port, &request, &headers, &body);
        let mut answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!(status, 200, "{method} {path}: {answer}");
        answer["value"].take()
    }

    pub(crate) fn open(&self, url: &str) {
        self.call("POST", "/url", &json!({ "url": url }));
    }

    /// The value of a JavaScript expression.
    pub(crate) fn eval(&self, expression: &str) -> Value {
        self.call("POST", "/execute/sync", &json!({ "script": format!("return {expression};"), "args": [] }))
    }

    /// What a promise gives.
    pub(crate) fn wait_for(&self, promise: &str) -> Value {
        let script = format!("const done = arguments[0]; ({promise}).then(done, error => done('error: ' + error));");
        self.call("POST", "/execute/async", &json!({ "script": script, "args": [] }))
    }

    /// Polls until the expression is true.
    pub(crate) fn until(&self, expression: &str) {
        let end = Instant::now() + LIMIT;
        while self.eval(expression) != true {
            let seen = || self.eval("document.body.innerText.slice(0, 2000)");
            assert!(Instant::now() < end, "never true: {expression}; the page shows: {}", seen());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Presses and releases the mouse at a place, with a move in between.
    pub(crate) fn drag(&self, from: (i64, i64), to: (i64, i64)) {
        let step =
            |kind: &str, at: (i64, i64)| json!({ "type": kind, "x": at.0, "y": at.1, "duration": 20, "button": 0 });
        let actions = json!([
            step("pointerMove", from),
            step("pointerDown", from),
            step("pointerMove", to),
            step("pointerUp", to)
        ]);
        let mouse = json!({ "type": "pointer", "id": "mouse", "actions": actions });
        self.call("POST", "/actions", &json!({ "actions": [mouse] }));
    }

    /// Saves what the browser shows, for whoever wants to look: in `GREENROOM_SCREENSHOTS`, or not
    /// at all.
    pub(crate) fn screenshot(&self, name: &str) {
        let picture = self.call("GET", "/screenshot", &Value::Null);
        let picture = decode(picture.as_str().expect("base64"));
        assert_eq!(&picture[1..4], b"PNG");
        if let Some(folder) = std::env::var_os("GREENROOM_SCREENSHOTS") {
            std::fs::write(std::path::Path::new(&folder).join(name), picture).expect("a folder");
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.call("DELETE", "", &Value::Null);
        }
        // Asks the driver to take its browser with it.
        let _ = TcpStream::connect(("127.0.0.1", self.port))
            .and_then(|mut stream| write!(stream, "GET /shutdown HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", self.port));
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end && matches!(self.driver.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn decode(base64: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters: Vec<u8> = base64.bytes().filter(|letter| *letter != b'=').map(value).collect();
    let group = |group: &[u8]| {
        let bits = group.iter().fold(0u32, |bits, value| bits << 6 | u32::from(*value)) << (6 * (4 - group.len()));
        bits.to_be_bytes()[1..group.len()].to_vec()
    };
    letters.chunks(4).flat_map(group).collect()
}
