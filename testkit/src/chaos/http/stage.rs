//! The server of a run, its clients, and what is between them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use greenroom::http::{AcpHttpServer, RunningServer, ServerOptions};
use greenroom::runtime::{Node, RestartPolicy};
use greenroom::{Client, ConnectionOptions, ConnectionTo, Error, Result};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::super::random::Random;
use super::desk::Desk;
use super::forwarder::Forwarder;
use super::pair::{Pair, Shape, agent};

/// The server of a run, and everybody who talks to it.
pub(super) struct Stage {
    pub(super) server: RunningServer,
    pub(super) desk: Desk,
    /// The trees of the server and of both ends of every connection.
    pub(super) tree: Arc<Node>,
    pub(super) survivors: Vec<Pair>,
    /// What the sockets of the survivors over SSE go through.
    pub(super) front: Forwarder,
    pub(super) victims: Vec<(Pair, Forwarder)>,
}

impl Stage {
    /// Starts the server, and opens all connections, one after the other.
    pub(super) async fn set(tree: &Arc<Node>, random: &mut Random) -> Result<Self> {
        let desk = Desk::default();
        let mut options = ConnectionOptions::default();
        options.restart = RestartPolicy { deaths: usize::MAX, window: Duration::from_micros(1) };
        options.session_restart = options.restart;
        options.incoming_credit = 1 << (10 + random.below(8));
        options.drain = Duration::from_millis(100);
        options.passivate_after = Duration::from_micros(*random.pick(&[100, 1_000, 250_000]));
        let (introduce, mut introduced) = mpsc::unbounded_channel();
        let factory = desk.clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(Error::into_internal_error)?;
        let server = AcpHttpServer::new(move || agent(&factory, options, &introduce))
            .with_options(server_options(options.restart, random))
            .start(listener)
            .await
            .map_err(Error::into_internal_error)?;
        tree.adopt(server.tree());
        let address = server.local_addr();
        let forward = async |random: &mut Random| {
            let widest = 1 << (4 + random.below(12));
            Forwarder::start(address, widest).await.map_err(Error::into_internal_error)
        };
        let front = forward(random).await?;
        let mut stage = Self { server, desk, tree: tree.clone(), survivors: Vec::new(), front, victims: Vec::new() };
        for (shape, address) in [(Shape::WebSocket, address), (Shape::ResumedStreams, stage.front.address())] {
            let pair = stage.open(format!("{shape:?}"), (shape, address), options, &mut introduced).await?;
            stage.survivors.push(pair);
        }
        for shape in [Shape::WebSocket, Shape::Streams] {
            let front = forward(random).await?;
            let way = (shape, front.address());
            let pair = stage.open(format!("doomed {shape:?}"), way, options, &mut introduced).await?;
            stage.victims.push((pair, front));
        }
        Ok(stage)
    }

    async fn open(
        &self,
        name: String,
        way: (Shape, SocketAddr),
        options: ConnectionOptions,
        introduced: &mut mpsc::UnboundedReceiver<ConnectionTo<Client>>,
    ) -> Result<Pair> {
        let pair = Pair::open(name, way, &self.server.tree(), &self.desk, options, introduced).await?;
        self.tree.adopt(pair.client.tree());
        self.tree.adopt(pair.agent.tree());
        Ok(pair)
    }

    /// The ports that the sockets of this run have on one side.
    pub(super) fn ports(&self) -> Vec<u16> {
        let fronts = self.victims.iter().map(|(_, front)| front).chain([&self.front]);
        fronts.map(|front| front.address().port()).chain([self.server.local_addr().port()]).collect()
    }
}

fn server_options(restart: RestartPolicy, random: &mut Random) -> ServerOptions {
    let keep_alive = Duration::from_millis(*random.pick(&[1, 50, 15_000]));
    let credit = *random.pick(&[1, 4_096, 1 << 20]);
    let incoming = *random.pick(&[1, 4_096, 1 << 20]);
    ServerOptions::default().with_restart(restart).with_limits(|limits| {
        // More than is ever under way.
        limits.replay = 4 << 20;
        limits.keep_alive = keep_alive;
        limits.stream_credit = credit;
        limits.incoming_credit = incoming;
        // More than a stream takes to go on that was cut.
        limits.idle = Duration::from_secs(2);
        limits.linger = Duration::from_millis(200);
        limits.shutdown = Duration::from_secs(1);
    })
}
