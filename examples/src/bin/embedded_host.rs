//! A connection below an actor of one's own: it ends with that actor, its tree can be looked at,
//! and any actor in it can be killed without anybody noticing.

use std::io::Write;

use greenroom::runtime::Snapshot;
use greenroom::schema::{InitializeRequest, InitializeResponse, ProtocolVersion};
use greenroom::{Agent, Channel, Client, Connection, ConnectionTo, Error, Responder, Result, on_receive_request};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::oneshot;

/// The host's own supervisor. What it does about the end of a connection is its own business.
struct Host;

/// Nobody talks to the host.
enum Nothing {}

#[cfg(feature = "cluster")]
impl ractor::Message for Nothing {}

struct Args {
    transport: Channel,
    started: oneshot::Sender<Connection<Client>>,
}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for Host {
    type Msg = Nothing;
    type State = Option<Args>;
    type Arguments = Args;

    async fn pre_start(&self, _me: ActorRef<Nothing>, args: Args) -> Result<Option<Args>, ActorProcessingErr> {
        Ok(Some(args))
    }

    async fn post_start(&self, me: ActorRef<Nothing>, args: &mut Option<Args>) -> Result<(), ActorProcessingErr> {
        let Some(Args { transport, started }) = args.take() else { return Ok(()) };
        let connection = Agent
            .builder()
            .name("hosted")
            .on_receive_request(
                async |_: InitializeRequest, responder: Responder<InitializeResponse>, _cx| {
                    responder.respond(InitializeResponse::new(ProtocolVersion::V1))
                },
                on_receive_request!(),
            )
            .spawn_linked(transport, me.get_cell())
            .await?;
        let _ = started.send(connection);
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<Nothing>,
        event: SupervisionEvent,
        _args: &mut Option<Args>,
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorTerminated(..) | SupervisionEvent::ActorFailed(..) = event {
            let _ = writeln!(std::io::stdout(), "the host was told about the end");
        }
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let (near, far) = Channel::duplex();
    let (started, connection) = oneshot::channel();
    let (host, host_task) =
        Actor::spawn(None, Host, Args { transport: far, started }).await.map_err(Error::into_internal_error)?;
    let connection = connection.await.map_err(Error::into_internal_error)?;

    Client
        .connect_with(near, async |agent: ConnectionTo<Agent>| {
            let ask = || agent.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task();
            ask().await?;
            for actor in connection.tree().children() {
                actor.kill();
            }
            // Asked after the attack, answered all the same.
            ask().await?;
            let mut out = std::io::stdout();
            show(&connection.snapshot(), 0, &mut out).map_err(Error::into_internal_error)
        })
        .await?;

    connection.closed().await?;
    host.stop(None);
    host_task.await.map_err(Error::into_internal_error)
}

fn show(actor: &Snapshot, depth: usize, out: &mut impl Write) -> std::io::Result<()> {
    let Snapshot { kind, status, restarts, .. } = actor;
    writeln!(out, "{:indent$}{kind}: {status:?}, restarts {restarts}", "", indent = depth * 2)?;
    actor.children.iter().try_for_each(|child| show(child, depth + 1, out))
}
