//! Credentials go where they belong, and into no text.

use std::io::Write;
use std::sync::{Arc, Mutex};

use greenroom_transports::{HttpClient, HttpClientError};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde_json::json;

use crate::local::{Local, call, direct, initialize};
use crate::server::Server;

fn secrets() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer s3cret"));
    headers.insert(HeaderName::from_static("x-api-key"), HeaderValue::from_static("s3cret"));
    headers
}

fn trusted(url: String) -> HttpClient {
    HttpClient::builder(url).configure_http(|http| http.no_proxy().default_headers(secrets())).build().unwrap()
}

#[tokio::test]
async fn default_headers_reach_every_request() {
    let mut server = Server::start().await;
    let mut local = Local::start(trusted(server.url()));
    let check = |heard: &crate::server::Heard| {
        assert_eq!(heard.header("authorization"), Some("Bearer s3cret"), "{heard:?}");
        assert_eq!(heard.header("x-api-key"), Some("s3cret"));
    };
    local.send(initialize(0));
    let post = server.expect("POST").await;
    check(&post);
    post.initialized().await;
    let get = server.expect("GET").await;
    check(&get);
    let _events = get.events().await;
    local.send(call(1, "_x", json!({})));
    let post = server.expect("POST").await;
    check(&post);
    post.accepted().await;
    local.end();
    check(&server.expect("DELETE").await);

    let _local = Local::start(trusted(server.ws_url()));
    check(&server.expect("GET").await);
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let mut server = Server::start().await;
        let mut elsewhere = Server::start().await;
        let local = Local::start(trusted(server.url()));
        local.send(initialize(0));
        let target = elsewhere.url() + "/acp?token=hidden";
        server.expect("POST").await.answer(status, &[("location", &target)], "").await;
        let said = local.reason().await;
        assert!(said.contains(&status.to_string()) && said.contains("redirect"), "{said}");
        assert!(!said.contains("hidden"));
        elsewhere.stays_quiet().await;
    }
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed() {
    let mut server = Server::start().await;
    let mut local = Local::start(trusted(server.url()));
    local.send(initialize(0));
    let target = server.url() + "/other";
    server.expect("POST").await.answer(307, &[("location", &target)], "").await;
    let post = server.expect("POST").await;
    assert_eq!((post.target.as_str(), post.json()), ("/other", initialize(0)));
    assert_eq!(post.header("x-api-key"), Some("s3cret"));
    post.initialized().await;
    local.recv().await;
}

#[tokio::test]
async fn a_redirected_handshake_fails_at_the_endpoint() {
    let mut server = Server::start().await;
    let mut elsewhere = Server::start().await;
    for target in [server.url() + "/same", elsewhere.url()] {
        let local = Local::start(trusted(server.ws_url()));
        server.expect("GET").await.answer(307, &[("location", &target)], "").await;
        assert!(local.reason().await.contains("opening the WebSocket failed: the server answered 307"));
    }
    server.stays_quiet().await;
    elsewhere.stays_quiet().await;
}

#[tokio::test]
async fn a_redirect_policy_of_the_callback_cannot_loosen_a_handshake() {
    let mut server = Server::start().await;
    let client = HttpClient::builder(server.ws_url())
        .configure_http(|http| http.no_proxy().redirect(reqwest::redirect::Policy::limited(5)))
        .build()
        .unwrap();
    let local = Local::start(client);
    let target = server.url();
    server.expect("GET").await.answer(302, &[("location", &target)], "").await;
    assert!(local.reason().await.contains("302"));
    server.stays_quiet().await;
}

/// Collects log lines.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn neither_logs_nor_errors_nor_debug_tell_a_secret() {
    let log = Log::default();
    let subscriber = {
        let log = log.clone();
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || log.clone()).finish()
    };
    // This test runs on one thread.
    let _guard = tracing::subscriber::set_default(subscriber);
    let secret = "s3cret";
    let mut said = Vec::new();
    for scheme in ["http", "ws"] {
        let mut server = Server::start().await;
        let url = format!("{scheme}://user:{secret}@{}/acp?token={secret}", server.address);
        let builder =
            HttpClient::builder_with_endpoint(url).configure_http(|http| http.no_proxy().default_headers(secrets()));
        said.push(format!("{builder:?}"));
        let client = builder.build().unwrap();
        said.push(format!("{client:?}"));
        let local = Local::start(client);
        local.send(initialize(0));
        let heard = server.next().await;
        assert!(heard.header("authorization").is_some() && heard.target.contains(secret), "{heard:?}");
        heard.answer(500, &[("x-echo", secret)], secret).await;
        let error = local.outcome().await.unwrap_err();
        said.push(format!("{error} {error:?}"));

        let (address, server) = (server.address, server);
        drop(server);
        let local = Local::start(direct(&format!("{scheme}://user:{secret}@{address}/acp?token={secret}")));
        local.send(initialize(0));
        let error = local.outcome().await.unwrap_err();
        said.push(format!("{error} {error:?}"));
    }
    for text in said {
        assert!(!text.contains(secret), "{text}");
    }
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let ours = log.lines().filter(|line| line.contains("greenroom"));
    assert!(!ours.clone().any(|line| line.contains(secret)), "{}", ours.collect::<Vec<_>>().join("\n"));
}

#[test]
fn errors_of_the_builder_say_what_to_do() {
    for (error, named) in [
        (HttpClient::new("::").unwrap_err(), "http://127.0.0.1:8080"),
        (HttpClient::new("ftp://h").unwrap_err(), "use http, https, ws or wss"),
        (HttpClient::from_http_client("wss://h", client()).unwrap_err(), "configure_http"),
    ] {
        assert!(error.to_string().contains(named), "{error}");
    }
    assert!(matches!(HttpClient::new("::").unwrap_err(), HttpClientError::InvalidUrl(_)));
    let bad = HttpClient::builder("http://h").configure_http(|http| http.user_agent("a\nb")).build();
    assert!(matches!(bad.unwrap_err(), HttpClientError::Reqwest(_)));
}

fn client() -> reqwest::Client {
    // The first of our builders chooses the cryptography of the process.
    let _ = HttpClient::builder("http://h");
    reqwest::Client::new()
}
