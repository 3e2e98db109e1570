//! Opening a session that the agent knows already.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

use greenroom_protocol::schema::{
    LoadSessionRequest, LoadSessionResponse, Meta, NewSessionResponse, ResumeSessionRequest, ResumeSessionResponse,
    SessionConfigOption, SessionId, SessionModeState,
};
use greenroom_protocol::{JsonRpcRequest, Result, method};

use super::active::{ActiveSession, Place};
use super::builder::{Blocking, NonBlocking, SessionBlockState};
use super::setup::{Handover, spawn_callback};
use crate::connection_to::ConnectionTo;
use crate::request::RequestCancellationHandle;
use crate::role::HasPeer;
use crate::role::acp::Agent;

/// Describes a session that is to be loaded (the agent replays its history) or resumed (it does
/// not). Nothing is sent before one of the start methods.
///
/// A session that is open on this connection already is taken over when the request is sent, because
/// what is replayed needs a reader by then: the older handle reads what was delivered before, then an
/// error that says so, also when the agent refuses the request.
#[must_use = "nothing is sent before the session is started"]
pub struct RestoreSessionBuilder<Counterpart, Request, BlockState = NonBlocking>
where
    Counterpart: HasPeer<Agent>,
    BlockState: SessionBlockState,
{
    connection: ConnectionTo<Counterpart>,
    request: Request,
    _state: PhantomData<BlockState>,
}

impl<Counterpart: HasPeer<Agent>> ConnectionTo<Counterpart> {
    /// Loads a session: the agent replays its history before it answers.
    pub fn load_session(
        &self,
        session_id: impl Into<SessionId>,
        cwd: impl AsRef<Path>,
    ) -> RestoreSessionBuilder<Counterpart, LoadSessionRequest> {
        self.load_session_from(LoadSessionRequest::new(session_id, cwd.as_ref()))
    }

    /// Loads a session from a complete request.
    pub fn load_session_from(
        &self,
        request: LoadSessionRequest,
    ) -> RestoreSessionBuilder<Counterpart, LoadSessionRequest> {
        RestoreSessionBuilder { connection: self.clone(), request, _state: PhantomData }
    }

    /// Resumes a session: nothing is replayed.
    pub fn resume_session(
        &self,
        session_id: impl Into<SessionId>,
        cwd: impl AsRef<Path>,
    ) -> RestoreSessionBuilder<Counterpart, ResumeSessionRequest> {
        self.resume_session_from(ResumeSessionRequest::new(session_id, cwd.as_ref()))
    }

    /// Resumes a session from a complete request.
    pub fn resume_session_from(
        &self,
        request: ResumeSessionRequest,
    ) -> RestoreSessionBuilder<Counterpart, ResumeSessionRequest> {
        RestoreSessionBuilder { connection: self.clone(), request, _state: PhantomData }
    }
}

impl<Counterpart: HasPeer<Agent>, Request> RestoreSessionBuilder<Counterpart, Request, NonBlocking> {
    /// Lets the caller wait for the session. Not inside handlers of the same connection.
    pub fn block_task(self) -> RestoreSessionBuilder<Counterpart, Request, Blocking> {
        RestoreSessionBuilder { connection: self.connection, request: self.request, _state: PhantomData }
    }
}

/// A request that restores a session.
trait Restore: JsonRpcRequest<Response: Restored> {
    const METHOD: &'static str;

    fn session(&self) -> &SessionId;
}

impl Restore for LoadSessionRequest {
    const METHOD: &'static str = method::SESSION_LOAD;

    fn session(&self) -> &SessionId {
        &self.session_id
    }
}

impl Restore for ResumeSessionRequest {
    const METHOD: &'static str = method::SESSION_RESUME;

    fn session(&self) -> &SessionId {
        &self.session_id
    }
}

/// The answer to such a request.
trait Restored {
    fn parts(&self) -> (&Option<SessionModeState>, &Option<Vec<SessionConfigOption>>, &Option<Meta>);
}

impl Restored for LoadSessionResponse {
    fn parts(&self) -> (&Option<SessionModeState>, &Option<Vec<SessionConfigOption>>, &Option<Meta>) {
        (&self.modes, &self.config_options, &self.meta)
    }
}

impl Restored for ResumeSessionResponse {
    fn parts(&self) -> (&Option<SessionModeState>, &Option<Vec<SessionConfigOption>>, &Option<Meta>) {
        (&self.modes, &self.config_options, &self.meta)
    }
}

/// A request that was sent, and the session that it is about.
struct Sent {
    handle: RequestCancellationHandle,
    place: Place,
}

/// Opens the session's place, then sends the request: what the agent replays before its answer has
/// a reader. `then` gets the session inside the dispatch step of the answer.
fn restore<C: HasPeer<Agent>, Request: Restore>(
    connection: &ConnectionTo<C>,
    request: Request,
    then: impl FnOnce(Result<RestoredSession<'static, C, Request::Response>>) -> Result<()> + Send + 'static,
) -> Result<Sent> {
    let mut session = ActiveSession::open(connection, NewSessionResponse::new(request.session().clone()))?;
    let prepared = connection.prepare_request_to(Agent, request);
    let sent = Sent { handle: prepared.cancellation_handle(), place: session.place() };
    prepared.on_receiving_result(async move |response| {
        then(response.map(|response| {
            let (modes, options, meta) = response.parts();
            let mut known = NewSessionResponse::new(session.session_id().clone());
            (known.modes, known.config_options, known.meta) = (modes.clone(), options.clone(), meta.clone());
            session.set_response(known);
            RestoredSession { session, response }
        }))
    })?;
    Ok(sent)
}

/// Nobody waits for the session any more: the agent is asked to cancel, and what it says meanwhile does
/// not wait for the reader who never comes. It may itself wait for an answer before it gives one.
struct GiveUp(Option<Sent>);

impl Drop for GiveUp {
    fn drop(&mut self) {
        if let Some(Sent { handle, place }) = self.0.take() {
            let _ = handle.cancel();
            place.close();
        }
    }
}

async fn restore_blocking<C: HasPeer<Agent>, Request: Restore>(
    connection: &ConnectionTo<C>,
    request: Request,
) -> Result<RestoredSession<'static, C, Request::Response>> {
    let (give, opened) = Handover::new(connection, Request::METHOD);
    let sent = restore(connection, request, move |restored| {
        // Who waited may be gone: then the session is dropped again.
        let _ = give.send(restored);
        Ok(())
    })?;
    let mut give_up = GiveUp(Some(sent));
    let restored = opened.await?;
    give_up.0 = None;
    Ok(restored)
}

macro_rules! restoring {
    ($request:ident, $response:ident) => {
        impl<Counterpart: HasPeer<Agent>> RestoreSessionBuilder<Counterpart, $request> {
            /// Starts the session and calls `op` with it, in a task of the connection. May be called
            /// in a handler.
            ///
            /// The session's messages are kept from before the request on. If the agent refuses,
            /// `op` is not called, and the error is reported like that of any ordered callback.
            ///
            /// # Errors
            /// When the connection is over.
            pub fn on_session_start<F, Fut>(self, op: F) -> Result<()>
            where
                F: FnOnce(RestoredSession<'static, Counterpart, $response>) -> Fut + Send + 'static,
                Fut: Future<Output = Result<()>> + Send,
            {
                let connection = self.connection.clone();
                restore(&self.connection, self.request, move |restored| spawn_callback(&connection, op, restored?))
                    .map(drop)
            }
        }

        impl<Counterpart: HasPeer<Agent>> RestoreSessionBuilder<Counterpart, $request, Blocking> {
            /// Starts the session and waits for it. What the agent replayed waits for the reader.
            ///
            /// Dropping the future before that asks the agent to cancel, and answers its requests in this
            /// session with an error.
            ///
            /// # Errors
            /// The agent's error; or why its answer cannot come.
            pub async fn start_session(self) -> Result<RestoredSession<'static, Counterpart, $response>> {
                restore_blocking(&self.connection, self.request).await
            }
        }
    };
}

restoring!(LoadSessionRequest, LoadSessionResponse);
restoring!(ResumeSessionRequest, ResumeSessionResponse);

/// A restored session, with the complete answer of the agent.
pub struct RestoredSession<'runner, Link, Response>
where
    Link: HasPeer<Agent>,
{
    session: ActiveSession<'runner, Link>,
    response: Response,
}

impl<'runner, Link: HasPeer<Agent>, Response> RestoredSession<'runner, Link, Response> {
    /// The agent's answer.
    #[must_use]
    pub fn response(&self) -> &Response {
        &self.response
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &ActiveSession<'runner, Link> {
        &self.session
    }

    /// The session, to read and to prompt.
    #[must_use]
    pub fn session_mut(&mut self) -> &mut ActiveSession<'runner, Link> {
        &mut self.session
    }

    /// Only the session.
    #[must_use]
    pub fn into_session(self) -> ActiveSession<'runner, Link> {
        self.session
    }

    /// Both.
    #[must_use]
    pub fn into_parts(self) -> (ActiveSession<'runner, Link>, Response) {
        (self.session, self.response)
    }
}

impl<Link: HasPeer<Agent>, Response: fmt::Debug> fmt::Debug for RestoredSession<'_, Link, Response> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestoredSession").field("session", &self.session).finish_non_exhaustive()
    }
}

impl<Counterpart, Request, BlockState> fmt::Debug for RestoreSessionBuilder<Counterpart, Request, BlockState>
where
    Counterpart: HasPeer<Agent>,
    BlockState: SessionBlockState,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestoreSessionBuilder").field("connection", &self.connection).finish_non_exhaustive()
    }
}
