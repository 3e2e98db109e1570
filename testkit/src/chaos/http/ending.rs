//! The ends: of single connections in the middle of a run, and of everything after it.

use std::time::Duration;

use greenroom::http::RunningServer;
use greenroom::{ConnectionTo, HasPeer, Result, Role, UntypedMessage};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::super::ending::unexplained;
use super::super::report::Report;
use super::desk::STUCK;
use super::forwarder::Forwarder;
use super::only;
use super::pair::Pair;
use super::stage::Stage;

/// Requests of each side of a connection that wait when the end comes.
const WAITING: usize = 10;

/// What waits must have failed by then: a server that shuts down drains for a while.
pub(super) const SOON: Duration = Duration::from_secs(4);

/// How a connection is ended in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
    /// All of its sockets are cut.
    Cut,
    /// The supervisor of the connection in the server is killed.
    Served,
    /// The supervisor of the agent is killed.
    Agent,
    /// The supervisor of the client is killed.
    Client,
}

impl Death {
    const ALL: [Self; 4] = [Self::Cut, Self::Served, Self::Agent, Self::Client];

    /// Connections that follow each other die in different ways.
    pub(super) fn of(turn: u64) -> Self {
        Self::ALL[usize::try_from(turn % 4).unwrap_or(0)]
    }
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The server drains.
    Shutdown,
    /// The handle of the server is dropped.
    Drop,
    /// The supervisor of the server is killed.
    Kill,
    /// The clients finish, and say so.
    Finish,
}

impl Ending {
    const ALL: [Self; 4] = [Self::Shutdown, Self::Drop, Self::Kill, Self::Finish];

    /// Each way to die meets each way to end, over sixteen seeds.
    pub(super) fn of(seed: u64) -> Self {
        let turn = seed.wrapping_sub(1);
        Self::ALL[usize::try_from(turn.wrapping_add(turn / 4) % 4).unwrap_or(0)]
    }
}

/// Ends a connection after a while, and says which end does not notice. With or without a way for the
/// client's goodbye: without one the server finds out by itself.
pub(super) async fn die(
    pair: Pair,
    front: Forwarder,
    (death, goodbye): (Death, bool),
    after: Duration,
) -> Option<String> {
    sleep(after).await;
    match death {
        Death::Cut => drop(front.cut_all()),
        Death::Served => drop(pair.served.kill()),
        Death::Agent => drop(pair.agent.tree().kill()),
        Death::Client => drop(pair.client.tree().kill()),
    }
    let front = Some(front).filter(|_| goodbye);
    let Pair { name, driving, client, agent, .. } = pair;
    let mut fault = None;
    if timeout(SOON, driving).await.is_err() {
        fault =
            Some(format!("{name}: the client does not notice its death ({death:?}):\n{}", client.tree().snapshot()));
    } else if timeout(SOON, agent.incoming_closed()).await.is_err() {
        fault = Some(format!("{name}: the agent does not notice its death ({death:?}):\n{}", agent.tree().snapshot()));
    }
    drop(front);
    fault
}

impl Stage {
    /// Ends everything while requests wait. Returns what is wrong.
    pub(super) async fn end(self, ending: Ending, report: &mut Report) -> Vec<String> {
        report.ended(format!("{ending:?} (server)"));
        let Self { server, desk, survivors, front, .. } = self;
        let mut waiting = JoinSet::new();
        for pair in &survivors {
            wait(&pair.client, &mut waiting);
            wait(&pair.agent, &mut waiting);
        }
        let mut faults = Vec::new();
        if timeout(SOON, desk.stuck(2 * WAITING * survivors.len())).await.is_err() {
            faults.push("the last requests do not arrive".to_owned());
        }
        let mut clients = Vec::new();
        let mut server = Some(server);
        match ending {
            Ending::Shutdown => {
                let server = server.take().map(RunningServer::shutdown);
                let done = async {
                    if let Some(server) = server {
                        server.await
                    }
                };
                if timeout(SOON, done).await.is_err() {
                    faults.push("the server does not shut down".to_owned());
                }
            }
            Ending::Drop => drop(server.take()),
            Ending::Kill => drop(server.as_ref().map(|server| server.tree().kill())),
            Ending::Finish => {}
        }
        for pair in survivors {
            let name = pair.name.clone();
            clients.push((name, if ending == Ending::Finish { pair.finish() } else { pair.driving }));
        }
        let failed = async {
            let mut faults = Vec::new();
            while let Some(outcome) = waiting.join_next().await {
                match outcome {
                    Ok((side, outcome)) => faults.extend(unexplained(side, &outcome)),
                    Err(broken) => faults.push(format!("an awaiter broke: {broken}")),
                }
            }
            faults
        };
        match timeout(SOON, failed).await {
            Ok(unexplained) => faults.extend(unexplained),
            Err(_) => faults.push("requests still wait after the end".to_owned()),
        }
        for (name, driving) in clients {
            if timeout(SOON, driving).await.is_err() {
                faults.push(format!("{name} does not end"));
            }
        }
        desk.release();
        if let Some(server) = server
            && ending == Ending::Finish
            && timeout(SOON, only(&server, 0)).await.is_err()
        {
            faults.push(format!("connections are left:\n{}", server.snapshot()));
        }
        drop(front);
        faults
    }
}

/// Requests that wait for answers that never come.
fn wait<C: Role + HasPeer<C>>(cx: &ConnectionTo<C>, waiting: &mut JoinSet<(&'static str, Result<Value>)>) {
    for _ in 0..WAITING {
        let Ok(message) = UntypedMessage::new(STUCK, Value::Null) else { continue };
        let request = cx.send_request(message).block_task();
        waiting.spawn(async move { (std::any::type_name::<C>(), request.await) });
    }
}
