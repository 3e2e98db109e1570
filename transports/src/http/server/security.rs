//! Who may talk to the server: names, origins, tokens. Pure.

use std::net::IpAddr;

use http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, ORIGIN};
use http::request::Parts;

use super::answer::Refusal;
use super::options::{AllowedHosts, CorsOptions, ServerOptions};

/// Query parameters by which other servers take tokens. Addresses end up in logs and histories.
const TOKENS_IN_ADDRESSES: [&str; 3] = ["access_token", "bearer_token", "token"];

/// Checks what concerns every method: the name, the token, and, except for an upgrade, which has
/// its own rule, the origin.
pub(super) fn admit(options: &ServerOptions, parts: &Parts, is_upgrade: bool) -> Result<(), Refusal> {
    host(&options.hosts, parts)?;
    if !is_upgrade && options.check_origin {
        origin(&options.cors, parts)?;
    }
    token(options, parts)
}

fn host(allowed: &AllowedHosts, parts: &Parts) -> Result<(), Refusal> {
    if *allowed == AllowedHosts::Any {
        return Ok(());
    }
    let mut named = false;
    // HTTP/2 has no `Host`, only an authority; where there are both, both must be right.
    let header = parts.headers.get_all(HOST).iter().map(|value| value.to_str().unwrap_or_default());
    for authority in header.chain(parts.uri.authority().map(|authority| authority.as_str())) {
        named = true;
        if !is_allowed(allowed, name_of(authority)) {
            return Err(Refusal::text(403, "host not allowed"));
        }
    }
    if named { Ok(()) } else { Err(Refusal::text(400, "Host header required")) }
}

/// An authority without port and brackets.
fn name_of(authority: &str) -> &str {
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split(']').next().unwrap_or_default();
    }
    match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => authority,
    }
}

fn is_allowed(allowed: &AllowedHosts, name: &str) -> bool {
    let lower = name.trim_end_matches('.').to_ascii_lowercase();
    if lower.is_empty() {
        return false;
    }
    lower == "localhost"
        || lower.ends_with(".localhost")
        || lower.parse::<IpAddr>().is_ok()
        || matches!(allowed, AllowedHosts::Names(names) if names.iter().any(|known| known.eq_ignore_ascii_case(&lower)))
}

/// Whether a page of this origin may read answers.
pub(super) fn allows(cors: &CorsOptions, origin: &HeaderValue) -> bool {
    match cors {
        CorsOptions::Disabled => false,
        CorsOptions::AllowOrigins(origins) => origins.contains(origin),
        CorsOptions::AllowAnyOrigin => true,
    }
}

fn origin(cors: &CorsOptions, parts: &Parts) -> Result<(), Refusal> {
    let allowed = parts.headers.get_all(ORIGIN).iter().all(|origin| allows(cors, origin) || is_own(origin, parts));
    if allowed { Ok(()) } else { Err(Refusal::text(403, "origin not allowed")) }
}

/// Whether the origin is the server itself, as the client addressed it.
fn is_own(origin: &HeaderValue, parts: &Parts) -> bool {
    let Some((_, authority)) = origin.to_str().ok().and_then(|origin| origin.split_once("://")) else { return false };
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let called = host.or_else(|| parts.uri.authority().map(|authority| authority.as_str()));
    called.is_some_and(|called| called.eq_ignore_ascii_case(authority))
}

/// The stricter rule for a WebSocket: browsers send it across origins without asking first.
pub(super) fn websocket_origin(cors: &CorsOptions, headers: &HeaderMap) -> Result<(), Refusal> {
    if headers.get_all(ORIGIN).iter().all(|origin| allows(cors, origin)) {
        return Ok(());
    }
    Err(Refusal::text(403, "WebSocket origin not allowed"))
}

fn token(options: &ServerOptions, parts: &Parts) -> Result<(), Refusal> {
    let Some(token) = &options.bearer_token else { return Ok(()) };
    let query = parts.uri.query().unwrap_or_default();
    let mut names = query.split('&').map(|pair| pair.split('=').next().unwrap_or_default());
    if names.any(|name| TOKENS_IN_ADDRESSES.iter().any(|token| token.eq_ignore_ascii_case(name))) {
        return Err(Refusal::text(400, "credentials do not belong into a URL"));
    }
    let mut sent = parts.headers.get_all(AUTHORIZATION).iter();
    let right = match (sent.next(), sent.next()) {
        (Some(value), None) => is_bearer(value.as_bytes(), token.secret()),
        _ => false,
    };
    if right { Ok(()) } else { Err(Refusal::unauthorized()) }
}

fn is_bearer(value: &[u8], secret: &[u8]) -> bool {
    const SCHEME: &[u8] = b"bearer ";
    let Some((scheme, sent)) = value.split_at_checked(SCHEME.len()) else { return false };
    scheme.eq_ignore_ascii_case(SCHEME) && same(sent.trim_ascii(), secret)
}

/// Compares in a time that depends on the length only, so that nobody finds the secret byte by
/// byte.
fn same(left: &[u8], right: &[u8]) -> bool {
    let difference = left.iter().zip(right).fold(0, |difference, (a, b)| std::hint::black_box(difference | (a ^ b)));
    left.len() == right.len() && std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_page_can_rebind_are_refused() {
        let local = AllowedHosts::Local;
        for authority in ["localhost", "LOCALHOST:80", "a.localhost:1", "127.0.0.1:8080", "[::1]:80", "10.0.0.7"] {
            assert!(is_allowed(&local, name_of(authority)), "{authority}");
        }
        for authority in ["evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example", "", ":80", "a@b"] {
            assert!(!is_allowed(&local, name_of(authority)), "{authority}");
        }
        let names = AllowedHosts::Names(vec!["Agent.example".into()]);
        assert!(is_allowed(&names, "agent.example"));
        assert!(!is_allowed(&names, "other.example"));
    }

    #[test]
    fn only_the_exact_secret_passes() {
        assert!(is_bearer(b"Bearer s3cret", b"s3cret"));
        assert!(is_bearer(b"bearer  s3cret ", b"s3cret"));
        for sent in [&b"Bearer s3cre"[..], b"Bearer s3cretx", b"Bearer ", b"Basic s3cret", b"s3cret", b""] {
            assert!(!is_bearer(sent, b"s3cret"));
        }
    }
}
