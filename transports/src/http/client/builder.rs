//! Configuring an HTTP client.

use std::fmt;
use std::sync::Arc;

use reqwest::redirect::Policy;
use tokio::time::Duration;

use super::HttpClient;
use super::endpoint::{Endpoint, Shape};
use super::error::HttpClientError;
use super::options::HttpClientOptions;

/// Redirects that are followed at most.
const MAX_REDIRECTS: usize = 10;

/// How long an unused connection is kept. Common servers close theirs after 5 s; a message that is
/// posted just then would be lost, and with it the ACP connection, because a POST is never repeated.
const KEEP_IDLE: Duration = Duration::from_secs(4);

/// Configures an [`HttpClient`]; made by [`HttpClient::builder`].
pub struct HttpClientBuilder {
    endpoint: Result<Endpoint, HttpClientError>,
    http: reqwest::ClientBuilder,
    options: HttpClientOptions,
}

impl HttpClientBuilder {
    pub(super) fn new(endpoint: Result<Endpoint, HttpClientError>) -> Self {
        choose_cryptography();
        let http = reqwest::Client::builder().redirect(same_origin()).pool_idle_timeout(KEEP_IDLE);
        Self { endpoint, http, options: HttpClientOptions::default() }
    }

    /// Changes the configuration of the HTTP client: headers, proxies, DNS, TLS, timeouts. Repeated
    /// calls build upon each other. No connection is opened.
    ///
    /// The settings hold for every request of HTTP with SSE and for the handshake of a WebSocket. A
    /// total or read timeout also bounds how long a stream of events may live or be silent.
    ///
    /// By default redirects are followed within the origin of the endpoint only, so that no header
    /// and no message reaches another one. A WebSocket speaks HTTP/1.1 and follows no redirect,
    /// whatever is set here.
    #[must_use]
    pub fn configure_http(mut self, configure: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder) -> Self {
        self.http = configure(self.http);
        self
    }

    /// Sets limits and deadlines.
    #[must_use]
    pub fn with_options(mut self, options: HttpClientOptions) -> Self {
        self.options = options;
        self
    }

    /// Builds the client. No connection is opened.
    ///
    /// # Errors
    /// When the URL is unusable or the HTTP client cannot be configured.
    pub fn build(self) -> Result<HttpClient, HttpClientError> {
        let endpoint = self.endpoint?;
        let http = match endpoint.shape {
            Shape::Streams => self.http,
            // Requirements of the handshake, so they come after the callbacks.
            Shape::WebSocket => self.http.http1_only().redirect(Policy::none()),
        };
        Ok(HttpClient { endpoint: Arc::new(endpoint), http: http.build()?, options: self.options })
    }
}

impl fmt::Debug for HttpClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The HTTP settings may hold credentials.
        f.debug_struct("HttpClientBuilder")
            .field("endpoint", &self.endpoint)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Follows redirects as long as they stay at the same scheme, host and port. Elsewhere the answer
/// stays what it is, a redirect, and fails as such.
fn same_origin() -> Policy {
    Policy::custom(|attempt| {
        if attempt.previous().len() > MAX_REDIRECTS {
            return attempt.error("too many redirects");
        }
        let stays = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
        if stays { attempt.follow() } else { attempt.stop() }
    })
}

/// Makes `ring` the cryptography of this process, unless the program chose another one. `reqwest`
/// brings none along, and would panic without.
fn choose_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails only when somebody else was faster, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
