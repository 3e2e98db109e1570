//! What a trace may show of an HTTP URL: no user, no password, no value of a credential.

use std::borrow::Cow;

/// Stands where a credential was.
const HIDDEN: &str = "[REDACTED]";

/// Names of query parameters that carry a credential, in lower case without `-` and `_`.
const CREDENTIALS: [&str; 18] = [
    "token",
    "accesstoken",
    "refreshtoken",
    "idtoken",
    "apikey",
    "key",
    "secret",
    "clientsecret",
    "password",
    "passwd",
    "pwd",
    "auth",
    "authorization",
    "bearer",
    "signature",
    "sig",
    "credential",
    "credentials",
];

/// The URL without its credentials. Text that is no HTTP URL, and a URL without credentials, comes
/// back as it is; an HTTP URL that cannot be taken apart is hidden whole.
pub(super) fn redacted(text: &str) -> Cow<'_, str> {
    // What a parser would skip before the scheme.
    let trimmed = text.trim_start_matches(|letter: char| letter <= ' ');
    let Some(rest) = after_scheme(trimmed) else { return Cow::Borrowed(text) };
    match cleaned(rest) {
        Some(None) => Cow::Borrowed(text),
        Some(Some(clean)) => Cow::Owned(format!("{}{clean}", &trimmed[..trimmed.len() - rest.len()])),
        None => Cow::Borrowed(HIDDEN),
    }
}

/// What follows `http:` or `https:`.
fn after_scheme(text: &str) -> Option<&str> {
    ["http:", "https:"].iter().find_map(|scheme| {
        let start = text.get(..scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then(|| &text[scheme.len()..])
    })
}

/// The rest of the URL, if anything had to be changed in it; `None` for one that is broken.
fn cleaned(rest: &str) -> Option<Option<String>> {
    let body = rest.strip_prefix("//")?;
    if body.contains(|letter: char| letter.is_control() || letter == ' ' || letter == '\\') {
        return None;
    }
    let end = body.find(['/', '?', '#']).unwrap_or(body.len());
    let (authority, tail) = body.split_at(end);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if !is_host(host) {
        return None;
    }
    let (before, fragment) = tail.split_once('#').map_or((tail, None), |(before, after)| (before, Some(after)));
    let (path, query) = before.split_once('?').map_or((before, None), |(path, query)| (path, Some(query)));
    let query = query.map(without_credentials);
    if host.len() == authority.len() && !matches!(query, Some(Cow::Owned(_))) {
        return Some(None);
    }
    let mut clean = format!("//{host}{path}");
    if let Some(query) = query {
        clean.push('?');
        clean.push_str(&query);
    }
    if let Some(fragment) = fragment {
        clean.push('#');
        clean.push_str(fragment);
    }
    Some(Some(clean))
}

/// Whether this is a host with or without a port.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(inner) => match inner.split_once(']') {
            Some((address, after)) => (address, after.strip_prefix(':').or(after.is_empty().then_some(""))),
            None => return false,
        },
        None => text.split_once(':').map_or((text, Some("")), |(host, port)| (host, Some(port))),
    };
    let valid_port = |port: &str| port.is_empty() || port.parse::<u16>().is_ok();
    !host.is_empty() && !host.contains(['[', ']', '@', '<', '>', '^', '|']) && port.is_some_and(valid_port)
}

/// The query with other values for credentials; every other pair keeps its spelling.
fn without_credentials(query: &str) -> Cow<'_, str> {
    if !query.split('&').any(is_credential) {
        return Cow::Borrowed(query);
    }
    let pairs: Vec<Cow<'_, str>> = query
        .split('&')
        .map(|pair| match is_credential(pair) {
            true => Cow::Owned(format!("{}={HIDDEN}", pair.split('=').next().unwrap_or_default())),
            false => Cow::Borrowed(pair),
        })
        .collect();
    Cow::Owned(pairs.join("&"))
}

/// Whether the name of this pair, as a server decodes it, is one of a credential.
fn is_credential(pair: &str) -> bool {
    let name = pair.split('=').next().unwrap_or_default();
    let mut decoded = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let [first, others @ ..] = rest {
        let (byte, after) = match rest {
            [b'%', high, low, after @ ..] => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, after),
                _ => (*first, others),
            },
            _ => (*first, others),
        };
        if !matches!(byte, b'-' | b'_') {
            decoded.push(byte.to_ascii_lowercase());
        }
        rest = after;
    }
    CREDENTIALS.iter().any(|known| known.as_bytes() == decoded)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::redacted;

    #[test]
    fn credentials_go_and_the_rest_keeps_its_spelling() {
        for (text, expected) in [
            ("https://host/mcp?token=s1", "https://host/mcp?token=[REDACTED]"),
            ("https://user:s1@host:8080/a", "https://host:8080/a"),
            ("HTTPS://s1@host", "HTTPS://host"),
            ("http://a@b@host/x@y", "http://host/x@y"),
            (
                "https://h/?A=1&Access-Token=s1&b=%20&ACCESS_TOKEN=s2#f",
                "https://h/?A=1&Access-Token=[REDACTED]&b=%20&ACCESS_TOKEN=[REDACTED]#f",
            ),
            ("https://h?api%5Fkey=s1&%6Bey=s2&keys=3", "https://h?api%5Fkey=[REDACTED]&%6Bey=[REDACTED]&keys=3"),
            ("https://h/?sig&x", "https://h/?sig=[REDACTED]&x"),
            ("https://h/?pwd=a=b", "https://h/?pwd=[REDACTED]"),
            (" https://u@[::1]:80/", "https://[::1]:80/"),
        ] {
            assert_eq!(redacted(text), expected, "{text}");
        }
    }

    #[test]
    fn what_has_no_credentials_stays() {
        for text in [
            "https://host",
            "https://h:1/p?a=b&monkey=1#token=x",
            "file:///x?token=a",
            "httpx://u:p@h",
            "",
            "a url",
            "http",
        ] {
            assert_eq!(redacted(text), text);
        }
    }

    #[test]
    fn what_cannot_be_taken_apart_is_hidden() {
        for text in [
            "https:host?token=s1",
            "http://",
            "http://u:s1@",
            "https://h:port/?token=s1",
            "https://h:99999/",
            "https://[::1/?token=s1",
            "https://h/ ?token=s1",
            "https:\\\\u:s1@h",
            "https://h\\@x",
            "https://h/\n?token=s1",
        ] {
            assert_eq!(redacted(text), "[REDACTED]", "{text}");
        }
    }
}
