//! What browsers of other origins are told.

use super::agent::serve;
use super::client::{Answer, INITIALIZE, connect, post, request};
use super::ws_client::{Ws, upgrade};
use greenroom_transports::{CorsOptions, ServerOptions};
use std::net::SocketAddr;

const PAGE: &str = "http://page.example:5173";

fn allowing(origins: &[&str]) -> ServerOptions {
    ServerOptions::default().with_cors(CorsOptions::allow_origins(origins).expect("legal"))
}

fn cors_headers(answer: &Answer) -> Vec<&str> {
    let mut names: Vec<_> = answer.headers.keys().map(String::as_str).collect();
    names.retain(|name| name.starts_with("access-control") || *name == "vary");
    names.sort_unstable();
    names
}

async fn preflight(address: SocketAddr, origin: &str) -> Answer {
    request("OPTIONS")
        .header("Origin", origin)
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", "content-type,acp-connection-id")
        .send(address)
        .await
}

#[tokio::test]
async fn cors_is_off_by_default() {
    let (server, _) = serve(ServerOptions::default()).await;
    assert_eq!(preflight(server.local_addr(), PAGE).await.status, 405);
    let answer = post(INITIALIZE).header("Origin", "http://127.0.0.1").send(server.local_addr()).await;
    assert_eq!((answer.status, cors_headers(&answer)), (200, vec![]));
}

#[tokio::test]
async fn a_preflight_says_what_a_page_may_send() {
    let (server, agents) = serve(allowing(&[PAGE])).await;
    let answer = preflight(server.local_addr(), PAGE).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), Some(PAGE));
    assert_eq!(answer.header("vary"), Some("origin"));
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    let list = |name| {
        let mut words: Vec<_> = answer.header(name).expect(name).split(',').map(str::trim).collect();
        words.sort_unstable();
        words
    };
    assert_eq!(list("access-control-allow-methods"), ["DELETE", "GET", "OPTIONS", "POST"]);
    assert_eq!(
        list("access-control-allow-headers"),
        [
            "accept",
            "acp-connection-id",
            "acp-session-id",
            "connection",
            "content-type",
            "sec-websocket-key",
            "sec-websocket-version",
            "upgrade"
        ]
    );
    assert_eq!(agents.made(), 0);
}

#[tokio::test]
async fn a_preflight_of_another_origin_gets_no_permission() {
    let (server, _) = serve(allowing(&[PAGE])).await;
    let answer = preflight(server.local_addr(), "http://evil.example").await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, None));
    assert_eq!(answer.header("vary"), Some("origin"));
}

#[tokio::test]
async fn answers_expose_the_ids_to_allowed_origins() {
    let (server, _) = serve(allowing(&["http://other.example", PAGE])).await;
    let answer = post(INITIALIZE).header("Origin", PAGE).send(server.local_addr()).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some(PAGE)));
    assert_eq!(answer.header("access-control-expose-headers"), Some("acp-connection-id,acp-session-id"));
    let health = request("GET").path("/health").header("Origin", PAGE).send(server.local_addr()).await;
    assert_eq!(health.header("access-control-allow-origin"), Some(PAGE));
    let refused = request("GET").header("Origin", PAGE).send(server.local_addr()).await;
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (406, Some(PAGE)));
}

#[tokio::test]
async fn any_origin_is_a_star_without_vary() {
    let (server, _) = serve(ServerOptions::default().with_cors(CorsOptions::allow_any_origin())).await;
    for answer in [
        preflight(server.local_addr(), PAGE).await,
        post(INITIALIZE).header("Origin", PAGE).send(server.local_addr()).await,
    ] {
        assert_eq!(answer.status, 200);
        assert_eq!((answer.header("access-control-allow-origin"), answer.header("vary")), (Some("*"), None));
    }
    let request = upgrade().header("Origin", PAGE);
    assert!(Ws::try_open(server.local_addr(), &request).await.is_ok());
}

#[tokio::test]
async fn a_post_of_another_origin_is_processed_where_the_check_is_off() {
    let (server, _) = serve(allowing(&[PAGE]).with_origin_check(false)).await;
    let answer = post(INITIALIZE).header("Origin", "http://evil.example").send(server.local_addr()).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, None));
    connect(server.local_addr()).await;
}

#[test]
fn origins_that_cannot_be_a_header_are_refused() {
    assert!(CorsOptions::allow_origins(["http://a\nb"]).is_err());
    assert!(CorsOptions::allow_origins([PAGE]).is_ok());
    assert_eq!(CorsOptions::disabled(), CorsOptions::default());
}
