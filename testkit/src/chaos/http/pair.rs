//! One connection of a run, with both of its ends.

use std::net::SocketAddr;
use std::sync::Arc;

use greenroom::http::{HttpClient, HttpClientOptions};
use greenroom::runtime::Node;
use greenroom::{
    Agent, Client, ConnectTo, ConnectionOptions, ConnectionTo, Error, HasPeer, Responder, Result, Role, UntypedMessage,
    on_receive_notification, on_receive_request,
};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::super::random::Random;
use super::desk::{Desk, Lane};

/// Sessions of each connection.
const SESSIONS: usize = 2;

/// Requests of one lane that may be under way at once.
const WINDOW: u32 = 16;

/// How often in a row a client that goes on asks for a stream that was cut.
const ATTEMPTS: u32 = 30;

/// How a client reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// By POST and SSE; the end of a stream is the end of the connection.
    Streams,
    /// The same, but a stream that is cut goes on.
    ResumedStreams,
    /// By one WebSocket.
    WebSocket,
}

/// Makes the agent of one connection, which introduces itself when it is asked to.
pub(super) fn agent(
    desk: &Desk,
    options: ConnectionOptions,
    introduce: &mpsc::UnboundedSender<ConnectionTo<Client>>,
) -> impl ConnectTo<Client> + use<> {
    let (desk, notes, introduce) = (desk.clone(), desk.clone(), introduce.clone());
    let mut sessions = 0;
    Agent
        .builder()
        .options(options)
        .on_receive_request(
            async move |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| match request
                .method
                .as_str()
            {
                "initialize" => responder.respond(json!({ "protocolVersion": 1 })),
                "_introduce" => {
                    let _ = introduce.send(cx);
                    responder.respond(json!({}))
                }
                "session/new" => {
                    sessions += 1;
                    responder.respond(json!({ "sessionId": format!("session-{sessions}") }))
                }
                _ => desk.serve(request, responder, cx).await,
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, _cx| {
                notes.note(&note);
                Ok(())
            },
            on_receive_notification!(),
        )
}

/// A connection that is up.
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) client: ConnectionTo<Agent>,
    pub(super) agent: ConnectionTo<Client>,
    /// The supervisor of the connection in the server.
    pub(super) served: Arc<Node>,
    finish: oneshot::Sender<()>,
    pub(super) driving: JoinHandle<Result<()>>,
    to_agent: Vec<Lane>,
    to_client: Vec<Lane>,
}

impl Pair {
    /// Opens a connection, its sessions and all of its streams.
    pub(super) async fn open(
        name: String,
        (shape, address): (Shape, SocketAddr),
        server: &Node,
        desk: &Desk,
        options: ConnectionOptions,
        introduced: &mut mpsc::UnboundedReceiver<ConnectionTo<Client>>,
    ) -> Result<Self> {
        let (tell, told) = oneshot::channel();
        let (finish, finished) = oneshot::channel();
        let http = reach(shape, address)?;
        let driving = tokio::spawn(drive(http, desk.clone(), options, tell, finished));
        let client = told.await.map_err(Error::into_internal_error)?;
        ask(&client, "initialize", json!({ "protocolVersion": 1 })).await?;
        ask(&client, "_introduce", json!({})).await?;
        let agent = introduced.recv().await.ok_or_else(Error::internal_error)?;
        // Connections are opened one after the other: the last one is ours.
        let served = server.children().into_iter().rfind(|node| node.kind() == "http-connection");
        let served = served.ok_or_else(Error::internal_error)?;
        let lane = |way: &str, session: Option<Arc<str>>| {
            let place = session.as_deref().unwrap_or("the connection");
            desk.lane(format!("{name}, {place}, {way}"), session)
        };
        let (mut to_agent, mut to_client) = (vec![lane("to the agent", None)], vec![lane("to the client", None)]);
        for _ in 0..SESSIONS {
            let opened = ask(&client, "session/new", json!({})).await?;
            let session: Arc<str> = opened["sessionId"].as_str().unwrap_or_default().into();
            to_agent.push(lane("to the agent", Some(session.clone())));
            to_client.push(lane("to the client", Some(session)));
        }
        let pair = Self { name, client, agent, served, finish, driving, to_agent, to_client };
        // An answer on each stream: from then on each can go on behind an event that has come.
        for lane in &pair.to_agent {
            let number = lane.ledger.sending(true);
            let outcome = pair.client.send_request(lane.message("_work", number)?).block_task().await;
            lane.ledger.settled(number, &outcome);
        }
        Ok(pair)
    }

    /// Starts to say this much on every lane, in both directions.
    pub(super) fn talk(&self, messages: usize, random: &mut Random) -> JoinSet<Result<()>> {
        let each = messages / (self.to_agent.len() + self.to_client.len());
        let mut talking = JoinSet::new();
        for lane in &self.to_agent {
            talking.spawn(speak(self.client.clone(), lane.clone(), each, random.number()));
        }
        for lane in &self.to_client {
            talking.spawn(speak(self.agent.clone(), lane.clone(), each, random.number()));
        }
        talking
    }

    /// All lanes.
    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.to_agent.iter().chain(&self.to_client)
    }

    /// Ends the client in order.
    pub(super) fn finish(self) -> JoinHandle<Result<()>> {
        let _ = self.finish.send(());
        self.driving
    }
}

fn reach(shape: Shape, address: SocketAddr) -> Result<HttpClient> {
    let scheme = match shape {
        Shape::Streams | Shape::ResumedStreams => "http",
        Shape::WebSocket => "ws",
    };
    let attempts = if shape == Shape::ResumedStreams { ATTEMPTS } else { 0 };
    let options = HttpClientOptions::default().with_resume_attempts(attempts);
    let client = HttpClient::builder(format!("{scheme}://{address}")).configure_http(|http| http.no_proxy());
    Ok(client.build().map_err(Error::into_internal_error)?.with_options(options))
}

async fn ask(client: &ConnectionTo<Agent>, method: &str, params: Value) -> Result<Value> {
    client.send_request(UntypedMessage::new(method, params)?).block_task().await
}

/// Runs the client's side.
async fn drive(
    http: HttpClient,
    desk: Desk,
    options: ConnectionOptions,
    tell: oneshot::Sender<ConnectionTo<Agent>>,
    finished: oneshot::Receiver<()>,
) -> Result<()> {
    let notes = desk.clone();
    Client
        .builder()
        .options(options)
        .on_receive_request(
            async move |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Agent>| {
                desk.serve(request, responder, cx).await
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, _cx| {
                notes.note(&note);
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_with(http, async move |cx: ConnectionTo<Agent>| {
            let _ = tell.send(cx);
            let _ = finished.await;
            Ok(())
        })
        .await
}

/// Sends so many messages of a lane in order, a third of them notifications, and waits for every
/// answer. On a connection that ends, each request fails instead.
async fn speak<C: Role + HasPeer<C>>(cx: ConnectionTo<C>, lane: Lane, count: usize, seed: u64) -> Result<()> {
    let mut random = Random::new(seed);
    let window = Arc::new(Semaphore::new(WINDOW as usize));
    for _ in 0..count {
        let is_request = !random.once_in(3);
        let number = lane.ledger.sending(is_request);
        if !is_request {
            let message = lane.message("_note", number)?;
            // Whether the connection is over is told by the requests.
            let _ = cx.send_notification(message);
            tokio::task::yield_now().await;
            continue;
        }
        let Ok(place) = window.clone().acquire_owned().await else { break };
        let request = cx.send_request(lane.message("_work", number)?).block_task();
        let ledger = lane.ledger.clone();
        tokio::spawn(async move {
            ledger.settled_or_ended(number, &request.await);
            drop(place);
        });
    }
    // Every place is back when every answer is there.
    let _ = window.acquire_many(WINDOW).await;
    Ok(())
}
