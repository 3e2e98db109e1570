//! An agent that does exactly what the client tells it to, frame by frame.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use greenroom_actors::{
    Agent, Channel, Client, ConnectTo, Error, Responder, Result, TransportFrame, UntypedMessage, on_receive_request,
};
use greenroom_transports::{AcpHttpServer, RunningServer, ServerOptions};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Counts agents that are alive.
#[derive(Clone)]
pub(crate) struct Agents {
    alive: Arc<watch::Sender<usize>>,
    made: Arc<AtomicUsize>,
}

impl Agents {
    pub(crate) fn new() -> Self {
        Self { alive: Arc::new(watch::Sender::new(0)), made: Arc::default() }
    }

    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::Acquire)
    }

    /// Waits until so many are alive.
    pub(crate) async fn alive(&self, count: usize) {
        self.alive.subscribe().wait_for(|alive| *alive == count).await.expect("the sender lives");
    }

    fn enter(&self) -> Alive {
        self.made.fetch_add(1, Ordering::AcqRel);
        self.alive.send_modify(|alive| *alive += 1);
        Alive(self.alive.clone())
    }
}

struct Alive(Arc<watch::Sender<usize>>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.send_modify(|alive| *alive -= 1);
    }
}

/// Answers `initialize` and `session/*` plainly, everything else with what it got, and obeys:
///
/// - `emit {frames}`: sends these frames as they are, then answers;
/// - `flood {sessionId, count, bytes}`: sends so many updates, then answers;
/// - `silent`: never answers; `quit`: ends; a notification is sent back as `seen`;
/// - `initialize` with params `{first: [frames]}` sends these first; with `{refuse: true}` it fails;
///   with `{quit: true}` it ends; with `{silent: true}` it does not answer.
pub(crate) struct Puppet(pub(crate) Agents);

impl ConnectTo<Client> for Puppet {
    async fn connect_to(self, client: impl ConnectTo<Agent>) -> Result<()> {
        let _alive = self.0.enter();
        let (channel, driver) = client.into_channel_and_future();
        let obey = obey(channel);
        match driver {
            None => obey.await,
            Some(driver) => {
                tokio::select! {
                    result = driver => result,
                    result = obey => result,
                }
            }
        }
    }
}

async fn obey(channel: Channel) -> Result<()> {
    let Channel { mut rx, tx } = channel;
    let mut sessions = 0;
    let send = |text: String| drop(tx.unbounded_send(TransportFrame::parse_json(&text)));
    while let Some(frame) = rx.next().await {
        let text = frame.to_json()?;
        let Ok(value) = serde_json::from_str::<Value>(&text) else {
            send(json!({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}).to_string());
            continue;
        };
        let Value::Array(entries) = &value else {
            match one(&value, &mut sessions, &send) {
                Ok(Some(answer)) => send(answer.to_string()),
                Ok(None) => {}
                Err(Quit) => return Ok(()),
            }
            continue;
        };
        let answers: std::result::Result<Vec<_>, Quit> =
            entries.iter().filter_map(|entry| one(entry, &mut sessions, &send).transpose()).collect();
        match answers {
            Ok(answers) if answers.is_empty() => {}
            Ok(answers) => send(Value::Array(answers).to_string()),
            Err(Quit) => return Ok(()),
        }
    }
    Ok(())
}

struct Quit;

fn one(call: &Value, sessions: &mut usize, send: &impl Fn(String)) -> std::result::Result<Option<Value>, Quit> {
    let Some(method) = call.get("method").and_then(Value::as_str) else {
        if call.get("result").is_some() || call.get("error").is_some() {
            send(json!({"jsonrpc":"2.0","method":"seen","params":{"response":call}}).to_string());
            return Ok(None);
        }
        return Ok(Some(json!({"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid"}})));
    };
    let params = call.get("params").cloned().unwrap_or(Value::Null);
    let Some(id) = call.get("id") else {
        send(json!({"jsonrpc":"2.0","method":"seen","params":{"method":method,"params":params}}).to_string());
        return Ok(None);
    };
    let failed = json!({"jsonrpc":"2.0","id":id,"error":{"code":-32000,"message":"refused"}});
    let emit = |name: &str| {
        for frame in params[name].as_array().into_iter().flatten() {
            send(frame.to_string());
        }
    };
    let result = match method {
        "initialize" => {
            emit("first");
            if params["refuse"] == true {
                return Ok(Some(failed));
            }
            if params["quit"] == true {
                return Err(Quit);
            }
            if params["silent"] == true {
                return Ok(None);
            }
            json!({"protocolVersion":1})
        }
        "session/new" | "session/fork" => {
            *sessions += 1;
            json!({"sessionId": format!("s{sessions}")})
        }
        "session/load" if params["fail"] == true => return Ok(Some(failed)),
        "emit" => {
            emit("frames");
            json!({})
        }
        "flood" => {
            let filler = "x".repeat(params["bytes"].as_u64().unwrap_or(0) as usize);
            for n in 0..params["count"].as_u64().unwrap_or(0) {
                let update = json!({"sessionId":params["sessionId"],"n":n,"filler":filler});
                send(json!({"jsonrpc":"2.0","method":"session/update","params":update}).to_string());
            }
            json!({})
        }
        "silent" => return Ok(None),
        "quit" => return Err(Quit),
        _ => json!({"method":method,"params":params}),
    };
    Ok(Some(json!({"jsonrpc":"2.0","id":id,"result":result})))
}

/// An agent made with the builder: it answers malformed input as a real one does.
pub(crate) fn real() -> impl ConnectTo<Client> {
    Agent.builder().on_receive_request(
        async |request: UntypedMessage, responder: Responder<Value>, _cx| match request.method.as_str() {
            "initialize" => responder.respond(json!({"protocolVersion":1})),
            "fail" => Err(Error::invalid_params()),
            _ => responder.respond(json!({"echo":request.params})),
        },
        on_receive_request!(),
    )
}

/// A server of puppets with these options.
pub(crate) async fn serve(options: ServerOptions) -> (RunningServer, Agents) {
    let agents = Agents::new();
    let factory = agents.clone();
    let server = AcpHttpServer::new(move || Puppet(factory.clone())).with_options(options);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    (server.start(listener).await.expect("a server"), agents)
}

/// A server of puppets.
pub(crate) async fn puppets() -> (RunningServer, Agents) {
    serve(ServerOptions::default()).await
}

/// A server of agents made with the builder.
pub(crate) async fn real_agents(options: ServerOptions) -> RunningServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    AcpHttpServer::new(real).with_options(options).start(listener).await.expect("a server")
}
