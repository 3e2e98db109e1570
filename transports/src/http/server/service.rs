//! The server as a service: one request in, one answer out.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Buf;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Body;

use super::answer::{Answer, Refusal, ResponseBody, status, text};
use super::root::Root;
use super::{HEALTH_PATH, cors, get, post, security};

/// A server without sockets of its own, for hosts that use hyper or tower. Clones are the same
/// server; when the last one is dropped, all of its connections end.
///
/// Implements the `Service` traits of both. The host must serve HTTP/1.1 with upgrades for
/// WebSocket to work.
#[derive(Clone)]
pub struct AcpService {
    pub(super) root: Arc<Root>,
}

/// The answer of an [`AcpService`]. Dropping it before it is there ends what it asked for.
pub type AcpFuture = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>> + Send>>;

impl AcpService {
    fn answer<B>(&self, request: Request<B>) -> AcpFuture
    where
        B: Body + Send + 'static,
        B::Data: Buf + Send,
    {
        let root = self.root.clone();
        Box::pin(async move {
            let options = root.options.clone();
            let (parts, body) = request.into_parts();
            let headers = parts.headers.clone();
            if let Some(mut answer) = cors::preflight(&options.cors, &parts.method) {
                cors::decorate(&options.cors, &headers, &mut answer, true);
                return Ok(answer);
            }
            let mut answer = handle(&root, parts, body).await.unwrap_or_else(Answer::from);
            cors::decorate(&options.cors, &headers, &mut answer, false);
            Ok(answer)
        })
    }
}

/// Answers one request.
async fn handle<B>(root: &Arc<Root>, mut parts: Parts, body: B) -> Result<Answer, Refusal>
where
    B: Body + Send + 'static,
    B::Data: Buf + Send,
{
    let options = &root.options;
    let is_health = options.health_endpoint && parts.uri.path() == HEALTH_PATH;
    if !is_health && parts.uri.path() != options.path {
        return Err(Refusal::status(StatusCode::NOT_FOUND));
    }
    if is_health {
        return if parts.method == Method::GET || parts.method == Method::HEAD {
            Ok(text(StatusCode::OK, "ok"))
        } else {
            Err(Refusal::status(StatusCode::METHOD_NOT_ALLOWED))
        };
    }
    if !matches!(parts.method, Method::POST | Method::GET | Method::DELETE) {
        let mut answer = status(StatusCode::METHOD_NOT_ALLOWED);
        answer.headers_mut().insert(http::header::ALLOW, http::HeaderValue::from_static("GET,POST,DELETE"));
        return Ok(answer);
    }
    let is_upgrade = get::is_upgrade(&parts);
    security::admit(options, &parts, is_upgrade)?;
    match parts.method {
        Method::POST => post::post(root, &parts, body).await,
        Method::GET if is_upgrade => get::upgrade(root, &mut parts).await,
        Method::GET => get::stream(root, &parts),
        _ => get::delete(root, &parts),
    }
}

impl<B> hyper::service::Service<Request<B>> for AcpService
where
    B: Body + Send + 'static,
    B::Data: Buf + Send,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = AcpFuture;

    fn call(&self, request: Request<B>) -> AcpFuture {
        self.answer(request)
    }
}

impl<B> tower_service::Service<Request<B>> for AcpService
where
    B: Body + Send + 'static,
    B::Data: Buf + Send,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = AcpFuture;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> AcpFuture {
        self.answer(request)
    }
}

impl fmt::Debug for AcpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcpService").field("connections", &self.root.registry.len()).finish_non_exhaustive()
    }
}
