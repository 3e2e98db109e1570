//! The server: whom it answers, and what.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use greenroom_conductor::trace_viewer::{
    TraceHandle, TraceSource, TraceViewer, TraceViewerConfig, serve_file, serve_memory,
};
use serde_json::json;

use crate::driver::http;

/// Ended with the test, whatever becomes of it.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const QUIET: TraceViewerConfig = TraceViewerConfig { port: 0, open_browser: false };

fn address(url: &str) -> (u16, String) {
    let rest = url.strip_prefix("http://127.0.0.1:").expect("loopback");
    let (port, token) = rest.split_once("/#token=").expect("a token in the fragment");
    assert!(token.len() >= 32);
    (port.parse().expect("a port"), token.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn only_the_page_with_the_token_gets_events() {
    let handle = TraceHandle::default();
    handle.push(json!({ "type": "notification", "method": "secret" }));
    let viewer = TraceViewer::bind(TraceSource::Memory(handle.clone()), QUIET).expect("a port");
    let (port, token) = address(&viewer.url());
    let server = tokio::spawn(viewer.run());
    let asked = tokio::task::spawn_blocking(move || {
        let host = format!("Host: 127.0.0.1:{port}");
        let key = format!("Authorization: Bearer {token}");
        let ask = |request: &str, headers: &[&str]| http(port, request, headers, "");
        let (status, head, body) = ask("GET /", &[&host]);
        let page = String::from_utf8(body).expect("text");
        assert!(status == 200 && page.contains("<!doctype html>") && !page.contains(&token));
        assert!(head.contains("Content-Security-Policy: default-src 'none'"), "{head}");
        for (request, headers, expected) in [
            ("GET /events?after=", vec![&*host], 401),
            ("GET /events?after=", vec![&*host, "Authorization: Bearer 00000000000000000000000000000000"], 401),
            ("GET /events?after=", vec!["Host: evil.example", &*key], 403),
            ("GET /events?after=", vec![&*host, &*key, "Origin: https://evil.example"], 403),
            ("POST /events", vec![&*host, &*key], 405),
            ("GET /tree", vec![&*host, &*key], 404),
            ("GET /etc/passwd", vec![&*host, &*key], 404),
        ] {
            let (status, _, body) = ask(request, &headers);
            assert_eq!(status, expected, "{request} {headers:?}");
            assert!(!String::from_utf8_lossy(&body).contains("secret"));
        }
        let (status, head, body) = ask("GET /events?after=", &[&host, &key]);
        assert_eq!((status, body.as_slice()), (200, &b"{\"type\":\"notification\",\"method\":\"secret\"}\n"[..]));
        assert!(head.contains("X-Cursor: 1"), "{head}");
        handle.push(json!(2));
        assert_eq!(ask("GET /events?after=1", &[&host, &key]).2, b"2\n");
    });
    asked.await.expect("no panic");
    server.abort();
}

#[tokio::test]
async fn documented_names_serve() {
    let missing = serve_file(std::env::temp_dir().join("no-such-recording.jsons"), QUIET).await;
    let missing = missing.expect_err("no file").downcast::<std::io::Error>().expect("of the file");
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    let (handle, server) = serve_memory(QUIET).expect("a port");
    assert!(handle.is_empty());
    handle.push(json!({}));
    assert_eq!(handle.len(), 1);
    drop(server);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let config = TraceViewerConfig { port, open_browser: false };
    let refused = serve_memory(config).err().expect("it is taken").downcast::<std::io::Error>().expect("of the socket");
    assert_eq!(refused.kind(), std::io::ErrorKind::AddrInUse);
    assert!(TraceViewerConfig::default().open_browser);
}

/// Each way to say who answers, with `--serve` before and behind the subcommand. The agent works until
/// it is cancelled, so the conversation lasts while the page is looked at.
#[test]
fn a_prompt_is_shown_while_it_runs() {
    let testy = env!("CARGO_BIN_EXE_testy");
    for arguments in [
        &["--serve", "prompt", "--agent", testy, "wait_for_cancel"][..],
        &["prompt", "--serve", "--chain", testy, "--", "wait_for_cancel"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom-under-test"));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut prompt = Running(command.spawn().expect("the program starts"));
        let said = BufReader::new(prompt.0.stderr.take().expect("piped")).lines();
        let said = said.map_while(Result::ok).find_map(|line| line.strip_prefix("trace viewer: ").map(str::to_owned));
        let (port, token) = address(&said.expect("the address"));
        let (host, key) = (format!("Host: 127.0.0.1:{port}"), format!("Authorization: Bearer {token}"));
        assert_eq!(http(port, "GET /", &[&host], "").0, 200);
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let (status, _, body) = http(port, "GET /events?after=", &[&host, &key], "");
            assert_eq!(status, 200);
            if String::from_utf8_lossy(&body).contains("session/prompt") {
                break;
            }
            assert!(Instant::now() < until, "the prompt is never shown");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
