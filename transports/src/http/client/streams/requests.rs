//! The HTTP requests of one connection.

use std::future::Future;

use bytes::{Bytes, BytesMut};
use greenroom_protocol::{Frame, FrameKind, RawId};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use tokio::time::{Duration, timeout};

use super::super::failure::{Action, Failure};
use super::super::options::HttpClientOptions;
use super::super::read_frame;
use super::message::{Message, Scope};
use crate::http::headers::{CONNECTION_ID, EVENT_STREAM, JSON, LAST_EVENT_ID, SESSION_ID};

/// A body that nobody wants is read up to this size, in bytes, so that its TCP connection can be
/// used again.
const MAX_UNWANTED: usize = 64 * 1024;

/// How often, and after which pause, a session's stream is asked for again when the server says
/// that somebody reads it: that may be ourselves, before the session was closed and reopened.
const CONFLICT_RETRIES: u32 = 10;
const CONFLICT_PAUSE: Duration = Duration::from_millis(100);

/// One connection at the server. Cheap to clone.
#[derive(Clone)]
pub(super) struct Requests {
    pub(super) http: Client,
    pub(super) url: Url,
    pub(super) options: HttpClientOptions,
    /// Known once the server accepted `initialize`.
    pub(super) connection: Option<HeaderValue>,
}

/// What `initialize` brought.
pub(super) struct Initialized {
    /// The agent's answer.
    pub(super) response: Frame,
    /// The id of the connection. With an error there should be none.
    pub(super) connection: Option<HeaderValue>,
}

impl Requests {
    fn scoped(&self, request: RequestBuilder, scope: &Scope) -> RequestBuilder {
        let request = match &self.connection {
            Some(id) => request.header(CONNECTION_ID, id.clone()),
            None => request,
        };
        match scope.session() {
            Some(session) => request.header(SESSION_ID, session.header()),
            None => request,
        }
    }

    fn body(&self, text: Bytes) -> RequestBuilder {
        self.http.post(self.url.clone()).header(CONTENT_TYPE, JSON).header(ACCEPT, JSON).body(text)
    }

    /// Posts `initialize` and reads the answer from the body.
    pub(super) async fn initialize(self, message: Message) -> Result<Initialized, Failure> {
        let action = Action::Initialize;
        let id = message.frame.raw_id();
        let response = self.body(message.frame.text().clone()).send().await;
        let response = success(action, response.map_err(|error| Failure::request(action, &error))?)?;
        let connection = response.headers().get(CONNECTION_ID).cloned().map(|mut id| {
            id.set_sensitive(true);
            id
        });
        let body = read_body(response, self.options.max_message).await?;
        let frame = initialize_response(body, id.as_ref())?;
        if frame.kind() == FrameKind::Result && connection.is_none() {
            return Err(Failure::NoConnectionId);
        }
        Ok(Initialized { response: frame, connection })
    }

    /// Posts a message; done when the server has accepted it.
    pub(super) async fn post(self, message: Message) -> Result<(), Failure> {
        let action = Action::Post;
        let Message { frame, session, permit } = message;
        let scope = session.map_or(Scope::Connection, Scope::Session);
        let request = self.scoped(self.body(frame.text().clone()), &scope);
        let posted = within(action, self.options.post_deadline, async {
            let response = request.send().await.map_err(|error| Failure::request(action, &error))?;
            let mut response = success(action, response)?;
            let mut read = 0;
            while let Ok(Some(chunk)) = response.chunk().await {
                read += chunk.len();
                if read > MAX_UNWANTED {
                    break;
                }
            }
            Ok(())
        })
        .await;
        // From here on the message is the server's.
        drop(permit);
        posted
    }

    /// Opens a stream of events, behind the event with this id if there is one; done when its
    /// headers are there.
    pub(super) async fn open(self, scope: Scope, behind: Option<HeaderValue>) -> Result<Response, Failure> {
        let action = match scope {
            Scope::Connection => Action::OpenConnectionStream,
            Scope::Session(_) => Action::OpenSessionStream,
        };
        within(action, self.options.open_deadline, async {
            // A connection's stream is opened once, unless it goes on after the end of a socket that
            // the server still takes for ours.
            let again = scope.session().is_some() || behind.is_some();
            let mut retries = if again { CONFLICT_RETRIES } else { 0 };
            loop {
                let mut request = self.http.get(self.url.clone()).header(ACCEPT, EVENT_STREAM);
                if let Some(id) = &behind {
                    request = request.header(LAST_EVENT_ID, id.clone());
                }
                let response = self.scoped(request, &scope).send().await;
                let response = response.map_err(|error| Failure::request(action, &error))?;
                if response.status() == StatusCode::CONFLICT && retries > 0 {
                    retries -= 1;
                    tokio::time::sleep(CONFLICT_PAUSE).await;
                    continue;
                }
                let response = success(action, response)?;
                let is_events = response
                    .headers()
                    .get(CONTENT_TYPE)
                    .and_then(|value| value.to_str().ok())
                    .is_some_and(|value| value.trim_start().to_ascii_lowercase().starts_with(EVENT_STREAM));
                return if is_events { Ok(response) } else { Err(Failure::NoEventStream(action)) };
            }
        })
        .await
    }

    /// Tells the server that the connection is over, if there is one. Whether that succeeds is of no
    /// interest: the server finds out by itself.
    pub(super) async fn delete(self) {
        if self.connection.is_some() {
            let request = self.scoped(self.http.delete(self.url.clone()), &Scope::Connection);
            let _ = timeout(self.options.finish_deadline, request.send()).await;
        }
    }
}

async fn within<T>(
    action: Action,
    deadline: Duration,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    timeout(deadline, work).await.unwrap_or(Err(Failure::Deadline(action, deadline)))
}

fn success(action: Action, response: Response) -> Result<Response, Failure> {
    if response.status().is_success() { Ok(response) } else { Err(Failure::Status(action, response.status())) }
}

async fn read_body(mut response: Response, limit: usize) -> Result<Bytes, Failure> {
    let mut body = BytesMut::new();
    let broken = |error: reqwest::Error| Failure::request(Action::Initialize, &error);
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if body.len() + chunk.len() > limit {
            return Err(Failure::TooLong(limit));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// The body as the response to the request with this id.
fn initialize_response(body: Bytes, id: Option<&RawId>) -> Result<Frame, Failure> {
    let frame = read_frame(body.trim_ascii().to_vec().into());
    let answers = matches!(frame.kind(), FrameKind::Result | FrameKind::Error) && frame.raw_id().as_ref() == id;
    if answers { Ok(frame) } else { Err(Failure::NoInitializeResponse) }
}
