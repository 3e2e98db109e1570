//! A client of version 2, until it is known who has the connection.

use std::sync::Arc;

use greenroom_protocol::fallback::{Attempt, Heard};
use greenroom_protocol::{Error, Frame, FrameKind, Origin, Outbound, ReplyLimit, Result};
use tokio::time::Instant;

use super::MakeClient;
use crate::component::ConnectTo;
use crate::options::ConnectionOptions;
use crate::port::{EndOfInput, Inbound};
use crate::relay::{Side, join_sides};
use crate::role::acp::Client;
use crate::runtime::{Node, Permit};

/// Who has the connection.
enum Outcome {
    /// The client of version 2, whatever it makes of it.
    Stays,
    /// The same, and the agent has ended without an answer.
    Unanswered(EndOfInput),
    /// A client of version 1. This is the agent's answer, if it may be given to that client.
    FallsBack(Option<(Frame, Option<Permit>)>),
}

pub(super) async fn connect<C: ConnectTo<Client>>(
    mut v2: MakeClient,
    v1: Option<MakeClient>,
    mut transport: impl FnMut() -> C + Send + 'static,
    node: &Arc<Node>,
    options: &ConnectionOptions,
) -> Result<()> {
    let mut client = Side::start(v2().into_link(), node, "client", options).await?;
    let (first, permit) = match client.next().await {
        Inbound::Frame(first, permit) => (first, permit),
        // It had nothing to say.
        Inbound::Eof(_) => return client.finish().await,
    };
    let mut attempt = match Attempt::begin(&first, v1.is_some()) {
        Ok(attempt) => attempt,
        Err(error) => {
            client.discard().await;
            return Err(error);
        }
    };
    let mut agent = match Side::start(transport().into_link(), node, "agent", options).await {
        Ok(agent) => agent,
        Err(error) => {
            client.discard().await;
            return Err(error);
        }
    };
    agent.send(Outbound::whole(&first), permit);
    let (answer, mut v1) = match (wait(&mut attempt, &mut client, &mut agent).await, v1) {
        (Outcome::FallsBack(answer), Some(v1)) => (answer, v1),
        (Outcome::Stays | Outcome::FallsBack(_), _) => {
            return join_sides(client, agent, std::future::pending()).await;
        }
        (Outcome::Unanswered(end), _) => {
            return join_sides(client, agent, std::future::pending()).await.and(Err(unanswered(end)));
        }
    };
    client.discard().await;
    if let Some((answer, permit)) = answer {
        let mut client = Side::start(v1().into_link(), node, "client", options).await?;
        match client.next().await {
            Inbound::Frame(first, _) => {
                if let Some(answer) = attempt.same(&first, &answer) {
                    client.send(answer, permit);
                    return join_sides(client, agent, std::future::pending()).await;
                }
            }
            // It is done, or failed, without a word: how it ended is how all of this ended.
            Inbound::Eof(_) => {
                let ended = client.finish().await;
                part(agent).await;
                return ended;
            }
        }
        client.discard().await;
    }
    part(agent).await;
    v1().connect_to(transport()).await
}

/// Ends the first connection to the agent.
async fn part(agent: Side) {
    if let Err(error) = agent.close().await {
        tracing::debug!(code = i32::from(error.code), "the first connection to the agent did not end well");
    }
}

/// Waits for the agent's answer to the initialize.
async fn wait(attempt: &mut Attempt, client: &mut Side, agent: &mut Side) -> Outcome {
    let (mut refusals, began) = (ReplyLimit::default(), Instant::now());
    loop {
        tokio::select! {
            said = client.next() => match said {
                // A cancellation, for example.
                Inbound::Frame(frame, permit) => {
                    attempt.client_went_on();
                    agent.send(Outbound::whole(&frame), permit);
                }
                end @ Inbound::Eof(_) => {
                    client.unread(end);
                    return Outcome::Stays;
                }
            },
            heard = agent.next() => {
                let (frame, permit) = match heard {
                    Inbound::Frame(frame, permit) => (frame, permit),
                    Inbound::Eof(end) => {
                        agent.unread(Inbound::Eof(end.clone()));
                        return Outcome::Unanswered(end);
                    }
                };
                match attempt.hear(&frame) {
                    Heard::Deliver => {
                        agent.unread(Inbound::Frame(frame, permit));
                        return Outcome::Stays;
                    }
                    Heard::FallBack { reuse } => return Outcome::FallsBack(reuse.then_some((frame, permit))),
                    Heard::Refuse(answer) => {
                        if frame.kind() != FrameKind::Malformed || refusals.allow(began.elapsed()) {
                            agent.send(answer, permit);
                        }
                    }
                    Heard::Ignore => {}
                }
            }
        }
    }
}

fn unanswered(end: EndOfInput) -> Error {
    match (end.error, end.exit) {
        (Some(error), _) if error.origin() != Origin::PeerGone => error,
        (_, Some(exit)) => exit.to_error(),
        (_, None) => Error::internal_error()
            .with_origin(Origin::PeerGone)
            .data("the agent ended the connection before it answered initialize"),
    }
}
