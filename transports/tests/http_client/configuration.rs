//! Builders, paths, proxies, and clients that are shared.

use greenroom_transports::{HttpClient, HttpClientError};
use reqwest::header::HeaderValue;
use serde_json::json;
use tokio::io::AsyncReadExt as _;

use crate::local::{Local, call, direct, initialize};
use crate::server::Server;

#[tokio::test]
async fn base_urls_get_the_path_and_exact_endpoints_stay() {
    let mut server = Server::start().await;
    let base = server.url();
    for (client, expected) in [
        (direct(&format!("{base}/")), "/acp"),
        (direct(&format!("{base}/deep//?k=v")), "/deep/acp?k=v"),
        (
            HttpClient::builder_with_endpoint(format!("{base}/custom/?k=v"))
                .configure_http(|http| http.no_proxy())
                .build()
                .unwrap(),
            "/custom/?k=v",
        ),
    ] {
        let local = Local::start(client);
        local.send(initialize(0));
        assert_eq!(server.expect("POST").await.target, expected);
        local.abandon().await;
    }
}

#[test]
fn constructors_refuse_what_they_cannot_use_before_any_io() {
    let shared = {
        let _ = HttpClient::builder("http://h");
        reqwest::Client::new()
    };
    for url in ["ws://h", "wss://h/acp"] {
        let refused = |result: Result<HttpClient, HttpClientError>| {
            assert!(matches!(result, Err(HttpClientError::WebSocketRequiresBuilder)), "{url}");
        };
        refused(HttpClient::from_http_client(url, shared.clone()));
        #[expect(deprecated, reason = "still documented")]
        {
            refused(HttpClient::with_client(url, shared.clone()));
            refused(HttpClient::with_endpoint_and_client(url, shared.clone()));
        }
    }
    for url in ["ftp://h", "file:///x"] {
        for result in [HttpClient::new(url), HttpClient::with_endpoint(url), HttpClient::builder(url).build()] {
            assert!(matches!(result, Err(HttpClientError::UnsupportedScheme(_))), "{url}");
        }
    }
    assert!(matches!(HttpClient::with_endpoint("no url"), Err(HttpClientError::InvalidUrl(_))));
}

#[tokio::test]
async fn a_given_client_is_reused_with_its_settings() {
    let mut server = Server::start().await;
    let _ = HttpClient::builder("http://h");
    let http = reqwest::Client::builder().no_proxy().user_agent("given/1").build().unwrap();
    let exact = format!("{}/elsewhere", server.url());
    #[expect(deprecated, reason = "still documented")]
    let clients = [
        (HttpClient::from_http_client(&exact, http.clone()).unwrap(), "/elsewhere"),
        (HttpClient::with_endpoint_and_client(&exact, http.clone()).unwrap(), "/elsewhere"),
        (HttpClient::with_client(server.url(), http).unwrap(), "/acp"),
    ];
    for (client, target) in clients {
        let local = Local::start(client);
        local.send(initialize(0));
        let post = server.expect("POST").await;
        assert_eq!((post.target.as_str(), post.header("user-agent")), (target, Some("given/1")));
        local.abandon().await;
    }
}

#[tokio::test]
async fn repeated_configuration_keeps_what_was_set() {
    let mut server = Server::start().await;
    for url in [
        format!("http://agent.example:{}", server.address.port()),
        format!("ws://agent.example:{}", server.address.port()),
    ] {
        let address = server.address;
        let client = HttpClient::builder(url)
            .configure_http(|http| http.no_proxy().user_agent("mine"))
            .configure_http(|http| http.resolve("agent.example", address))
            .build()
            .unwrap();
        let local = Local::start(client);
        local.send(initialize(0));
        let heard = server.next().await;
        assert_eq!(heard.header("user-agent"), Some("mine"));
        assert!(heard.header("host").unwrap().starts_with("agent.example:"), "{heard:?}");
        local.abandon().await;
    }
}

#[tokio::test]
async fn a_proxy_gets_the_requests_with_its_own_credentials() {
    let mut proxy = Server::start().await;
    for (scheme, first) in [("http", "POST"), ("ws", "GET")] {
        let through = reqwest::Proxy::all(proxy.url()).unwrap().basic_auth("me", "pw");
        let client = HttpClient::builder(format!("{scheme}://agent.example/"))
            .configure_http(|http| http.proxy(through))
            .build()
            .unwrap();
        let local = Local::start(client);
        local.send(initialize(0));
        let heard = proxy.next().await;
        assert_eq!((heard.method.as_str(), heard.target.as_str()), (first, "http://agent.example/acp"));
        assert_eq!(heard.header("proxy-authorization"), Some("Basic bWU6cHc="));
        local.abandon().await;
    }
}

#[tokio::test]
async fn a_tls_endpoint_is_reached_by_a_tunnel_through_the_proxy() {
    let mut proxy = Server::start().await;
    for scheme in ["https", "wss"] {
        let through = reqwest::Proxy::all(proxy.url()).unwrap().custom_http_auth(HeaderValue::from_static("Token t"));
        let client = HttpClient::builder(format!("{scheme}://agent.example"))
            .configure_http(|http| http.proxy(through))
            .build()
            .unwrap();
        let local = Local::start(client);
        local.send(initialize(0));
        let heard = proxy.expect("CONNECT").await;
        assert_eq!(
            (heard.target.as_str(), heard.header("proxy-authorization")),
            ("agent.example:443", Some("Token t"))
        );
        // Through the tunnel comes the beginning of a TLS handshake.
        let mut tunnel = heard.raw("HTTP/1.1 200 OK\r\n\r\n").await;
        assert_eq!(tunnel.read_u8().await.unwrap(), 22);
        local.abandon().await;
    }
}

#[tokio::test]
async fn a_timeout_of_the_callback_is_an_error_in_words() {
    let mut server = Server::start().await;
    let client = HttpClient::builder(server.url())
        .configure_http(|http| http.no_proxy().read_timeout(std::time::Duration::from_millis(50)))
        .build()
        .unwrap();
    let (local, _events) = Local::connect(client, &mut server).await;
    local.send(call(1, "_x", json!({})));
    let _unanswered = server.expect("POST").await;
    assert!(local.reason().await.contains("a configured timeout ran out"));
}
