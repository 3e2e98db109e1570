//! Opening a WebSocket: the request, and what its answer has to be.

use reqwest::header::{
    CONNECTION, HeaderMap, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{Client, StatusCode, Upgraded, Url, Version};
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::super::failure::{Action, Failure};

/// Asks for a WebSocket and checks the answer, before anything is sent on it.
pub(super) async fn open(http: Client, url: Url) -> Result<Upgraded, Failure> {
    let key = generate_key();
    // Set on the request, so that they win over the client's default headers.
    let request = http
        .get(url)
        .version(Version::HTTP_11)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, &key);
    let failed = |error: reqwest::Error| Failure::request(Action::OpenWebSocket, &error);
    let response = request.send().await.map_err(failed)?;
    check(response.version(), response.status(), response.headers(), &derive_accept_key(key.as_bytes()))?;
    response.upgrade().await.map_err(failed)
}

/// Whether this answer opens a WebSocket.
///
/// # Errors
/// The first thing that is wrong with it.
fn check(version: Version, status: StatusCode, headers: &HeaderMap, accept: &str) -> Result<(), Failure> {
    if status != StatusCode::SWITCHING_PROTOCOLS {
        return Err(Failure::Status(Action::OpenWebSocket, status));
    }
    let wrong = |what| Err(Failure::Handshake(what));
    if version != Version::HTTP_11 {
        return wrong("it was not answered in HTTP/1.1; is the TLS backend configured for another version?");
    }
    if !only(headers, &UPGRADE).is_some_and(|value| value.eq_ignore_ascii_case("websocket")) {
        return wrong("the answer has no single `Upgrade: websocket`");
    }
    if !has_token(headers, &CONNECTION, "upgrade") {
        return wrong("the answer has no `Connection: upgrade`");
    }
    if only(headers, &SEC_WEBSOCKET_ACCEPT) != Some(accept) {
        return wrong("the answer has no single, correct Sec-WebSocket-Accept; does a proxy set Sec-WebSocket-Key?");
    }
    if headers.contains_key(SEC_WEBSOCKET_PROTOCOL) {
        return wrong("the server chose a subprotocol, and none was offered");
    }
    if headers.contains_key(SEC_WEBSOCKET_EXTENSIONS) {
        return wrong("the server chose an extension, and none was offered");
    }
    Ok(())
}

/// The value of a header that is there exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then(|| value.trim())
}

/// Whether a list, over all headers of this name, has the token.
fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|item| item.trim().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

    fn verdict(version: Version, status: u16, headers: &[(&'static str, &'static str)]) -> Result<(), String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        check(version, status, &map, ACCEPT).map_err(|failure| failure.to_string())
    }

    fn good() -> Vec<(&'static str, &'static str)> {
        vec![("upgrade", "WebSocket"), ("connection", "keep-alive, Upgrade"), ("sec-websocket-accept", ACCEPT)]
    }

    #[test]
    fn a_correct_answer_is_taken() {
        assert_eq!(verdict(Version::HTTP_11, 101, &good()), Ok(()));
    }

    #[test]
    fn every_deviation_is_refused_and_named() {
        let without = |name: &str| good().into_iter().filter(|(other, _)| *other != name).collect::<Vec<_>>();
        let with = |name, value| good().into_iter().chain([(name, value)]).collect::<Vec<_>>();
        let rows = [
            (Version::HTTP_11, 200, good(), "answered 200"),
            (Version::HTTP_11, 302, good(), "a redirect that is not followed"),
            (Version::HTTP_2, 101, good(), "HTTP/1.1"),
            (Version::HTTP_10, 101, good(), "HTTP/1.1"),
            (Version::HTTP_11, 101, without("upgrade"), "Upgrade: websocket"),
            (Version::HTTP_11, 101, with("upgrade", "websocket"), "Upgrade: websocket"),
            (Version::HTTP_11, 101, without("connection"), "Connection: upgrade"),
            (Version::HTTP_11, 101, without("sec-websocket-accept"), "Sec-WebSocket-Accept"),
            (Version::HTTP_11, 101, with("sec-websocket-accept", ACCEPT), "Sec-WebSocket-Accept"),
            (Version::HTTP_11, 101, with("sec-websocket-protocol", "acp"), "subprotocol"),
            (Version::HTTP_11, 101, with("sec-websocket-extensions", "permessage-deflate"), "extension"),
        ];
        for (version, status, headers, named) in rows {
            let said = verdict(version, status, &headers).unwrap_err();
            assert!(said.contains(named), "{named}: {said}");
        }
        let mut wrong = without("sec-websocket-accept");
        wrong.push(("sec-websocket-accept", "AAAAAAAAAAAAAAAAAAAAAAAAAAA="));
        assert!(verdict(Version::HTTP_11, 101, &wrong).unwrap_err().contains("Sec-WebSocket-Accept"));
    }
}
