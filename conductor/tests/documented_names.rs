//! Every documented name of the conductor and of the trace viewer, with the documented shape, under
//! the documented crate names.
//!
//! It compiles, or the build breaks. Add a name when it is built; take none away. Not here are the
//! inner works of another conductor that no program can call: `ConductorMessage`,
//! `SourceComponentIndex`, `InitializationOutcome`, `ConductorSuccessor`, and the methods of
//! `ConductorHostRole`; they all need a runner that only that conductor can make.

#![allow(dead_code, reason = "functions that only have to compile")]

extern crate greenroom_conductor as agent_client_protocol_conductor;

use std::path::{Path, PathBuf};

use agent_client_protocol_conductor::trace::{
    NotificationEvent, Protocol, RequestEvent, ResponseEvent, TraceEvent, TraceWriter, WriteEvent,
};
use agent_client_protocol_conductor::trace_viewer as agent_client_protocol_trace_viewer;
use agent_client_protocol_conductor::{
    AgentOnly, CommandLineComponents, ComponentIndex, ConductorArgs, ConductorCommand, ConductorHostRole,
    ConductorImpl, ConductorRunner, InstantiateProxies, InstantiateProxiesAndAgent, ProxiesAndAgent,
};
use agent_client_protocol_trace_viewer::{
    TraceHandle, TraceSource, TraceViewerConfig, VIEWER_HTML, serve_file, serve_memory,
};
use clap::Parser as _;
use futures_channel::mpsc::UnboundedSender;
use greenroom::role::HasPeer;
use greenroom::schema::v1::InitializeRequest;
use greenroom::{
    AcpAgent, Agent, BoxFuture, Client, Conductor, ConnectTo, DynConnectTo, Error, Proxy, Result, Role,
    RunWithConnectionTo,
};
use serde_json::{Value, json};

// --- running a chain ------------------------------------------------------------------------

fn conductors(
    agent: impl InstantiateProxiesAndAgent + 'static,
    proxies: impl InstantiateProxies + 'static,
    event: impl WriteEvent,
    writer: TraceWriter,
    path: &Path,
) -> std::io::Result<(ConductorImpl<Agent>, ConductorImpl<Proxy>)> {
    let agent = ConductorImpl::new_agent("name", agent).trace_to(event).trace_to_path(path)?;
    let proxy = ConductorImpl::new_proxy(String::from("name"), proxies).with_trace_writer(writer);
    Ok((agent, proxy))
}

fn by_role(agent: Box<dyn InstantiateProxiesAndAgent>, proxies: Box<dyn InstantiateProxies>) {
    let _: ConductorImpl<Agent> = ConductorImpl::new(Agent, "name", agent);
    let _: ConductorImpl<Proxy> = ConductorImpl::new(Proxy, "name", proxies);
}

async fn run_as_an_agent(conductor: ConductorImpl<Agent>, transport: impl ConnectTo<Agent>) -> Result<(), Error> {
    conductor.run(transport).await
}

async fn run_as_a_proxy(conductor: ConductorImpl<Proxy>, transport: impl ConnectTo<Proxy>) -> Result<(), Error> {
    conductor.run(transport).await
}

async fn run_as_any<Host: ConductorHostRole>(
    conductor: ConductorImpl<Host>,
    transport: impl ConnectTo<Host>,
) -> Result<(), Error> {
    conductor.run(transport).await
}

fn connects<R: Role>(_: impl ConnectTo<R>) {}

fn components(agent: ConductorImpl<Agent>, proxy: ConductorImpl<Proxy>) {
    connects::<Client>(agent);
    connects::<Conductor>(proxy);
}

fn host_roles<Host: ConductorHostRole>()
where
    Host::Counterpart: HasPeer<Client>,
    Host::Instantiator: Send,
{
}

fn runs<Host: ConductorHostRole>(runner: ConductorRunner<Host>) -> impl RunWithConnectionTo<Host::Counterpart> {
    runner
}

fn roles() {
    host_roles::<Agent>();
    host_roles::<Proxy>();
    let _: fn(ConductorRunner<Agent>) = |runner| drop(runs(runner));
    let _: fn(ConductorRunner<Proxy>) = |runner| drop(runs(runner));
}

// --- who starts the components --------------------------------------------------------------

type WithAgent = Result<(InitializeRequest, Vec<DynConnectTo<Conductor>>, DynConnectTo<Client>), Error>;
type Alone = Result<(InitializeRequest, Vec<DynConnectTo<Conductor>>), Error>;

fn starts_all(_: impl InstantiateProxiesAndAgent + 'static) {}

fn starts_proxies(_: impl InstantiateProxies + 'static) {}

fn instantiators(
    agent: impl ConnectTo<Client> + 'static,
    other: impl ConnectTo<Client> + 'static,
    proxy: impl ConnectTo<Conductor> + 'static,
    programs: Vec<AcpAgent>,
) {
    starts_all(AgentOnly(agent));
    let some: [DynConnectTo<Conductor>; 1] = [DynConnectTo::new(proxy)];
    starts_all(ProxiesAndAgent::new(other).proxies(some).proxy(programs[0].clone()));
    starts_all(CommandLineComponents(programs.clone()));
    starts_proxies(CommandLineComponents(programs.clone()));
    starts_proxies(programs);
    starts_proxies(Vec::<DynConnectTo<Conductor>>::new());
    starts_all(move |request: InitializeRequest| async move {
        let agent = AcpAgent::from_args(["agent"]).expect("a command line");
        WithAgent::Ok((request, Vec::new(), DynConnectTo::new(agent)))
    });
    starts_proxies(|request: InitializeRequest| async move { Alone::Ok((request, Vec::new())) });
}

/// An instantiator of an application, written out.
struct Chosen;

impl InstantiateProxiesAndAgent for Chosen {
    fn instantiate_proxies_and_agent(self: Box<Self>, request: InitializeRequest) -> BoxFuture<'static, WithAgent> {
        Box::new(CommandLineComponents(Vec::new())).instantiate_proxies_and_agent(request)
    }

    #[cfg(feature = "unstable_protocol_v2")]
    fn instantiate_v2_proxies_and_agent(
        self: Box<Self>,
        request: greenroom::schema::v2::InitializeRequest,
    ) -> BoxFuture<
        'static,
        Result<(greenroom::schema::v2::InitializeRequest, Vec<DynConnectTo<Conductor>>, DynConnectTo<Client>), Error>,
    > {
        Box::new(CommandLineComponents(Vec::new())).instantiate_v2_proxies_and_agent(request)
    }
}

impl InstantiateProxies for Chosen {
    fn instantiate_proxies(self: Box<Self>, request: InitializeRequest) -> BoxFuture<'static, Alone> {
        Box::new(Vec::<DynConnectTo<Conductor>>::new()).instantiate_proxies(request)
    }

    #[cfg(feature = "unstable_protocol_v2")]
    fn instantiate_v2_proxies(
        self: Box<Self>,
        request: greenroom::schema::v2::InitializeRequest,
    ) -> BoxFuture<'static, Result<(greenroom::schema::v2::InitializeRequest, Vec<DynConnectTo<Conductor>>), Error>>
    {
        Box::new(Vec::<DynConnectTo<Conductor>>::new()).instantiate_v2_proxies(request)
    }
}

// --- recordings -----------------------------------------------------------------------------

fn writers(path: &Path, sender: UnboundedSender<TraceEvent>) -> std::io::Result<[TraceWriter; 2]> {
    Ok([TraceWriter::from_path(path)?, TraceWriter::new(sender)])
}

fn sends(sender: &mut UnboundedSender<TraceEvent>, event: &TraceEvent) -> std::io::Result<()> {
    sender.write_event(event)
}

fn event(line: Value) -> TraceEvent {
    serde_json::from_value(line).expect("an event")
}

#[test]
fn events_have_the_documented_members() {
    let request = json!({
        "type": "request", "ts": 1.5, "protocol": "mcp", "from": "Client", "to": "Proxy(0)", "id": "a",
        "method": "tools/list", "session": "s", "params": {},
    });
    let TraceEvent::Request(request) = event(request) else { panic!("a request") };
    let RequestEvent { ts, protocol, from, to, id, method, session, params, .. } = request;
    let _: (f64, Protocol, String, String, Value, String, Option<String>, Value) =
        (ts, protocol, from, to, id, method, session, params);
    assert!(ts > 1.0 && protocol == Protocol::Mcp);

    let response = json!({
        "type": "response", "ts": 2.0, "from": "Agent", "to": "Client", "id": 1, "is_error": true,
        "error_domain": "acp", "payload": null,
    });
    let TraceEvent::Response(response) = event(response) else { panic!("a response") };
    let ResponseEvent { ts, from, to, id, is_error, error_domain, payload, .. } = response;
    let _: (f64, String, String, Value, bool, Option<Protocol>, Value) =
        (ts, from, to, id, is_error, error_domain, payload);
    assert_eq!((is_error, error_domain), (true, Some(Protocol::Acp)));

    let notification = json!({
        "type": "notification", "ts": 2.0, "protocol": "acp", "from": "Agent", "to": "Client", "method": "m",
        "params": [1],
    });
    let TraceEvent::Notification(notification) = event(notification) else { panic!("a notification") };
    let NotificationEvent { ts, protocol, from, to, method, session, params, .. } = notification;
    assert_eq!((protocol, &session), (Protocol::Acp, &None));
    let _: (f64, Protocol, String, String, String, Option<String>, Value) =
        (ts, protocol, from, to, method, session, params);
}

#[test]
fn places_know_their_neighbours_and_their_names() {
    use ComponentIndex::{Agent, Client, Proxy};
    assert_eq!([0, 1, 2].map(ComponentIndex::predecessor_of), [Client, Proxy(0), Proxy(1)]);
    assert_eq!([0, 1, 2].map(|at| ComponentIndex::successor_of(at, 3)), [Proxy(1), Proxy(2), Agent]);
    assert_eq!(ComponentIndex::successor_of(usize::MAX, 3), Agent);
    assert_eq!([Client, Proxy(7), Agent].map(|at| at.to_string()), ["Client", "Proxy(7)", "Agent"]);
}

// --- the viewer -----------------------------------------------------------------------------

async fn view(path: PathBuf, config: TraceViewerConfig) -> anyhow::Result<()> {
    let (handle, served) = serve_memory(TraceViewerConfig { open_browser: false, port: 0 })?;
    TraceHandle::push(&handle, Value::Null);
    let _: (usize, bool) = (handle.len(), handle.is_empty());
    let _: TraceSource = TraceSource::File(path.clone());
    let served: Result<(), anyhow::Error> = served.await;
    served?;
    serve_file(path, config).await
}

#[test]
fn the_page_is_there() {
    let page: &str = VIEWER_HTML;
    assert!(page.contains("</html>") && TraceViewerConfig::default().open_browser);
}

// --- the command line -----------------------------------------------------------------------

async fn program(arguments: ConductorArgs) -> anyhow::Result<()> {
    arguments.main().await
}

#[test]
fn the_command_line_has_the_documented_members() {
    let read = |arguments: &[&str]| ConductorArgs::try_parse_from([&["program"][..], arguments].concat());
    let arguments = read(&[
        "--debug",
        "--debug-dir",
        "d",
        "--log",
        "warn",
        "--trace",
        "t",
        "--serve",
        "agent",
        "--name",
        "n",
        "a b",
        "c",
    ]);
    let ConductorArgs { debug, debug_dir, log, trace, serve, command } = arguments.expect("arguments");
    assert!(debug && serve);
    assert_eq!((debug_dir, log, trace), (Some("d".into()), Some("warn".into()), Some(PathBuf::from("t"))));
    let ConductorCommand::Agent { name, components } = command else { panic!("an agent") };
    assert_eq!((name.as_str(), components), ("n", vec!["a b".to_owned(), "c".to_owned()]));

    let arguments = read(&["proxy", "p"]).expect("arguments");
    let ConductorCommand::Proxy { name, proxies } = arguments.command else { panic!("a proxy") };
    assert_eq!((name.as_str(), proxies), ("conductor", vec!["p".to_owned()]));
    assert!(read(&["agent"]).is_err() && read(&["proxy"]).is_ok());
}

#[tokio::test]
async fn arguments_that_are_wrong_are_an_error_and_no_exit() {
    let command = ConductorCommand::Agent { name: "n".to_owned(), components: vec!["'unclosed".to_owned()] };
    let arguments = ConductorArgs { debug: false, debug_dir: None, log: None, trace: None, serve: false, command };
    let error = program(arguments).await.expect_err("no command line");
    let text = format!("{error:#}");
    assert!(text.contains("arguments") && text.contains("component 1"), "{text}");
    assert_eq!(i32::from(error.downcast::<Error>().expect("ours").code), -32602);
}
