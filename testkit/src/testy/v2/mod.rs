//! The agent of protocol version 2, a draft.

mod history;
mod prompts;
mod session;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use greenroom::schema::v2::{
    AgentCapabilities, CancelSessionNotification, CloseSessionRequest, CloseSessionResponse, ContentBlock,
    Implementation, InitializeRequest, InitializeResponse, ListSessionsRequest, ListSessionsResponse, McpServer,
    NewSessionRequest, NewSessionResponse, PromptRequest, PromptResponse, ReplayFrom, ResumeSessionRequest,
    ResumeSessionResponse, SessionCapabilities, SessionId, SessionInfo, SessionListCursor,
};
use greenroom::{
    Agent, Client, ConnectTo, Error, JsonRpcRequest, Responder, Result, V2ConnectionTo, on_receive_notification,
    on_receive_request,
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::oneshot;

use super::command::TestyCommand;
use super::root::Root;
use session::{Prompt, SCENARIOS, Sender, Session};

/// How many sessions one answer lists; the rest comes with its cursor.
const PAGE: usize = 50;

/// The sessions of one connection, by their numbers.
#[derive(Clone, Default)]
struct Testy {
    sessions: Arc<Mutex<BTreeMap<u64, Session>>>,
}

/// The agent of protocol version 2 alone.
///
/// It has the whole baseline of sessions: new, list, resume with replay from the start, close,
/// prompt, cancel. Prompts that come while it works wait for their turn, in their order, and one
/// that comes again under its `idempotencyKey` is inserted once. Of the commands it knows `help`,
/// `echo`, `wait_for_cancel` and `cancel_status`; the other scenarios belong to version 1.
#[must_use]
pub fn agent_v2() -> impl ConnectTo<Client> {
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
    let builder = Agent.v2().name("testy").on_receive_request(
        async |request: InitializeRequest,
               responder: Responder<InitializeResponse>,
               _client: V2ConnectionTo<Client>| {
            let info = Implementation::new("testy", env!("CARGO_PKG_VERSION"));
            let capabilities = AgentCapabilities::new().session(SessionCapabilities::new());
            responder.respond(InitializeResponse::new(request.protocol_version, info).capabilities(capabilities))
        },
        on_receive_request!(),
    );
    let builder = handle!(builder, NewSessionRequest, new_session);
    let builder = handle!(builder, ListSessionsRequest, list_sessions);
    let builder = handle!(builder, ResumeSessionRequest, resume_session);
    let builder = handle!(builder, CloseSessionRequest, close_session);
    let builder = handle!(builder, PromptRequest, prompt);
    builder.on_receive_notification(
        async move |cancel: CancelSessionNotification, client: V2ConnectionTo<Client>| match testy
            .sessions
            .lock()
            .get_mut(&number_of(&cancel.session_id))
        {
            Some(session) => session.cancel(&client),
            None => Ok(()),
        },
        on_receive_notification!(),
    )
}

impl Testy {
    fn new_session(
        &self,
        request: NewSessionRequest,
        responder: Responder<NewSessionResponse>,
        _client: &V2ConnectionTo<Client>,
    ) -> Result<()> {
        distinct_names(&request.mcp_servers)?;
        let root = Root::new(request.cwd.into_inner())?;
        let mut sessions = self.sessions.lock();
        let number = sessions.last_key_value().map_or(1, |(number, _)| number + 1);
        let session = Session::new(number, root);
        let id = session.id.clone();
        sessions.insert(number, session);
        responder.respond(NewSessionResponse::new(id))
    }

    fn list_sessions(
        &self,
        request: ListSessionsRequest,
        responder: Responder<ListSessionsResponse>,
        _client: &V2ConnectionTo<Client>,
    ) -> Result<()> {
        let after = match request.cursor.as_ref().map(|cursor| cursor.0.parse::<u64>()) {
            None => 0,
            Some(Ok(number)) => number,
            Some(Err(_)) => return Err(refused("the cursor is none that was given out")),
        };
        let sessions = self.sessions.lock();
        let here = |session: &&Session| request.cwd.as_ref().is_none_or(|cwd| cwd.0 == session.root.folder());
        let mut all = sessions.range(after + 1..).map(|(_, session)| session).filter(here);
        let page: Vec<_> = all.by_ref().take(PAGE).collect();
        let cursor =
            all.next().and_then(|_| page.last()).map(|session| SessionListCursor::new(session.number.to_string()));
        let infos = page.iter().map(|session| SessionInfo::new(session.id.clone(), session.root.folder()));
        responder.respond(ListSessionsResponse::new(infos.collect()).next_cursor(cursor))
    }

    /// Replay, if it is wanted, then the state, then the answer: nothing comes between them.
    fn resume_session(
        &self,
        request: ResumeSessionRequest,
        responder: Responder<ResumeSessionResponse>,
        client: &V2ConnectionTo<Client>,
    ) -> Result<()> {
        distinct_names(&request.mcp_servers)?;
        let replay = match request.replay_from {
            None => false,
            Some(ReplayFrom::Start(_)) => true,
            Some(_) => return Err(refused("replay is supported from `start` only")),
        };
        let root = Root::new(request.cwd.into_inner())?;
        let mut sessions = self.sessions.lock();
        let session = find(&mut sessions, &request.session_id)?;
        (session.root, session.open) = (root, true);
        session.snapshot(replay, client)?;
        responder.respond(ResumeSessionResponse::new())
    }

    /// Closing what is not there is a success: it is closed.
    fn close_session(
        &self,
        request: CloseSessionRequest,
        responder: Responder<CloseSessionResponse>,
        client: &V2ConnectionTo<Client>,
    ) -> Result<()> {
        if let Some(session) = self.sessions.lock().get_mut(&number_of(&request.session_id)) {
            session.close(client)?;
        }
        responder.respond(CloseSessionResponse::new())
    }

    fn prompt(
        &self,
        request: PromptRequest,
        responder: Responder<PromptResponse>,
        client: &V2ConnectionTo<Client>,
    ) -> Result<()> {
        let mut sessions = self.sessions.lock();
        let session = find(&mut sessions, &request.session_id)?;
        if !session.open {
            return Err(Error::session_not_found(request.session_id.0));
        }
        let command = read(&request.prompt)?;
        let (waits, over) = oneshot::channel();
        let marker = responder.cancellation();
        let key = request.idempotency_key.map(|key| key.as_str().to_owned());
        let sender = Sender { responder, _waits: waits };
        let Some(ticket) = session.submit(Prompt { content: request.prompt, command }, key, sender, client)? else {
            return Ok(());
        };
        let (number, sessions) = (session.number, self.sessions.clone());
        client.spawn(async move {
            tokio::select! {
                // Whichever comes first; the other has nothing left to do.
                () = marker.cancelled() => match sessions.lock().get_mut(&number) {
                    Some(session) => session.withdraw(ticket),
                    None => Ok(()),
                },
                _ = over => Ok(()),
            }
        })
    }
}

/// A session that there is, open or closed.
fn find<'a>(sessions: &'a mut BTreeMap<u64, Session>, id: &SessionId) -> Result<&'a mut Session> {
    sessions.get_mut(&number_of(id)).ok_or_else(|| Error::session_not_found(id.0.clone()))
}

/// No session has the number 0.
fn number_of(id: &SessionId) -> u64 {
    let number = id.0.strip_prefix("session-").and_then(|number| number.parse().ok()).unwrap_or(0);
    // Only in the spelling that was given out.
    if *id.0 == *format!("session-{number}") { number } else { 0 }
}

/// What a prompt asks for, if this version has it. Text and links are what every agent takes;
/// nothing else is advertised.
fn read(prompt: &[ContentBlock]) -> Result<TestyCommand> {
    if prompt.is_empty() {
        return Err(refused("a prompt needs content"));
    }
    let mut text = String::new();
    for block in prompt {
        match block {
            ContentBlock::Text(content) => text += &content.text,
            ContentBlock::ResourceLink(_) => {}
            _ => return Err(refused("prompts hold text and resource links only")),
        }
    }
    let command = TestyCommand::parse(&text)?;
    match &command {
        TestyCommand::RunScenario { scenario } if !SCENARIOS.contains(scenario) => {
            Err(refused("the scenario belongs to protocol version 1"))
        }
        _ => Ok(command),
    }
}

/// Names of MCP servers are distinct in this version.
fn distinct_names(servers: &[McpServer]) -> Result<()> {
    let mut names = BTreeSet::new();
    for server in servers {
        let name = match server {
            McpServer::Http(server) => server.name.as_str(),
            McpServer::Stdio(server) => server.name.as_str(),
            #[cfg(feature = "unstable")]
            McpServer::Acp(server) => server.name.as_str(),
            McpServer::Other(server) => match server.fields.get("name").and_then(serde_json::Value::as_str) {
                Some(name) => name,
                None => continue,
            },
            _ => continue,
        };
        if !names.insert(name) {
            return Err(refused("two MCP servers have the same name"));
        }
    }
    Ok(())
}

fn refused(reason: &str) -> Error {
    Error::invalid_params().data(json!({ "reason": reason }))
}
