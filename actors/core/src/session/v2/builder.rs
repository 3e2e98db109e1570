//! Opening sessions of protocol version 2.

use std::fmt;
use std::path::Path;

use greenroom_protocol::schema::v2;
use greenroom_protocol::{JsonRpcRequest, Result};

use super::super::setup::{attach, no_directory, spawn_callback};
use super::command::{OpenedV2Session, V2Session};
use crate::mcp_server::Attachments;
use crate::request::SentRequest;
use crate::responder::Responder;
use crate::role::HasPeer;
use crate::role::acp::{Agent, Client};
use crate::run::{NullRun, RunWithConnectionTo};
use crate::v2::V2ConnectionTo;

impl<Counterpart: HasPeer<Agent>> V2ConnectionTo<Counterpart> {
    /// A new session that works in this directory.
    pub fn build_session(&self, cwd: impl AsRef<Path>) -> V2SessionBuilder<Counterpart> {
        self.build_session_from(v2::NewSessionRequest::new(v2::AbsolutePath::from(cwd.as_ref())))
    }

    /// A new session that works in this process's current directory.
    ///
    /// # Errors
    /// When that directory is unknown, for example because it was removed.
    pub fn build_session_cwd(&self) -> Result<V2SessionBuilder<Counterpart>> {
        Ok(self.build_session(std::env::current_dir().map_err(|error| no_directory(&error))?))
    }

    /// A new session from a complete request.
    pub fn build_session_from(&self, request: v2::NewSessionRequest) -> V2SessionBuilder<Counterpart> {
        V2SessionBuilder { connection: self.clone(), request, servers: Attachments::default(), run: NullRun }
    }

    /// Resumes a session that the agent knows.
    pub fn resume_session(
        &self,
        session_id: impl Into<v2::SessionId>,
        cwd: impl AsRef<Path>,
    ) -> V2ResumeSessionBuilder<Counterpart> {
        self.resume_session_from(v2::ResumeSessionRequest::new(session_id, v2::AbsolutePath::from(cwd.as_ref())))
    }

    /// Resumes a session from a complete request.
    pub fn resume_session_from(&self, request: v2::ResumeSessionRequest) -> V2ResumeSessionBuilder<Counterpart> {
        V2ResumeSessionBuilder { connection: self.clone(), request, servers: Attachments::default(), run: NullRun }
    }

    /// A new session that begins as a copy of one that the agent knows.
    #[cfg(feature = "unstable_session_fork")]
    pub fn fork_session(
        &self,
        session_id: impl Into<v2::SessionId>,
        cwd: impl AsRef<Path>,
    ) -> V2ForkSessionBuilder<Counterpart> {
        self.fork_session_from(v2::ForkSessionRequest::new(session_id, v2::AbsolutePath::from(cwd.as_ref())))
    }

    /// A copy of a session from a complete request.
    #[cfg(feature = "unstable_session_fork")]
    pub fn fork_session_from(&self, request: v2::ForkSessionRequest) -> V2ForkSessionBuilder<Counterpart> {
        V2ForkSessionBuilder { connection: self.clone(), request, servers: Attachments::default(), run: NullRun }
    }
}

/// A request that opens a session.
trait Opens: JsonRpcRequest {
    /// The id of the session that it opened.
    fn opened(known: Option<&v2::SessionId>, response: &Self::Response) -> v2::SessionId;

    /// The id, if it is known before the answer.
    fn known(&self) -> Option<v2::SessionId> {
        None
    }
}

impl Opens for v2::NewSessionRequest {
    fn opened(_known: Option<&v2::SessionId>, response: &v2::NewSessionResponse) -> v2::SessionId {
        response.session_id.clone()
    }
}

impl Opens for v2::ResumeSessionRequest {
    fn opened(known: Option<&v2::SessionId>, _response: &v2::ResumeSessionResponse) -> v2::SessionId {
        known.cloned().unwrap_or_else(|| v2::SessionId::new(""))
    }

    fn known(&self) -> Option<v2::SessionId> {
        Some(self.session_id.clone())
    }
}

/// The copy has an id of its own: the one in the answer.
#[cfg(feature = "unstable_session_fork")]
impl Opens for v2::ForkSessionRequest {
    fn opened(_known: Option<&v2::SessionId>, response: &v2::ForkSessionResponse) -> v2::SessionId {
        response.session_id.clone()
    }
}

/// Sends the request; what belongs to the session runs from before that on.
fn start<C, Request, Run>(
    connection: V2ConnectionTo<C>,
    request: Request,
    servers: Attachments<C>,
    run: Run,
) -> SentRequest<OpenedV2Session<C, Request::Response>>
where
    C: HasPeer<Agent>,
    Request: Opens,
    Run: RunWithConnectionTo<C> + 'static,
{
    let known = request.known();
    let prepared = connection.prepare_request_to(Agent, request);
    let prepared = match attach(connection.raw(), servers, run) {
        Ok(attached) => prepared.watched(|good| attached.answered(good)),
        Err(error) => prepared.failing(error),
    };
    let open = move |response: Request::Response| {
        let id = Request::opened(known.as_ref(), &response);
        Ok(OpenedV2Session::new(V2Session::new(id, connection), response))
    };
    prepared.map(open).send()
}

/// Sends the request for a client's request: that gets the answer, unchanged, then `op` is called.
fn start_for_client<C, Request, Run, F, Fut>(
    connection: V2ConnectionTo<C>,
    request: Request,
    servers: Attachments<C>,
    run: Run,
    responder: Responder<Request::Response>,
    op: F,
) -> Result<()>
where
    C: HasPeer<Agent>,
    Request: Opens,
    Run: RunWithConnectionTo<C> + 'static,
    F: FnOnce(OpenedV2Session<C, Request::Response>) -> Fut + Send + 'static,
    Fut: Future<Output = Result<()>> + Send,
{
    let attached = attach(connection.raw(), servers, run)?;
    let known = request.known();
    let prepared = connection.prepare_request_to(Agent, request).watched(|good| attached.answered(good));
    let prepared = prepared.forward_cancellation_from(responder.cancellation());
    prepared.on_receiving_ok_result(responder, async move |response, responder| {
        let id = Request::opened(known.as_ref(), &response);
        responder.respond(response.clone())?;
        let raw = connection.raw().clone();
        spawn_callback(&raw, op, OpenedV2Session::new(V2Session::new(id, connection), response))
    })
}

macro_rules! opening {
    ($(#[$doc:meta])* $builder:ident, $request:ident, $response:ident $(, feature = $feature:literal)?) => {
        $(#[$doc])*
        $(#[cfg(feature = $feature)])?
        #[must_use = "nothing is sent before the session is started"]
        pub struct $builder<Counterpart, Run = NullRun>
        where
            Counterpart: HasPeer<Agent>,
            Run: RunWithConnectionTo<Counterpart>,
        {
            connection: V2ConnectionTo<Counterpart>,
            request: v2::$request,
            servers: Attachments<Counterpart>,
            run: Run,
        }

        $(#[cfg(feature = $feature)])?
        impl<Counterpart, Run> $builder<Counterpart, Run>
        where
            Counterpart: HasPeer<Agent>,
            Run: RunWithConnectionTo<Counterpart>,
        {
            /// The same session with more servers.
            #[cfg(feature = "unstable_mcp_over_acp")]
            pub(crate) fn attaching<Next: RunWithConnectionTo<Counterpart>>(
                self,
                change: impl FnOnce(&mut Attachments<Counterpart>, &mut v2::$request, Run) -> Result<Next>,
            ) -> Result<$builder<Counterpart, Next>> {
                let Self { connection, mut request, mut servers, run } = self;
                let run = change(&mut servers, &mut request, run)?;
                Ok($builder { connection, request, servers, run })
            }

            /// Sends the request. When this returns, it is registered and queued.
            ///
            /// Updates of the session go to the handlers of the connection, whenever they come:
            /// before the answer, too.
            pub fn start_session(self) -> SentRequest<OpenedV2Session<Counterpart, v2::$response>>
            where
                Run: 'static,
            {
                start(self.connection, self.request, self.servers, self.run)
            }

            /// Opens the session for the client of a proxy: its request gets the agent's answer,
            /// unchanged, and its cancellation is passed on. Then `op` is called, in a task of the
            /// connection, outside of the dispatch loop. May be called in a handler.
            ///
            /// # Errors
            /// When the connection is over.
            pub fn on_proxy_session_start<F, Fut>(self, responder: Responder<v2::$response>, op: F) -> Result<()>
            where
                Counterpart: HasPeer<Client>,
                Run: 'static,
                F: FnOnce(OpenedV2Session<Counterpart, v2::$response>) -> Fut + Send + 'static,
                Fut: Future<Output = Result<()>> + Send,
            {
                start_for_client(self.connection, self.request, self.servers, self.run, responder, op)
            }
        }

        $(#[cfg(feature = $feature)])?
        impl<Counterpart, Run> fmt::Debug for $builder<Counterpart, Run>
        where
            Counterpart: HasPeer<Agent>,
            Run: RunWithConnectionTo<Counterpart>,
        {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($builder)).field("connection", &self.connection).finish_non_exhaustive()
            }
        }
    };
}

opening!(
    /// Describes a session that is to be opened.
    V2SessionBuilder,
    NewSessionRequest,
    NewSessionResponse
);
opening!(
    /// Describes a session that is to be resumed.
    V2ResumeSessionBuilder,
    ResumeSessionRequest,
    ResumeSessionResponse
);
opening!(
    /// Describes a copy of a session.
    V2ForkSessionBuilder,
    ForkSessionRequest,
    ForkSessionResponse,
    feature = "unstable_session_fork"
);
