//! As much of HTTP as a read-only server needs: reading the head of a request, deciding about it,
//! writing an answer. Pure but for the reading and writing.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Bytes of a request's head.
const MAX_HEAD: usize = 16 * 1024;

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Page,
    /// The events behind this cursor.
    Events(String),
    Tree,
}

/// Why a request gets nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Malformed,
    /// From a page of another site, or through a name that is not ours.
    Foreign,
    Method,
    Token,
    Unknown,
}

impl Refusal {
    pub(super) const fn status(self) -> &'static str {
        match self {
            Self::Malformed => "400 Bad Request",
            Self::Foreign => "403 Forbidden",
            Self::Method => "405 Method Not Allowed",
            Self::Token => "401 Unauthorized",
            Self::Unknown => "404 Not Found",
        }
    }
}

/// Decides about the head of a request.
pub(super) fn decide(head: &str, port: u16, token: &str) -> Result<Wish, Refusal> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Refusal::Malformed);
    };
    let (mut host, mut origin, mut given) = (None, None, None);
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or(Refusal::Malformed)?;
        let place = match name {
            _ if name.eq_ignore_ascii_case("host") => &mut host,
            _ if name.eq_ignore_ascii_case("origin") => &mut origin,
            _ if name.eq_ignore_ascii_case("authorization") => &mut given,
            _ => continue,
        };
        // Said twice, a proxy and a server could disagree about it.
        if place.replace(value.trim()).is_some() {
            return Err(Refusal::Malformed);
        }
    }
    let ours = |host: &str| {
        ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| host.eq_ignore_ascii_case(&format!("{name}:{port}")))
    };
    if !host.is_some_and(ours) || origin.is_some_and(|origin| !origin.strip_prefix("http://").is_some_and(ours)) {
        return Err(Refusal::Foreign);
    }
    if method != "GET" {
        return Err(Refusal::Method);
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let wish = match path {
        "/" => return Ok(Wish::Page),
        "/events" => {
            let after = query.split('&').find_map(|pair| pair.strip_prefix("after=")).unwrap_or_default();
            Wish::Events(after.to_owned())
        }
        "/tree" => Wish::Tree,
        _ => return Err(Refusal::Unknown),
    };
    match given.and_then(|given| given.strip_prefix("Bearer ")) {
        Some(given) if same(given, token) => Ok(wish),
        _ => Err(Refusal::Token),
    }
}

/// Compares without telling by the time how much was right.
fn same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// Reads the head of a request, with the empty line; `None` when none came.
pub(super) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    // No body is ever read, so nothing is missed behind the empty line.
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut piece).await?;
        if count == 0 || head.len() + count > MAX_HEAD {
            return Ok(None);
        }
        head.extend_from_slice(&piece[..count]);
    }
    Ok(String::from_utf8(head).ok())
}

/// Writes an answer.
pub(super) async fn answer(
    stream: &mut (impl AsyncWrite + Unpin),
    status: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: &str, headers: &[&str]) -> Result<Wish, Refusal> {
        decide(&format!("{request}\r\n{}\r\n\r\n", headers.join("\r\n")), 8080, "secret")
    }

    #[test]
    fn only_our_own_page_gets_events() {
        const EVENTS: &str = "GET /events?after=ab-7 HTTP/1.1";
        const HOST: &str = "Host: 127.0.0.1:8080";
        const TOKEN: &str = "Authorization: Bearer secret";
        for (request, headers, expected) in [
            (EVENTS, &[HOST, TOKEN][..], Ok(Wish::Events("ab-7".into()))),
            (
                EVENTS,
                &["host: LOCALHOST:8080", TOKEN, "Origin: http://localhost:8080"],
                Ok(Wish::Events("ab-7".into())),
            ),
            ("GET /tree HTTP/1.1", &[HOST, TOKEN], Ok(Wish::Tree)),
            ("GET / HTTP/1.1", &["Host: [::1]:8080"], Ok(Wish::Page)),
            (EVENTS, &[HOST], Err(Refusal::Token)),
            (EVENTS, &[HOST, "Authorization: Bearer secreT"], Err(Refusal::Token)),
            (EVENTS, &[HOST, "Authorization: secret"], Err(Refusal::Token)),
            ("GET /tree?token=secret HTTP/1.1", &[HOST], Err(Refusal::Token)),
            (EVENTS, &[TOKEN], Err(Refusal::Foreign)),
            (EVENTS, &["Host: evil.example:8080", TOKEN], Err(Refusal::Foreign)),
            (EVENTS, &["Host: 127.0.0.1", TOKEN], Err(Refusal::Foreign)),
            (EVENTS, &["Host: 127.0.0.1:8081", TOKEN], Err(Refusal::Foreign)),
            (EVENTS, &[HOST, TOKEN, "Origin: http://evil.example"], Err(Refusal::Foreign)),
            (EVENTS, &[HOST, TOKEN, "Origin: null"], Err(Refusal::Foreign)),
            ("GET / HTTP/1.1", &["Host: evil.example"], Err(Refusal::Foreign)),
            (EVENTS, &[HOST, HOST, TOKEN], Err(Refusal::Malformed)),
            ("POST /events HTTP/1.1", &[HOST, TOKEN], Err(Refusal::Method)),
            ("GET /../etc/passwd HTTP/1.1", &[HOST, TOKEN], Err(Refusal::Unknown)),
            ("GET /", &[HOST, TOKEN], Err(Refusal::Malformed)),
            ("GET / HTTP/1.1", &["no header", HOST], Err(Refusal::Malformed)),
            ("", &[], Err(Refusal::Malformed)),
        ] {
            assert_eq!(ask(request, headers), expected, "{request} {headers:?}");
        }
    }
}
