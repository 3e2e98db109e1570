//! What can be configured about a server.

use std::fmt;
use std::time::Duration;

use greenroom_actors::runtime::RestartPolicy;
use greenroom_protocol::Batches;
use http::header::{HeaderValue, InvalidHeaderValue};

use crate::http::headers::DEFAULT_PATH;

/// Which web pages of other origins may use the server.
///
/// CORS is no authentication: programs that are no browser send what they like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CorsOptions {
    /// None, and no CORS headers. A WebSocket upgrade with an `Origin` is refused.
    #[default]
    Disabled,
    /// Pages of exactly these origins.
    AllowOrigins(Vec<HeaderValue>),
    /// Every page. A policy for origins only: it allows neither credentials nor `Authorization`.
    AllowAnyOrigin,
}

impl CorsOptions {
    /// No other origins.
    #[must_use]
    pub fn disabled() -> Self {
        Self::Disabled
    }

    /// Exactly these origins, for example `http://localhost:5173`.
    ///
    /// # Errors
    /// When one of them cannot be the value of a header.
    pub fn allow_origins<I, S>(origins: I) -> Result<Self, InvalidHeaderValue>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        let origins: Result<Vec<_>, _> =
            origins.into_iter().map(|origin| HeaderValue::from_str(origin.as_ref())).collect();
        origins.map(Self::AllowOrigins)
    }

    /// Every origin.
    #[must_use]
    pub fn allow_any_origin() -> Self {
        Self::AllowAnyOrigin
    }
}

/// Which names the server may be called by: protection against DNS rebinding, by which a web page
/// reaches a local server under a name of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllowedHosts {
    /// `localhost`, names below it, and every IP address: no page can rebind those.
    #[default]
    Local,
    /// As [`Local`](Self::Local), and these names, without port.
    Names(Vec<String>),
    /// Any name: for a server behind a proxy that checks it.
    Any,
}

/// A secret that clients send as `Authorization: Bearer …`. Never shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(String);

impl BearerToken {
    /// This secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    pub(super) fn secret(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken(..)")
    }
}

/// Sizes and times that keep one client from harming the others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerLimits {
    /// Bytes of one POST body: 16 MiB. Above: 413.
    pub body: usize,
    /// Bytes of one WebSocket message: 64 MiB. Above: close 1009.
    pub websocket_message: usize,
    /// Bytes of one WebSocket frame: 16 MiB. Above: close 1009.
    pub websocket_frame: usize,
    /// ACP connections at the same time: 10,000. Above: 503.
    pub connections: usize,
    /// TCP connections that [`serve`](super::AcpHttpServer::serve) accepts at the same time: 16,384.
    /// Above: the next one waits.
    pub sockets: usize,
    /// Sessions of one connection: 1,024. Above: 429.
    pub sessions: usize,
    /// Session streams that a client may open before the agent has named the session: 16. Above:
    /// 404.
    pub unconfirmed_streams: usize,
    /// Requests of one connection that the agent has not answered: 10,000. Above: 429.
    pub open_requests: usize,
    /// Bytes sent to the agent and not worked off, of one connection: 16 MiB. Above, a POST waits,
    /// at most as long as a body may take (then 503), and a WebSocket is not read.
    pub incoming_credit: usize,
    /// Bytes queued for one stream above which its producer is slowed: 1 MiB.
    pub stream_credit: usize,
    /// Bytes queued for one stream that end the connection: 64 MiB. Nothing is left out silently.
    pub stream_cap: usize,
    /// Time for the head of a request: 10 s. Above: 408 or the end of the socket.
    pub header_deadline: Duration,
    /// Time for the body of a POST: 30 s. Above: 408.
    pub body_deadline: Duration,
    /// Time for the agent's answer to `initialize`: 60 s. Above: 504.
    pub initialize_deadline: Duration,
    /// Time for a WebSocket to come up after the server agreed: 10 s.
    pub upgrade_deadline: Duration,
    /// Time after which a connection ends that has no stream and gets no request: 5 minutes.
    pub idle: Duration,
    /// Time for clients to fetch what is queued after the agent ended: 5 s.
    pub linger: Duration,
    /// Time for everything to drain at shutdown: 5 s. Then it is cut off.
    pub shutdown: Duration,
    /// Silence on an SSE stream after which a comment is sent: 15 s.
    pub keep_alive: Duration,
    /// Bytes of sent events that each SSE stream keeps, so that a client that lost its stream can
    /// go on by `Last-Event-ID`: 0, which is off, and then events have no ids. Otherwise a new
    /// stream begins with an id of its own, so that it can go on before any message has come.
    pub replay: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        let seconds = Duration::from_secs;
        Self {
            body: 16 * MIB,
            websocket_message: 64 * MIB,
            websocket_frame: 16 * MIB,
            connections: 10_000,
            sockets: 16_384,
            sessions: 1024,
            unconfirmed_streams: 16,
            open_requests: 10_000,
            incoming_credit: 16 * MIB,
            stream_credit: MIB,
            stream_cap: 64 * MIB,
            header_deadline: seconds(10),
            body_deadline: seconds(30),
            initialize_deadline: seconds(60),
            upgrade_deadline: seconds(10),
            idle: seconds(300),
            linger: seconds(5),
            shutdown: seconds(5),
            keep_alive: seconds(15),
            replay: 0,
        }
    }
}

/// Where and how a server serves. Start from [`default`](Self::default).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerOptions {
    /// The endpoint: `/acp`.
    pub path: String,
    /// Other origins: none.
    pub cors: CorsOptions,
    /// Whether `GET /health` answers `ok`: yes.
    pub health_endpoint: bool,
    /// Names by which the server may be called: local ones.
    pub hosts: AllowedHosts,
    /// Whether POST, GET and DELETE with an `Origin` that is neither the server's own nor allowed
    /// by [`cors`](Self::cors) are refused: yes. A WebSocket upgrade always is.
    pub check_origin: bool,
    /// What clients must send: nothing.
    pub bearer_token: Option<BearerToken>,
    /// Whether [`serve`](super::AcpHttpServer::serve) takes a listener that other machines reach
    /// although no token is set: no.
    pub allow_remote_without_token: bool,
    /// Whether JSON arrays are accepted: yes. Refused ones get one `-32600`.
    pub batches: Batches,
    /// How often each actor of the server and of its connections may die: 5 times in 1 s. One more
    /// death ends its connection; that of the listener ends the server.
    pub restart: RestartPolicy,
    /// Sizes and times.
    pub limits: ServerLimits,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            path: DEFAULT_PATH.to_owned(),
            cors: CorsOptions::Disabled,
            health_endpoint: true,
            hosts: AllowedHosts::Local,
            check_origin: true,
            bearer_token: None,
            allow_remote_without_token: false,
            batches: Batches::Accept,
            restart: RestartPolicy::default(),
            limits: ServerLimits::default(),
        }
    }
}

impl ServerOptions {
    /// Another endpoint; it must start with `/`.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Other origins.
    #[must_use]
    pub fn with_cors(mut self, cors: CorsOptions) -> Self {
        self.cors = cors;
        self
    }

    /// With or without `GET /health`.
    #[must_use]
    pub fn with_health_endpoint(mut self, health_endpoint: bool) -> Self {
        self.health_endpoint = health_endpoint;
        self
    }

    /// Names by which the server may be called.
    #[must_use]
    pub fn with_hosts(mut self, hosts: AllowedHosts) -> Self {
        self.hosts = hosts;
        self
    }

    /// Whether foreign origins are refused for POST, GET and DELETE.
    #[must_use]
    pub fn with_origin_check(mut self, check_origin: bool) -> Self {
        self.check_origin = check_origin;
        self
    }

    /// Asks every client for this secret.
    #[must_use]
    pub fn with_bearer_token(mut self, token: impl Into<String>) -> Self {
        self.bearer_token = Some(BearerToken::new(token));
        self
    }

    /// Lets other machines in without a token.
    #[must_use]
    pub fn with_remote_without_token(mut self, allow: bool) -> Self {
        self.allow_remote_without_token = allow;
        self
    }

    /// Whether JSON arrays are accepted.
    #[must_use]
    pub fn with_batches(mut self, batches: Batches) -> Self {
        self.batches = batches;
        self
    }

    /// How often each actor may die.
    #[must_use]
    pub fn with_restart(mut self, restart: RestartPolicy) -> Self {
        self.restart = restart;
        self
    }

    /// Changes sizes and times.
    #[must_use]
    pub fn with_limits(mut self, change: impl FnOnce(&mut ServerLimits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// # Panics
    /// On a path that no request can have, or that is needed twice: a fault of the program, not of
    /// a client.
    pub(super) fn check(&self) {
        assert!(self.path.starts_with('/'), "the path of an ACP server must start with `/`");
        let taken = self.health_endpoint && self.path == super::HEALTH_PATH;
        assert!(!taken, "the path of an ACP server must not be `/health` while the health endpoint is on");
    }
}
