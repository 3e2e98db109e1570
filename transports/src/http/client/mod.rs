//! The client of HTTP and WebSocket.
//!
//! The physical work of a connection is the driver of its link: one future, below the supervisor of
//! the connection, that owns every socket. When it is dropped, nothing of it is left but the wish
//! that the server forget the connection.

mod builder;
mod endpoint;
mod error;
mod failure;
mod options;
mod streams;
mod web_socket;

use std::fmt;
use std::sync::Arc;

use greenroom_actors::link::Link;
use greenroom_actors::{Client, ConnectTo, Role};
use greenroom_protocol::{ConnectionDriver, Frame, Result};

use self::endpoint::{Endpoint, Shape};

pub use self::builder::HttpClientBuilder;
pub use self::error::HttpClientError;
pub use self::options::HttpClientOptions;

/// An agent that is reached over HTTP.
///
/// With an `http` or `https` URL, messages are posted and answers come as server-sent events; with
/// `ws` or `wss`, both travel over one WebSocket. Clones share the endpoint and the HTTP client with
/// its connection pool; each connection to the agent has its own state.
///
/// Ordering: requests and notifications are posted one after the other, in order. Answers to the
/// agent are posted one after the other too, but do not wait behind requests. Messages of one
/// session arrive in order.
///
/// The connection fails, with the cause in every open request, when the server refuses a message,
/// ends a stream, or closes the WebSocket. It is never opened again by itself: what the server sent
/// in between would be lost. An `initialize` that is answered with an error may be repeated.
///
/// Events are read as the standard says, but strictly: a stream with an unknown field ends the
/// connection. HTTP/2 is spoken where the program turns on the feature `http2` of `reqwest`.
///
/// When the connection ends in order, everything accepted is posted and the server is told. When it
/// is dropped, the server is told if that is still possible.
#[derive(Clone)]
pub struct HttpClient {
    endpoint: Arc<Endpoint>,
    http: reqwest::Client,
    options: HttpClientOptions,
}

impl HttpClient {
    /// A client for the server at `base_url`: `/acp` is appended to its path, unless it ends with that
    /// already. Environment proxies and the system's trust in certificates apply.
    ///
    /// # Errors
    /// When the URL is unusable or the HTTP client cannot be configured.
    pub fn new(base_url: impl AsRef<str>) -> Result<Self, HttpClientError> {
        Self::builder(base_url).build()
    }

    /// A client for exactly this endpoint.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_endpoint(endpoint: impl AsRef<str>) -> Result<Self, HttpClientError> {
        Self::builder_with_endpoint(endpoint).build()
    }

    /// Configures a client for the server at `base_url`, with the path rule of [`new`](Self::new).
    #[must_use]
    pub fn builder(base_url: impl AsRef<str>) -> HttpClientBuilder {
        HttpClientBuilder::new(Endpoint::below(base_url.as_ref()))
    }

    /// Configures a client for exactly this endpoint.
    #[must_use]
    pub fn builder_with_endpoint(endpoint: impl AsRef<str>) -> HttpClientBuilder {
        HttpClientBuilder::new(Endpoint::exact(endpoint.as_ref()))
    }

    /// A client for exactly this `http` or `https` endpoint that shares an HTTP client, with its
    /// pool and all of its settings, redirects included.
    ///
    /// # Errors
    /// When the URL is unusable, or is that of a WebSocket.
    pub fn from_http_client(endpoint: impl AsRef<str>, http: reqwest::Client) -> Result<Self, HttpClientError> {
        Self::shared(Endpoint::exact(endpoint.as_ref())?, http)
    }

    /// As [`from_http_client`](Self::from_http_client), with the path rule of [`new`](Self::new).
    ///
    /// # Errors
    /// As [`from_http_client`](Self::from_http_client).
    #[deprecated = "use `builder(base_url).configure_http(..)`, or `from_http_client` with the exact endpoint"]
    pub fn with_client(base_url: impl AsRef<str>, client: reqwest::Client) -> Result<Self, HttpClientError> {
        Self::shared(Endpoint::below(base_url.as_ref())?, client)
    }

    /// Another name of [`from_http_client`](Self::from_http_client).
    ///
    /// # Errors
    /// As [`from_http_client`](Self::from_http_client).
    #[deprecated = "use `builder_with_endpoint(endpoint).configure_http(..)` or `from_http_client`"]
    pub fn with_endpoint_and_client(
        endpoint: impl AsRef<str>,
        client: reqwest::Client,
    ) -> Result<Self, HttpClientError> {
        Self::shared(Endpoint::exact(endpoint.as_ref())?, client)
    }

    fn shared(endpoint: Endpoint, http: reqwest::Client) -> Result<Self, HttpClientError> {
        match endpoint.shape {
            Shape::WebSocket => Err(HttpClientError::WebSocketRequiresBuilder),
            Shape::Streams => Ok(Self { endpoint: Arc::new(endpoint), http, options: HttpClientOptions::default() }),
        }
    }

    /// Sets limits and deadlines.
    #[must_use]
    pub fn with_options(mut self, options: HttpClientOptions) -> Self {
        self.options = options;
        self
    }

    /// The link of a connection to the agent. Nothing is sent before the connection sends.
    #[must_use]
    pub fn into_link(self) -> Link {
        let (link, receiver, sender) = Link::frames();
        let Self { endpoint, http, options } = self;
        let url = endpoint.url.clone();
        // Finishing is what both do at the end of their input, so there is nothing to be told.
        let driver = match endpoint.shape {
            Shape::Streams => {
                ConnectionDriver::with_finish(streams::drive(http, url, options, receiver, sender), || ())
            }
            Shape::WebSocket => {
                ConnectionDriver::with_finish(web_socket::drive(http, url, options, receiver, sender), || ())
            }
        };
        let kind = match endpoint.shape {
            Shape::Streams => "http",
            Shape::WebSocket => "web-socket",
        };
        link.with_driver(driver).with_driver_kind(kind)
    }
}

impl ConnectTo<Client> for HttpClient {
    async fn connect_to(self, client: impl ConnectTo<<Client as Role>::Counterpart>) -> Result<()> {
        ConnectTo::<Client>::connect_to(Self::into_link(self), client).await
    }

    fn into_link(self) -> Link {
        Self::into_link(self)
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The HTTP client's headers may hold credentials.
        f.debug_struct("HttpClient")
            .field("endpoint", &self.endpoint)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// What a frame costs beside its text, in bytes; as for every other transport.
const FRAME_COST: usize = 256;

/// Reads one message that came whole. Line ends between its tokens become spaces: other transports,
/// to which a relay may pass it on, put one message on one line.
fn read_frame(mut text: bytes::Bytes) -> Frame {
    if memchr::memchr2(b'\n', b'\r', &text).is_some() {
        let mut line = Vec::from(text);
        for byte in &mut line {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        text = line.into();
    }
    Frame::parse(text)
}
