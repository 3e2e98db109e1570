//! Who is let in.

use super::agent::serve;
use super::client::{INITIALIZE, Socket, connect, listen, post, request};
use super::sse_client::Events;
use super::ws_client::{Ws, upgrade};
use greenroom_transports::{AcpHttpServer, AllowedHosts, CorsOptions, ServerOptions};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

const EVIL: &str = "https://evil.example";

#[tokio::test]
async fn a_name_that_a_page_could_rebind_is_refused() {
    let (server, agents) = serve(ServerOptions::default()).await;
    let address = server.local_addr();
    for host in ["attacker.example", "attacker.example:8080", "localhost.attacker.example"] {
        post(INITIALIZE).host(host).send(address).await.is(403, "host not allowed");
        request("GET").host(host).send(address).await.is(403, "host not allowed");
        let refused = Ws::try_open(address, &upgrade().host(host)).await;
        refused.err().expect("no WebSocket").is(403, "host not allowed");
    }
    assert_eq!(agents.made(), 0);
    for host in ["localhost:1", "127.0.0.1", "[::1]:99"] {
        assert_eq!(post(INITIALIZE).host(host).send(address).await.status, 200, "{host}");
    }
}

#[tokio::test]
async fn names_can_be_allowed() {
    let names = AllowedHosts::Names(vec!["agent.example".to_owned()]);
    let (server, _) = serve(ServerOptions::default().with_hosts(names)).await;
    let address = server.local_addr();
    assert_eq!(post(INITIALIZE).host("Agent.Example:443").send(address).await.status, 200);
    assert_eq!(post(INITIALIZE).host("other.example").send(address).await.status, 403);
    let (server, _) = serve(ServerOptions::default().with_hosts(AllowedHosts::Any)).await;
    assert_eq!(post(INITIALIZE).host("other.example").send(server.local_addr()).await.status, 200);
}

#[tokio::test]
async fn a_request_without_any_host_is_refused() {
    let (server, _) = serve(ServerOptions::default()).await;
    post(INITIALIZE).without_host().send(server.local_addr()).await.is(400, "Host header required");
}

#[tokio::test]
async fn the_address_form_of_a_request_is_checked_too() {
    let (server, _) = serve(ServerOptions::default()).await;
    let answer = post(INITIALIZE).path("http://attacker.example/acp").send(server.local_addr()).await;
    answer.is(403, "host not allowed");
}

/// A request over HTTP/2 with prior knowledge, with this authority; the status of its answer.
async fn http2(address: std::net::SocketAddr, authority: &str) -> u16 {
    let socket = tokio::net::TcpStream::connect(address).await.expect("the server listens");
    let io = hyper_util::rt::TokioIo::new(socket);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.expect("HTTP/2");
    tokio::spawn(connection);
    let request = http::Request::post(format!("http://{authority}/acp"))
        .header("content-type", "application/json")
        .body(INITIALIZE.to_owned())
        .expect("a request");
    assert!(!request.headers().contains_key("host"));
    sender.send_request(request).await.expect("an answer").status().as_u16()
}

#[tokio::test]
async fn http2_has_an_authority_instead_of_a_host() {
    let (server, _) = serve(ServerOptions::default()).await;
    assert_eq!(http2(server.local_addr(), "localhost:1").await, 200);
    assert_eq!(http2(server.local_addr(), "attacker.example").await, 403);
}

#[tokio::test]
async fn a_page_of_another_origin_is_refused() {
    let (server, agents) = serve(ServerOptions::default()).await;
    let address = server.local_addr();
    let id = connect(address).await;
    for origin in [EVIL, "null", "http://127.0.0.1:9"] {
        post(INITIALIZE).header("Origin", origin).send(address).await.is(403, "origin not allowed");
        listen(&id).header("Origin", origin).send(address).await.is(403, "origin not allowed");
        let delete = request("DELETE").connection(&id).header("Origin", origin);
        delete.send(address).await.is(403, "origin not allowed");
    }
    // Its own pages may.
    assert_eq!(post(INITIALIZE).header("Origin", "http://127.0.0.1").send(address).await.status, 200);
    assert_eq!(agents.made(), 2);
}

#[tokio::test]
async fn an_allowed_origin_passes() {
    let cors = CorsOptions::allow_origins(["http://page.example"]).expect("legal");
    let (server, _) = serve(ServerOptions::default().with_cors(cors)).await;
    let address = server.local_addr();
    assert_eq!(post(INITIALIZE).header("Origin", "http://page.example").send(address).await.status, 200);
    assert_eq!(post(INITIALIZE).header("Origin", EVIL).send(address).await.status, 403);
}

#[tokio::test]
async fn a_token_is_asked_of_every_method() {
    let (server, agents) = serve(ServerOptions::default().with_bearer_token("s3cret")).await;
    let address = server.local_addr();
    for wrong in ["Bearer s3cre", "Bearer s3cretx", "Basic s3cret", "s3cret", "Bearer"] {
        let answer = post(INITIALIZE).header("Authorization", wrong).send(address).await;
        answer.is(401, "bearer token required");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    post(INITIALIZE).send(address).await.is(401, "bearer token required");
    listen("x").send(address).await.is(401, "bearer token required");
    request("DELETE").connection("x").send(address).await.is(401, "bearer token required");
    let refused = Ws::try_open(address, &upgrade()).await.err().expect("no WebSocket");
    refused.is(401, "bearer token required");
    assert_eq!(agents.made(), 0);
    let right = "bearer s3cret";
    let opened = post(INITIALIZE).header("Authorization", right).send(address).await;
    let id = opened.header("acp-connection-id").expect("an id").to_owned();
    Events::open(address, &listen(&id).header("Authorization", right)).await;
    assert!(Ws::try_open(address, &upgrade().header("Authorization", right)).await.is_ok());
    request("GET").path("/health").send(address).await.is(200, "ok");
}

#[tokio::test]
async fn two_tokens_are_none() {
    let (server, _) = serve(ServerOptions::default().with_bearer_token("s3cret")).await;
    let twice = post(INITIALIZE).header("Authorization", "Bearer s3cret").header("Authorization", "Bearer s3cret");
    assert_eq!(twice.send(server.local_addr()).await.status, 401);
}

#[tokio::test]
async fn a_token_in_the_address_is_refused() {
    let (server, _) = serve(ServerOptions::default().with_bearer_token("s3cret")).await;
    for path in ["/acp?access_token=s3cret", "/acp?a=b&Token=s3cret"] {
        let request = post(INITIALIZE).path(path).header("Authorization", "Bearer s3cret");
        request.send(server.local_addr()).await.is(400, "credentials do not belong into a URL");
    }
}

#[tokio::test]
async fn other_machines_are_let_in_with_a_token_or_on_purpose_only() {
    let start = async |options: ServerOptions| {
        let listener = TcpListener::bind("0.0.0.0:0").await.expect("a port");
        AcpHttpServer::new(super::agent::real).with_options(options).start(listener).await
    };
    let error = start(ServerOptions::default()).await.expect_err("refused");
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    start(ServerOptions::default().with_bearer_token("s3cret")).await.expect("a token");
    start(ServerOptions::default().with_remote_without_token(true)).await.expect("on purpose");
}

#[test]
fn the_token_is_never_shown() {
    let options = ServerOptions::default().with_bearer_token("s3cret");
    assert!(!format!("{options:?}").contains("s3cret"));
}

#[tokio::test]
async fn a_head_that_does_not_come_ends_the_socket() {
    let options =
        ServerOptions::default().with_limits(|limits| limits.header_deadline = std::time::Duration::from_millis(30));
    let (server, _) = serve(options).await;
    let mut socket = Socket::open(server.local_addr()).await;
    socket.send("POST /acp HTTP/1.1\r\nHost: loc").await;
    let mut rest = Vec::new();
    socket.stream.read_to_end(&mut rest).await.expect("the server closes");
}
