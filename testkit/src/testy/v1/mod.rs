//! The agent of protocol version 1.

mod lifecycle;
mod scenario;
mod sessions;
mod settings;
mod turn;

use std::sync::Arc;

use greenroom::schema::ProtocolVersion;
use greenroom::schema::v1::{
    AgentAuthCapabilities, AgentCapabilities, AuthMethod, AuthMethodAgent, AuthenticateRequest, AuthenticateResponse,
    CancelNotification, ClientCapabilities, CloseSessionRequest, DeleteSessionRequest, Implementation,
    InitializeRequest, InitializeResponse, ListSessionsRequest, LoadSessionRequest, LogoutCapabilities, LogoutRequest,
    LogoutResponse, NewSessionRequest, PromptCapabilities, PromptRequest, PromptResponse, ResumeSessionRequest,
    SessionAdditionalDirectoriesCapabilities, SessionCapabilities, SessionCloseCapabilities, SessionDeleteCapabilities,
    SessionListCapabilities, SessionResumeCapabilities, SetSessionConfigOptionRequest, SetSessionModeRequest,
};
use greenroom::{
    Agent, Client, ConnectTo, ConnectionTo, Error, JsonRpcRequest, Responder, Result, on_receive_notification,
    on_receive_request,
};
use parking_lot::Mutex;
use serde_json::json;

use sessions::Sessions;
use turn::Turn;

const AUTH_METHOD: &str = "testy-login";

/// What the handlers of one connection share.
#[derive(Clone, Default)]
struct Testy {
    sessions: Sessions,
    client: Arc<Mutex<ClientCapabilities>>,
}

/// The agent of protocol version 1 alone.
///
/// It handles every stable request and notification of a client. Scenarios send every stable
/// request and update of an agent: updates that need a capability of the client only to clients that
/// have it, requests to every client, because how one refuses what it does not support is worth a
/// test too. Elicitations need their capabilities; without them the prompt fails with `-32602`.
///
/// Every path that a scenario sends is below the session's working directory.
#[must_use]
pub fn agent_v1() -> impl ConnectTo<Client> {
    let testy = Testy::default();
    /// A handler that is a method of the agent.
    macro_rules! handle {
        ($builder:expr, $request:ty, $method:ident) => {{
            let testy = testy.clone();
            $builder.on_receive_request(
                async move |request: $request, responder: Responder<<$request as JsonRpcRequest>::Response>, client| {
                    testy.$method(request, responder, &client)
                },
                on_receive_request!(),
            )
        }};
    }
    let builder = handle!(Agent.builder().name("testy"), InitializeRequest, initialize);
    let builder = handle!(builder, AuthenticateRequest, authenticate);
    let builder = handle!(builder, LogoutRequest, logout);
    let builder = handle!(builder, NewSessionRequest, new_session);
    let builder = handle!(builder, LoadSessionRequest, load_session);
    let builder = handle!(builder, ResumeSessionRequest, resume_session);
    let builder = handle!(builder, ListSessionsRequest, list_sessions);
    let builder = handle!(builder, CloseSessionRequest, close_session);
    let builder = handle!(builder, DeleteSessionRequest, delete_session);
    let builder = handle!(builder, SetSessionModeRequest, set_mode);
    let builder = handle!(builder, SetSessionConfigOptionRequest, set_config_option);
    let builder = handle!(builder, PromptRequest, prompt);
    builder.on_receive_notification(
        async move |cancel: CancelNotification, _client| {
            testy.sessions.cancel(&cancel.session_id);
            Ok(())
        },
        on_receive_notification!(),
    )
}

impl Testy {
    fn initialize(
        &self,
        request: InitializeRequest,
        responder: Responder<InitializeResponse>,
        _client: &ConnectionTo<Client>,
    ) -> Result<()> {
        *self.client.lock() = request.client_capabilities;
        let session = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .delete(SessionDeleteCapabilities::new())
            .additional_directories(SessionAdditionalDirectoriesCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(PromptCapabilities::new().image(true).audio(true).embedded_context(true))
            .session_capabilities(session)
            .auth(AgentAuthCapabilities::new().logout(LogoutCapabilities::new()));
        let method = AuthMethodAgent::new(AUTH_METHOD, "Testy login").description("Always succeeds");
        responder.respond(
            InitializeResponse::new(ProtocolVersion::V1)
                .agent_info(Implementation::new("testy", env!("CARGO_PKG_VERSION")))
                .agent_capabilities(capabilities)
                .auth_methods(vec![AuthMethod::Agent(method)]),
        )
    }

    fn authenticate(
        &self,
        request: AuthenticateRequest,
        responder: Responder<AuthenticateResponse>,
        _client: &ConnectionTo<Client>,
    ) -> Result<()> {
        if &*request.method_id.0 == AUTH_METHOD {
            return responder.respond(AuthenticateResponse::new());
        }
        Err(Error::invalid_params().data(json!({ "reason": "unknown method", "methods": [AUTH_METHOD] })))
    }

    #[allow(clippy::unused_self, reason = "a handler like the others")]
    fn logout(
        &self,
        _request: LogoutRequest,
        responder: Responder<LogoutResponse>,
        _client: &ConnectionTo<Client>,
    ) -> Result<()> {
        responder.respond(LogoutResponse::new())
    }

    fn prompt(
        &self,
        request: PromptRequest,
        responder: Responder<PromptResponse>,
        client: &ConnectionTo<Client>,
    ) -> Result<()> {
        // Before the turn is spawned: a cancellation right behind the prompt belongs to it.
        let begun = self.sessions.begin_turn(&request)?;
        let turn = Turn::new(begun, self, &request, &responder, client);
        client.spawn(turn.run(request, responder))
    }
}
