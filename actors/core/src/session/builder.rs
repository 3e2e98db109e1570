//! Opening a new session.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::path::Path;
use std::pin::{Pin, pin};
use std::task::Poll;

use futures_util::FutureExt as _;
use greenroom_protocol::schema::{NewSessionRequest, NewSessionResponse, SessionId};
use greenroom_protocol::{Result, method};

use super::active::ActiveSession;
use super::setup::{Handover, attach, no_directory, spawn_callback};
use crate::connection_to::ConnectionTo;
use crate::mcp_server::{Attached, Attachments};
use crate::request::{PreparedRequest, RequestCancellationHandle};
use crate::responder::Responder;
use crate::role::HasPeer;
use crate::role::acp::{Agent, Client};
use crate::run::{NullRun, RunWithConnectionTo};

/// Whether a builder may wait for the agent.
pub trait SessionBlockState: Send + 'static + Sync + fmt::Debug {}

/// The session starts in the background.
#[derive(Clone, Copy, Debug, Default)]
pub struct NonBlocking;

/// The caller waits until the session is there. Not for handlers of the same connection: the answer
/// would wait behind them, so there it fails at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Blocking;

impl SessionBlockState for NonBlocking {}
impl SessionBlockState for Blocking {}

/// Describes a session that is to be opened. Nothing is sent before one of the start methods.
#[must_use = "nothing is sent before the session is started"]
pub struct SessionBuilder<Counterpart, Run: RunWithConnectionTo<Counterpart> = NullRun, BlockState = NonBlocking>
where
    Counterpart: HasPeer<Agent>,
    BlockState: SessionBlockState,
{
    connection: ConnectionTo<Counterpart>,
    request: NewSessionRequest,
    servers: Attachments<Counterpart>,
    run: Run,
    _state: PhantomData<BlockState>,
}

impl<Counterpart: HasPeer<Agent>> ConnectionTo<Counterpart> {
    /// A new session that works in this directory.
    pub fn build_session(&self, cwd: impl AsRef<Path>) -> SessionBuilder<Counterpart> {
        self.build_session_from(NewSessionRequest::new(cwd.as_ref()))
    }

    /// A new session that works in this process's current directory.
    ///
    /// # Errors
    /// When that directory is unknown, for example because it was removed.
    pub fn build_session_cwd(&self) -> Result<SessionBuilder<Counterpart>> {
        Ok(self.build_session(std::env::current_dir().map_err(|error| no_directory(&error))?))
    }

    /// A new session from a complete request.
    pub fn build_session_from(&self, request: NewSessionRequest) -> SessionBuilder<Counterpart> {
        SessionBuilder {
            connection: self.clone(),
            request,
            servers: Attachments::default(),
            run: NullRun,
            _state: PhantomData,
        }
    }
}

impl<Counterpart, Run, BlockState> SessionBuilder<Counterpart, Run, BlockState>
where
    Counterpart: HasPeer<Agent>,
    Run: RunWithConnectionTo<Counterpart>,
    BlockState: SessionBlockState,
{
    /// The same session with more servers.
    #[cfg(feature = "unstable_mcp_over_acp")]
    pub(crate) fn attaching<Next: RunWithConnectionTo<Counterpart>>(
        self,
        change: impl FnOnce(&mut Attachments<Counterpart>, &mut NewSessionRequest, Run) -> Next,
    ) -> SessionBuilder<Counterpart, Next, BlockState> {
        let Self { connection, mut request, mut servers, run, .. } = self;
        let run = change(&mut servers, &mut request, run);
        SessionBuilder { connection, request, servers, run, _state: PhantomData }
    }

    /// The request. The session is open, and its messages wait for the reader, before the message
    /// behind the answer is dispatched. With a good answer the servers stay; otherwise they are
    /// removed.
    fn prepare(
        connection: &ConnectionTo<Counterpart>,
        request: NewSessionRequest,
        attached: Attached,
    ) -> PreparedRequest<NewSessionResponse> {
        connection.prepare_request_to(Agent, request).watched(|good| attached.answered(good))
    }

    /// Starts the session and calls `op` with it, in a task of the connection. May be called in a
    /// handler.
    ///
    /// The session's messages are kept from the answer on; `op` runs outside of the dispatch loop
    /// and may wait for them. If the agent refuses, `op` is not called, and the error is reported
    /// like that of any ordered callback.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn on_session_start<F, Fut>(self, op: F) -> Result<()>
    where
        Run: 'static,
        F: FnOnce(ActiveSession<'static, Counterpart>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<()>> + Send,
    {
        let Self { connection, request, servers, run, .. } = self;
        let attached = attach(&connection, servers, run)?;
        Self::prepare(&connection, request, attached).on_receiving_result(async move |response| {
            let session = ActiveSession::open(&connection, response?)?;
            spawn_callback(&connection, op, session)
        })
    }

    /// Starts the session for the client of a proxy: its request gets the agent's answer, unchanged,
    /// and its cancellation is passed on. Then `op` is called with the session's id, in a task of
    /// the connection. May be called in a handler.
    ///
    /// Messages of the session pass between agent and client as everything else that a proxy does
    /// not handle.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn on_proxy_session_start<F, Fut>(self, responder: Responder<NewSessionResponse>, op: F) -> Result<()>
    where
        F: FnOnce(SessionId) -> Fut + Send + 'static,
        Fut: Future<Output = Result<()>> + Send,
        Counterpart: HasPeer<Client>,
        Run: 'static,
    {
        let Self { connection, request, servers, run, .. } = self;
        let attached = attach(&connection, servers, run)?;
        let prepared =
            Self::prepare(&connection, request, attached).forward_cancellation_from(responder.cancellation());
        prepared.on_receiving_ok_result(responder, async move |response, responder| {
            let id = response.session_id.clone();
            responder.respond(response)?;
            spawn_callback(&connection, op, id)
        })
    }
}

impl<Counterpart, Run> SessionBuilder<Counterpart, Run, NonBlocking>
where
    Counterpart: HasPeer<Agent>,
    Run: RunWithConnectionTo<Counterpart>,
{
    /// Lets the caller wait for the session. Not inside handlers of the same connection.
    pub fn block_task(self) -> SessionBuilder<Counterpart, Run, Blocking> {
        let Self { connection, request, servers, run, .. } = self;
        SessionBuilder { connection, request, servers, run, _state: PhantomData }
    }
}

impl<Counterpart, Run> SessionBuilder<Counterpart, Run, Blocking>
where
    Counterpart: HasPeer<Agent>,
    Run: RunWithConnectionTo<Counterpart>,
{
    /// Sends the request and waits for the session.
    async fn open<'runner>(
        connection: &ConnectionTo<Counterpart>,
        prepared: PreparedRequest<NewSessionResponse>,
    ) -> Result<ActiveSession<'runner, Counterpart>>
    where
        Counterpart: 'runner,
    {
        let (give, opened) = Handover::new(connection, method::SESSION_NEW);
        let mut cancel = CancelOnDrop(Some(prepared.cancellation_handle()));
        let link = connection.clone();
        prepared.on_receiving_result(async move |response| {
            // Who waited may be gone: then the session is dropped again.
            let _ = give.send(response.and_then(|response| ActiveSession::open(&link, response)));
            Ok(())
        })?;
        let session: ActiveSession<'static, Counterpart> = opened.await?;
        cancel.0 = None;
        Ok(session)
    }

    /// Starts the session and waits for it.
    ///
    /// Dropping the future before that asks the agent to cancel.
    ///
    /// # Errors
    /// The agent's error; or why its answer cannot come.
    pub async fn start_session(self) -> Result<ActiveSession<'static, Counterpart>>
    where
        Run: 'static,
    {
        let Self { connection, request, servers, run, .. } = self;
        let attached = attach(&connection, servers, run)?;
        Self::open(&connection, Self::prepare(&connection, request, attached)).await
    }

    /// Starts the session, runs `op` with it and what was attached to it beside that, and drops
    /// both when `op` is done. What was attached may borrow from the caller.
    ///
    /// # Errors
    /// As [`start_session`](Self::start_session); the error of `op`, or of what was attached.
    pub async fn run_until<T>(
        self,
        op: impl for<'runner> AsyncFnOnce(ActiveSession<'runner, Counterpart>) -> Result<T>,
    ) -> Result<T> {
        let Self { connection, request, servers, run, .. } = self;
        let attached = servers.attach(&connection, connection.counterpart().remote_style(Agent))?;
        let mut beside = pin!(run.run_with_connection_to(connection.clone()).fuse());
        // It has begun before the request is sent.
        if let Some(result) = poll_once(beside.as_mut()).await {
            result?;
        }
        let session = async {
            let prepared = connection.prepare_request_to(Agent, request);
            op(Self::open(&connection, prepared).await?).await
        };
        let done = crate::util::run_until(beside.as_mut(), session).await;
        // What operations still wait for goes on until they have cleaned up.
        crate::util::run_until(beside, attached.remove().map(Ok)).await.and(done)
    }

    /// As [`on_proxy_session_start`](Self::on_proxy_session_start), for callers that may wait.
    ///
    /// # Errors
    /// The agent's error, which the client gets too; or why its answer cannot come.
    pub async fn start_session_proxy(self, responder: Responder<NewSessionResponse>) -> Result<SessionId>
    where
        Counterpart: HasPeer<Client>,
        Run: 'static,
    {
        let Self { connection, request, servers, run, .. } = self;
        let attached = attach(&connection, servers, run)?;
        let (give, opened) = Handover::new(&connection, method::SESSION_NEW);
        let prepared =
            Self::prepare(&connection, request, attached).forward_cancellation_from(responder.cancellation());
        prepared.on_receiving_result(async move |response| {
            let id = response.as_ref().map(|response| response.session_id.clone()).map_err(Clone::clone);
            let answered = responder.respond_with_result(response);
            let _ = give.send(id.and_then(|id| answered.map(|()| id)));
            Ok(())
        })?;
        opened.await
    }
}

/// Polls a future once; what it gives, if that is there already.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Asks the peer to cancel if nobody waits for the answer any more.
struct CancelOnDrop(Option<RequestCancellationHandle>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            let _ = handle.cancel();
        }
    }
}

impl<Counterpart, Run, BlockState> fmt::Debug for SessionBuilder<Counterpart, Run, BlockState>
where
    Counterpart: HasPeer<Agent>,
    Run: RunWithConnectionTo<Counterpart>,
    BlockState: SessionBlockState,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionBuilder").field("connection", &self.connection).finish_non_exhaustive()
    }
}
