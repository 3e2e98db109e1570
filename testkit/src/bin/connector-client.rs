//! A client for every protocol version that this build has, behind a connector: starts the agent that
//! its arguments name, opens a session and says in which version.

use std::io::Write as _;
use std::process::ExitCode;

use greenroom::{AcpAgent, Agent, Client, ConnectTo, ConnectionTo, Error, Result, UntypedMessage};
use serde_json::{Value, json};
use tokio::sync::mpsc;

fn main() -> ExitCode {
    let agent = match AcpAgent::from_args(std::env::args().skip(1)) {
        Ok(agent) => agent,
        Err(error) => {
            eprintln!("usage: connector-client PROGRAM [ARGUMENT]…: {error}");
            return ExitCode::FAILURE;
        }
    };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        eprintln!("no runtime");
        return ExitCode::FAILURE;
    };
    match runtime.block_on(converse(agent)) {
        Ok(outcome) => match writeln!(std::io::stdout(), "{outcome}") {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Which version spoke, and the session that it opened.
type Outcome = mpsc::UnboundedSender<String>;

async fn converse(agent: AcpAgent) -> Result<String> {
    let (tell, mut told) = mpsc::unbounded_channel();
    let first = tell.clone();
    let connector = second(Client.protocol_connector().with_v1(move || one(first.clone())), tell);
    tokio::select! {
        outcome = told.recv() => outcome.ok_or_else(Error::internal_error),
        ended = connector.connect_to(move || agent.clone()) => {
            ended.and(Err(Error::internal_error().data("the agent ended before a session was open")))
        }
    }
}

fn one(tell: Outcome) -> impl ConnectTo<Agent> {
    Client.builder().with_spawned(async move |cx: ConnectionTo<Agent>| {
        let params = json!({ "protocolVersion": 1, "clientInfo": { "name": "connector-client", "version": "1" } });
        open(&tell, params, move |message| cx.send_request(message).block_task()).await
    })
}

#[cfg(feature = "unstable_protocol_v2")]
fn second(connector: greenroom::ClientProtocolConnector, tell: Outcome) -> greenroom::ClientProtocolConnector {
    connector.with_v2(move || {
        let tell = tell.clone();
        Client.v2().with_spawned(async move |cx: greenroom::V2ConnectionTo<Agent>| {
            let info = json!({ "name": "connector-client", "version": "1" });
            let params = json!({ "protocolVersion": 2, "info": info, "capabilities": {} });
            open(&tell, params, move |message| cx.send_request(message).block_task()).await
        })
    })
}

#[cfg(not(feature = "unstable_protocol_v2"))]
fn second(connector: greenroom::ClientProtocolConnector, _tell: Outcome) -> greenroom::ClientProtocolConnector {
    connector
}

async fn open<F>(tell: &Outcome, hello: Value, ask: impl Fn(UntypedMessage) -> F) -> Result<()>
where
    F: Future<Output = Result<Value>>,
{
    let answer = ask(UntypedMessage::new("initialize", hello)?).await?;
    let session = ask(UntypedMessage::new("session/new", json!({ "cwd": "/", "mcpServers": [] }))?).await?;
    let _ = tell.send(format!("version {}, session {}", answer["protocolVersion"], session["sessionId"]));
    Ok(())
}
