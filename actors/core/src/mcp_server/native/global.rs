//! A server that a proxy attaches to every session that passes through it.

use std::sync::{Arc, OnceLock};

use greenroom_protocol::mcp::{METHOD, Names, SETUP_METHODS, declare, declared_server};
#[cfg(feature = "unstable_protocol_v2")]
use greenroom_protocol::schema::v2;
use greenroom_protocol::schema::{McpServerAcp, v1};
use greenroom_protocol::{BoxFuture, JsonRpcMessage, RemoteStyle, Result};
use serde_json::{Map, Value};

use super::super::server::McpServer;
use super::attachments::{execute_with, fresh_id};
use super::registration::Registration;
use super::route::comes_from;
use super::service::McpService;
use crate::builder::Builder;
use crate::close::HandleConnectionClose;
use crate::connection::InboundCall;
use crate::connection_to::{ConnectionContext, ConnectionTo, RawConnectionContext};
use crate::dispatch::Handled;
use crate::handlers::{Delivery, Entry, HandleDispatchFrom, Handlers, Interest};
use crate::role::acp::{Agent, Client};
use crate::role::{HasPeer, Role};
use crate::run::RunWithConnectionTo;
#[cfg(feature = "unstable_protocol_v2")]
use crate::v2::V2ConnectionContext;

/// The server, with one id for the whole connection.
struct Global<C: Role> {
    declaration: McpServerAcp,
    service: Arc<dyn McpService<C>>,
    agent: RemoteStyle,
    /// There from the first declaration on.
    registration: OnceLock<Arc<Registration>>,
}

impl<C: Role> Global<C> {
    /// Makes the server reachable.
    fn open(&self, connection: &ConnectionTo<C>) -> Result<()> {
        if self.registration.get().is_none() {
            let execute = execute_with(self.service.clone(), connection.counterpart());
            let id = self.declaration.server_id.clone();
            let opened = connection.shared().servers.open(connection.shared(), id, self.agent, execute)?;
            // Handlers run one at a time: nobody was faster.
            let _ = self.registration.set(opened);
        }
        Ok(())
    }
}

/// Adds the declaration to requests that set up a session.
struct Declare<C: Role> {
    server: Arc<Global<C>>,
    client: RemoteStyle,
    names: Names,
}

fn sets_up_v1(method: &str) -> bool {
    SETUP_METHODS.contains(&method)
}

/// Version 2 has no `session/load`.
fn sets_up_v2(method: &str) -> bool {
    method != "session/load" && SETUP_METHODS.contains(&method)
}

impl<C: Role> Declare<C> {
    /// The params with the declaration. From then on the server can be reached.
    fn declared(&self, call: &InboundCall, connection: &ConnectionTo<C>) -> Result<String> {
        let edited = declare(call.params_text(), &self.server.declaration, self.names)?;
        check(call.method(), &edited, self.names)?;
        self.server.open(connection)?;
        Ok(edited)
    }
}

impl<C: Role> Entry<C> for Declare<C> {
    fn interest(&self) -> Interest {
        let sets_up = if self.names == Names::Unique { sets_up_v2 } else { sets_up_v1 };
        Interest::Requests(sets_up, self.client)
    }

    fn handle<'a>(
        &'a mut self,
        delivery: Delivery,
        connection: ConnectionTo<C>,
    ) -> BoxFuture<'a, Result<Handled<Delivery>>> {
        let handled = match delivery {
            Delivery::Request(call, open) => match self.declared(&call, &connection) {
                Ok(params) => {
                    let call = call.with_params(params.as_bytes());
                    Ok(Handled::No { message: Delivery::Request(call, open), retry: false })
                }
                Err(error) => open.answer(Err(error)).map(|()| Handled::Yes),
            },
            message => Ok(Handled::No { message, retry: false }),
        };
        Box::pin(std::future::ready(handled))
    }
}

/// Whether the agent could read the request, its servers aside: those are for the agent to judge.
fn check(method: &str, params: &str, names: Names) -> Result<()> {
    let mut members: Map<String, Value> = serde_json::from_str(params)?;
    members.insert("mcpServers".to_owned(), Value::Array(Vec::new()));
    match (names, method) {
        (Names::Free, "session/new") => reads::<v1::NewSessionRequest>(method, &members),
        (Names::Free, "session/load") => reads::<v1::LoadSessionRequest>(method, &members),
        (Names::Free, "session/resume") => reads::<v1::ResumeSessionRequest>(method, &members),
        #[cfg(feature = "unstable_session_fork")]
        (Names::Free, "session/fork") => reads::<v1::ForkSessionRequest>(method, &members),
        #[cfg(feature = "unstable_protocol_v2")]
        (Names::Unique, "session/new") => reads::<v2::NewSessionRequest>(method, &members),
        #[cfg(feature = "unstable_protocol_v2")]
        (Names::Unique, "session/resume") => reads::<v2::ResumeSessionRequest>(method, &members),
        #[cfg(all(feature = "unstable_protocol_v2", feature = "unstable_session_fork"))]
        (Names::Unique, "session/fork") => reads::<v2::ForkSessionRequest>(method, &members),
        // Types that are not compiled in judge nothing.
        _ => Ok(()),
    }
}

fn reads<Req: JsonRpcMessage>(method: &str, members: &Map<String, Value>) -> Result<()> {
    Req::parse_message(method, members).map(drop)
}

/// Takes the requests for the server, in the place where it was added.
struct Route<C: Role>(Arc<Global<C>>);

impl<C: Role> Entry<C> for Route<C> {
    fn interest(&self) -> Interest {
        Interest::Requests(|method| method == METHOD, self.0.agent)
    }

    fn handle<'a>(
        &'a mut self,
        delivery: Delivery,
        _connection: ConnectionTo<C>,
    ) -> BoxFuture<'a, Result<Handled<Delivery>>> {
        let ours = |call: &InboundCall| {
            comes_from(call.peer, self.0.agent)
                && declared_server(call.params_text()).is_some_and(|id| *id == *self.0.declaration.server_id.0)
        };
        let handled = match (delivery, self.0.registration.get()) {
            (Delivery::Request(call, open), Some(server)) if ours(&call) => {
                server.call(call, open);
                Handled::Yes
            }
            (message, _) => Handled::No { message, retry: false },
        };
        Box::pin(std::future::ready(Ok(handled)))
    }
}

impl<Host, Handler, Runner, Close, Context> Builder<Host, Handler, Runner, Close, Context>
where
    Host: Role,
    Handler: HandleDispatchFrom<Host::Counterpart>,
    Runner: RunWithConnectionTo<Host::Counterpart>,
    Close: HandleConnectionClose<Host::Counterpart>,
    Context: ConnectionContext,
    Host::Counterpart: HasPeer<Agent> + HasPeer<Client>,
{
    fn attach<'h, Run>(
        self,
        server: McpServer<Host::Counterpart, Run>,
        names: Names,
    ) -> Builder<Host, Handlers<'h, Host::Counterpart>, impl RunWithConnectionTo<Host::Counterpart>, Close, Context>
    where
        Handler: 'h,
        Run: RunWithConnectionTo<Host::Counterpart>,
    {
        let counterpart = self.host().counterpart();
        let declaration = McpServerAcp::new(server.name, fresh_id());
        let (service, registration) = (server.service, OnceLock::new());
        let global = Global { declaration, service, agent: counterpart.remote_style(Agent), registration };
        let global = Arc::new(global);
        let client = counterpart.remote_style(Client);
        self.with_entries(|handlers| {
            handlers.push(Declare { server: global.clone(), client, names });
            handlers.push(Route(global));
        })
        .with_runner(server.run)
    }
}

macro_rules! with_mcp_server {
    ($context:ty, $names:expr, $($doc:literal)*) => {
        impl<Host, Handler, Runner, Close> Builder<Host, Handler, Runner, Close, $context>
        where
            Host: Role,
            Handler: HandleDispatchFrom<Host::Counterpart>,
            Runner: RunWithConnectionTo<Host::Counterpart>,
            Close: HandleConnectionClose<Host::Counterpart>,
        {
            $(#[doc = $doc])*
            ///
            /// Its declaration, with one id for the whole connection, is added to the text of each such
            /// request behind the servers that are there; nothing else in it changes, and handlers added
            /// later see the request with the declaration. What runs beside the server runs as with
            /// [`with_runner`](Self::with_runner). Params that are no session setup are answered `-32602`
            /// and not passed on.
            pub fn with_mcp_server<'h, Run>(
                self,
                server: McpServer<Host::Counterpart, Run>,
            ) -> Builder<
                Host,
                Handlers<'h, Host::Counterpart>,
                impl RunWithConnectionTo<Host::Counterpart>,
                Close,
                $context,
            >
            where
                Host::Counterpart: HasPeer<Agent> + HasPeer<Client>,
                Handler: 'h,
                Run: RunWithConnectionTo<Host::Counterpart>,
            {
                self.attach(server, $names)
            }
        }
    };
}

with_mcp_server!(
    RawConnectionContext,
    Names::Free,
    "Attaches an MCP server to every session that the client of this proxy sets up: with `session/new`,"
    "`session/load`, `session/resume` and `session/fork`."
);
#[cfg(feature = "unstable_protocol_v2")]
with_mcp_server!(
    V2ConnectionContext,
    Names::Unique,
    "Attaches an MCP server to every session that the client of this proxy sets up: with `session/new`,"
    "`session/resume` and `session/fork`. A request that declares a server of the same name is answered"
    "`-32602` and not passed on."
);
