//! `greenroom prompt`: one prompt, one answer.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use greenroom::schema::ProtocolVersion;
use greenroom::schema::v1::{
    ContentBlock, InitializeRequest, NewSessionRequest, PermissionOption, PermissionOptionKind, PromptRequest,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome,
    SessionNotification, SessionUpdate, StopReason, TextContent,
};
use greenroom::{
    Agent, Client, ConnectionTo, DynConnectTo, Error, Responder, Result, on_receive_notification, on_receive_request,
};

use super::global::Global;
use super::{programs, report};
use crate::embedded::{arrow_proxy, echo_agent};
use crate::trace_viewer::TraceViewer;
use crate::{CommandLineComponents, ConductorImpl, InstantiateProxiesAndAgent, ProxiesAndAgent};

/// Arguments of `greenroom prompt`.
#[derive(Args, Debug)]
pub(super) struct PromptArguments {
    /// What to say.
    text: String,
    /// The agent's command line. Without it, a chain inside this program answers.
    #[arg(long, value_name = "CMD", conflicts_with = "chain")]
    agent: Option<String>,
    /// A chain of command lines from left to right; the last one is the agent.
    #[arg(long, value_name = "CMD", num_args = 1..)]
    chain: Vec<String>,
    /// Seconds that the agent may take to answer `initialize` and `session/new`.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
}

/// How long an ending connection may take to say why: a component gets time to end in order.
const END_WAIT: Duration = Duration::from_secs(3);

/// Where a conversation was when it failed.
struct Failed {
    stage: &'static str,
    error: Error,
}

pub(super) async fn run(arguments: PromptArguments, global: &Global) -> ExitCode {
    let Spoken { agent, viewer } = match agent(&arguments, global) {
        Ok(spoken) => spoken,
        Err(error) => {
            report::failure("arguments", &error);
            return ExitCode::from(2);
        }
    };
    // Dropped, and with it ended, when the conversation is over.
    let mut served = tokio::task::JoinSet::new();
    if let Some(viewer) = viewer {
        served.spawn(viewer.run());
    }
    let limit = Duration::from_secs(arguments.timeout);
    let mut failed = None;
    let mut stopped = None;
    let result = Client
        .builder()
        .name("prompt")
        .on_receive_notification(
            async |update: SessionNotification, _cx| {
                show(&update.update);
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async |request: RequestPermissionRequest, responder, cx: ConnectionTo<Agent>| {
                // Asking takes time: not inside the dispatch loop.
                cx.spawn(permit(request, responder))
            },
            on_receive_request!(),
        )
        .connect_with(agent, async |cx| match converse(&cx, arguments.text, limit).await {
            Ok(reason) => {
                stopped = Some(reason);
                Ok(())
            }
            Err(Failed { stage, error }) => {
                // How a process ended says more than "the transport closed".
                let cause = explain(&cx, error).await;
                failed = Some(stage);
                Err(cause)
            }
        })
        .await;
    match (stopped, result) {
        // How the chain ends after the whole answer is its own affair.
        (Some(StopReason::EndTurn), _) => ExitCode::SUCCESS,
        (Some(reason), _) => {
            report::failure("prompt", &Error::new(-32603, format!("the agent stopped early: {reason:?}")))
        }
        (None, Err(error)) => report::failure(failed.unwrap_or("start"), &error),
        (None, Ok(())) => report::failure("start", &Error::internal_error().data("the chain ended without an answer")),
    }
}

/// Who answers, and what shows the conversation.
struct Spoken {
    agent: DynConnectTo<Client>,
    viewer: Option<TraceViewer>,
}

/// The agent that was asked for. To be recorded it has to stand in a chain.
fn agent(arguments: &PromptArguments, global: &Global) -> Result<Spoken> {
    if let Some(command) = &arguments.agent {
        let mut agent = programs(std::slice::from_ref(command))?;
        return match agent.pop() {
            Some(agent) if !global.records() => Ok(Spoken { agent: DynConnectTo::new(agent), viewer: None }),
            Some(agent) => conductor("chain", CommandLineComponents(vec![agent]), global),
            None => Err(Error::invalid_params()),
        };
    }
    if !arguments.chain.is_empty() {
        return conductor("chain", CommandLineComponents(programs(&arguments.chain)?), global);
    }
    conductor("embedded", ProxiesAndAgent::new(echo_agent()).proxy(arrow_proxy()), global)
}

fn conductor(name: &str, components: impl InstantiateProxiesAndAgent + 'static, global: &Global) -> Result<Spoken> {
    let conductor = ConductorImpl::new_agent(global.name.as_deref().unwrap_or(name), components);
    let recorded = global.record(conductor).map_err(Error::into_internal_error)?;
    Ok(Spoken { agent: DynConnectTo::new(recorded.conductor), viewer: recorded.viewer })
}

/// The whole conversation.
async fn converse(cx: &ConnectionTo<Agent>, text: String, limit: Duration) -> Result<StopReason, Failed> {
    let at = |stage| move |error| Failed { stage, error };
    let initialize = cx.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task();
    within(limit, initialize).await.map_err(at("initialize"))?;
    let folder = std::env::current_dir().map_err(|error| at("session/new")(Error::into_internal_error(error)))?;
    let session = cx.send_request(NewSessionRequest::new(folder)).block_task();
    let session = within(limit, session).await.map_err(at("session/new"))?;
    let prompt = vec![ContentBlock::Text(TextContent::new(text))];
    let answer = cx.send_request(PromptRequest::new(session.session_id, prompt)).block_task();
    let answer = answer.await.map_err(at("session/prompt"))?;
    // An output that failed before fails here again: an answer that nobody could read is no success.
    let mut out = io::stdout().lock();
    let written = writeln!(out).and_then(|()| out.flush());
    written.map_err(|error| at("output")(Error::into_internal_error(error)))?;
    Ok(answer.stop_reason)
}

async fn within<T>(limit: Duration, answer: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(limit, answer)
        .await
        .unwrap_or_else(|_| Err(Error::internal_error().data(format!("no answer within {} s", limit.as_secs()))))
}

/// If the connection is ending, the reason of that end instead of its symptom: how the process
/// ended, and its last words.
async fn explain(cx: &ConnectionTo<Agent>, error: Error) -> Error {
    // A chain reports a component that died like this, through a connection that still lives.
    let closed = error.data.as_ref().and_then(|data| data.get("reason")).and_then(|reason| reason.as_str());
    let symptom =
        closed == Some(greenroom::INCOMING_TRANSPORT_CLOSED_REASON) || greenroom::is_connection_terminated(&error);
    if !symptom {
        return error;
    }
    match tokio::time::timeout(END_WAIT, cx.terminated()).await {
        Ok(termination) => termination.error().cloned().unwrap_or(error),
        Err(_) => error,
    }
}

/// Prints text as it comes; tool calls go to stderr.
fn show(update: &SessionUpdate) {
    match update {
        SessionUpdate::AgentMessageChunk(chunk) => {
            if let ContentBlock::Text(text) = &chunk.content {
                let mut out = io::stdout().lock();
                let _ = out.write_all(text.text.as_bytes());
                let _ = out.flush();
            }
        }
        SessionUpdate::ToolCall(call) => {
            let _ = writeln!(io::stderr(), "[tool] {}", call.title);
        }
        _ => {}
    }
}

/// Asks a person at a terminal; refuses otherwise.
async fn permit(request: RequestPermissionRequest, responder: Responder<RequestPermissionResponse>) -> Result<()> {
    let choice = if io::stdin().is_terminal() && io::stderr().is_terminal() {
        ask(request).await
    } else {
        let _ = writeln!(io::stderr(), "[permission] refused: there is no terminal to ask at");
        request.options.into_iter().find(|option| option.kind == PermissionOptionKind::RejectOnce)
    };
    let outcome = match choice {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id)),
        None => RequestPermissionOutcome::Cancelled,
    };
    responder.respond(RequestPermissionResponse::new(outcome))
}

async fn ask(request: RequestPermissionRequest) -> Option<PermissionOption> {
    // Reading a terminal blocks, so it happens on a thread of its own.
    let (answered, answer) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let title = request.tool_call.fields.title.clone().unwrap_or_else(|| "a tool call".to_owned());
        let mut err = io::stderr().lock();
        let _ = writeln!(err, "[permission] {title}");
        for (number, option) in request.options.iter().enumerate() {
            let _ = writeln!(err, "  {}) {}", number + 1, option.name);
        }
        let _ = write!(err, "choose a number, anything else cancels: ");
        let _ = err.flush();
        drop(err);
        let mut line = String::new();
        let _ = io::stdin().read_line(&mut line);
        let choice = line.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let _ = answered.send(choice.and_then(|index| request.options.into_iter().nth(index)));
    });
    answer.await.ok().flatten()
}
