//! Where an agent is reached: the rules for the URLs that a caller gives.

use std::fmt;

use reqwest::Url;

use super::error::HttpClientError;
use crate::http::headers::DEFAULT_PATH;

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Requests by POST, answers by server-sent events.
    Streams,
    /// Both directions over one WebSocket.
    WebSocket,
}

/// One endpoint of a server.
#[derive(Clone)]
pub(super) struct Endpoint {
    /// Always `http` or `https`: a WebSocket begins as an HTTP request.
    pub(super) url: Url,
    pub(super) shape: Shape,
}

impl Endpoint {
    /// The endpoint at exactly this URL.
    ///
    /// # Errors
    /// When it is no URL, or one of another scheme.
    pub(super) fn exact(text: &str) -> Result<Self, HttpClientError> {
        let mut url = Url::parse(text)?;
        let (scheme, shape) = match url.scheme() {
            "http" => ("http", Shape::Streams),
            "https" => ("https", Shape::Streams),
            "ws" => ("http", Shape::WebSocket),
            "wss" => ("https", Shape::WebSocket),
            other => return Err(HttpClientError::UnsupportedScheme(other.to_owned())),
        };
        if url.set_scheme(scheme).is_err() {
            return Err(HttpClientError::UnsupportedScheme(url.scheme().to_owned()));
        }
        url.set_fragment(None);
        Ok(Self { url, shape })
    }

    /// The endpoint of the server at this URL: `/acp` below it, unless it ends with that already.
    ///
    /// # Errors
    /// As [`exact`](Self::exact).
    pub(super) fn below(text: &str) -> Result<Self, HttpClientError> {
        let mut endpoint = Self::exact(text)?;
        let path = endpoint.url.path().trim_end_matches('/');
        let path = if path.ends_with(DEFAULT_PATH) { path.to_owned() } else { format!("{path}{DEFAULT_PATH}") };
        endpoint.url.set_path(&path);
        Ok(endpoint)
    }
}

/// Without credentials and query.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = self.url.origin().ascii_serialization();
        f.debug_struct("Endpoint")
            .field("shape", &self.shape)
            .field("url", &format!("{origin}{}", self.url.path()))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(text: &str) -> String {
        Endpoint::below(text).unwrap().url.into()
    }

    #[test]
    fn the_path_is_appended_once() {
        for (given, expected) in [
            ("http://h", "http://h/acp"),
            ("http://h/", "http://h/acp"),
            ("http://h///", "http://h/acp"),
            ("http://h/acp", "http://h/acp"),
            ("http://h/acp//", "http://h/acp"),
            ("http://h/agents/7/", "http://h/agents/7/acp"),
            ("http://h/x/acp", "http://h/x/acp"),
            ("http://h/ACP", "http://h/ACP/acp"),
            ("http://h/a?key=v", "http://h/a/acp?key=v"),
            ("http://h/acp?key=v#part", "http://h/acp?key=v"),
            ("ws://h:1", "http://h:1/acp"),
            ("wss://h", "https://h/acp"),
        ] {
            assert_eq!(below(given), expected, "{given}");
        }
    }

    #[test]
    fn an_exact_endpoint_stays_as_it_is() {
        for (given, expected) in
            [("http://h/custom/?q=1", "http://h/custom/?q=1"), ("http://h", "http://h/"), ("wss://h/x", "https://h/x")]
        {
            assert_eq!(String::from(Endpoint::exact(given).unwrap().url), expected, "{given}");
        }
        assert_eq!(Endpoint::exact("ws://h").unwrap().shape, Shape::WebSocket);
        assert_eq!(Endpoint::exact("https://h").unwrap().shape, Shape::Streams);
    }

    #[test]
    fn what_is_no_endpoint_is_named() {
        assert!(
            matches!(Endpoint::exact("ftp://h"), Err(HttpClientError::UnsupportedScheme(scheme)) if scheme == "ftp")
        );
        assert!(matches!(Endpoint::exact("127.0.0.1:80"), Err(HttpClientError::InvalidUrl(_))));
        assert!(matches!(Endpoint::exact("http://"), Err(HttpClientError::InvalidUrl(_))));
    }

    #[test]
    fn debug_shows_neither_credentials_nor_query() {
        let shown = format!("{:?}", Endpoint::exact("wss://user:secret@h/acp?token=hidden").unwrap());
        assert!(shown.contains("https://h/acp"), "{shown}");
        assert!(!shown.contains("secret") && !shown.contains("hidden") && !shown.contains("user"), "{shown}");
    }
}
