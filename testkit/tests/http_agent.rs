//! A program that serves HTTP and gets a signal: its streams and sockets get their end, and none
//! of them blocks it.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A server gives its clients 5 s to drain; nobody here needs them.
const SOON: Duration = Duration::from_secs(4);

/// Only a test that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(20);

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;

/// The program, with its stdin open.
struct Program {
    child: Child,
    address: String,
    input: Option<ChildStdin>,
}

impl Program {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_greenroom-http-agent"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut address = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut address).expect("an address");
        Self { input: child.stdin.take(), child, address: address.trim().to_owned() }
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status();
        assert!(status.expect("kill runs").success());
    }

    /// How it ended.
    fn exit(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("our child") {
                return status;
            }
            assert!(Instant::now() < until, "the program does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn socket(&self) -> BufReader<TcpStream> {
        let socket = TcpStream::connect(&self.address).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        BufReader::new(socket)
    }

    /// Sends a request and reads the head of its answer.
    fn ask(&self, request: &str) -> (BufReader<TcpStream>, String) {
        let mut socket = self.socket();
        socket.get_mut().write_all(request.replace('\n', "\r\n").as_bytes()).expect("it reads");
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(socket.read_line(&mut head).expect("an answer") > 0, "no answer: {head}");
        }
        (socket, head.to_ascii_lowercase())
    }

    /// Opens a connection and its stream of events, and waits for nothing on it.
    fn idle_stream(&self) -> BufReader<TcpStream> {
        let length = INITIALIZE.len();
        let (_, head) = self.ask(&format!(
            "POST /acp HTTP/1.1\nHost: 127.0.0.1\nContent-Type: application/json\nContent-Length: {length}\n\n{INITIALIZE}"
        ));
        let id = head.split("acp-connection-id: ").nth(1).and_then(|rest| rest.lines().next()).expect("an id");
        let (stream, head) = self.ask(&format!(
            "GET /acp HTTP/1.1\nHost: 127.0.0.1\nAccept: text/event-stream\nAcp-Connection-Id: {id}\n\n"
        ));
        assert!(head.starts_with("http/1.1 200"), "{head}");
        stream
    }

    fn idle_socket(&self) -> BufReader<TcpStream> {
        let (socket, head) = self.ask(
            "GET /acp HTTP/1.1\nHost: 127.0.0.1\nConnection: Upgrade\nUpgrade: websocket\n\
             Sec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n",
        );
        assert!(head.starts_with("http/1.1 101"), "{head}");
        socket
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Everything up to the end of the socket.
fn rest(socket: &mut BufReader<TcpStream>) -> Vec<u8> {
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).expect("the end");
    rest
}

#[test]
fn a_signal_ends_an_idle_stream_by_a_last_event_and_then_the_program() {
    for name in ["TERM", "INT"] {
        let mut program = Program::start();
        let mut stream = program.idle_stream();
        let begun = Instant::now();
        program.signal(name);
        let last = String::from_utf8(rest(&mut stream)).expect("utf-8");
        assert!(last.contains("the server shuts down"), "{name}: {last:?}");
        assert!(last.ends_with("0\r\n\r\n"), "{name}: the answer is complete: {last:?}");
        drop(stream);
        assert_eq!(program.exit().code(), Some(0), "{name}");
        assert!(begun.elapsed() < SOON, "{name}: {:?}", begun.elapsed());
        assert!(program.input.is_some(), "its stdin is still open");
    }
}

#[test]
fn a_signal_closes_an_idle_websocket_with_code_1001_and_ends_the_program() {
    let mut program = Program::start();
    let mut socket = program.idle_socket();
    let begun = Instant::now();
    program.signal("TERM");
    let mut close = [0; 4];
    socket.read_exact(&mut close).expect("a close");
    assert_eq!((close[0], u16::from_be_bytes([close[2], close[3]])), (0x88, 1001));
    // This client does not even answer.
    assert_eq!(program.exit().code(), Some(0));
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

#[test]
fn the_end_of_its_input_ends_the_program_as_well() {
    let mut program = Program::start();
    let mut stream = program.idle_stream();
    drop(program.input.take());
    assert!(String::from_utf8(rest(&mut stream)).expect("utf-8").contains("the server shuts down"));
    assert_eq!(program.exit().code(), Some(0));
}
