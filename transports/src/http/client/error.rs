//! Why an HTTP client cannot be made.

use std::fmt;

/// Why an [`HttpClient`](super::HttpClient) could not be built. Nothing was sent.
///
/// What goes wrong on an open connection is the error of that connection.
#[derive(Debug)]
pub enum HttpClientError {
    /// The text is no URL.
    InvalidUrl(url::ParseError),
    /// The HTTP client could not be configured, for example because a certificate is unusable.
    Reqwest(reqwest::Error),
    /// The URL has this scheme; there is a transport for `http`, `https`, `ws` and `wss` only.
    UnsupportedScheme(String),
    /// A client that is built already was given for a `ws` or `wss` URL. It cannot be made to obey
    /// the rules of a WebSocket handshake: configure [`HttpClient::builder`](super::HttpClient::builder)
    /// instead.
    WebSocketRequiresBuilder,
}

impl fmt::Display for HttpClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidUrl(error) => {
                write!(f, "the URL of the agent is invalid: {error}; write it like http://127.0.0.1:8080")
            }
            Self::Reqwest(error) => write!(f, "the HTTP client could not be configured: {error}"),
            Self::UnsupportedScheme(scheme) => {
                write!(f, "there is no transport for the URL scheme {scheme:?}; use http, https, ws or wss")
            }
            Self::WebSocketRequiresBuilder => f.write_str(
                "a ws or wss URL cannot use an HTTP client that is built already; \
                 pass its settings to HttpClient::builder(url).configure_http(..)",
            ),
        }
    }
}

impl std::error::Error for HttpClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::InvalidUrl(error) => Some(error),
            Self::Reqwest(error) => Some(error),
            Self::UnsupportedScheme(_) | Self::WebSocketRequiresBuilder => None,
        }
    }
}

impl From<url::ParseError> for HttpClientError {
    fn from(error: url::ParseError) -> Self {
        Self::InvalidUrl(error)
    }
}

impl From<reqwest::Error> for HttpClientError {
    fn from(error: reqwest::Error) -> Self {
        // A URL may carry credentials, an error is likely to be logged.
        Self::Reqwest(error.without_url())
    }
}
