//! The local side of a connection, message by message.

use futures_util::StreamExt as _;
use greenroom_actors::{Channel, Client, ConnectTo, Error};
use greenroom_protocol::Frame;
use greenroom_transports::HttpClient;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::server::{Events, PATIENCE, QUIET, Server};

/// What a connection of the client is connected to.
pub(crate) struct Local {
    channel: Option<Channel>,
    driving: JoinHandle<Result<(), Error>>,
}

impl Local {
    pub(crate) fn start(client: HttpClient) -> Self {
        let (channel, driver) = ConnectTo::<Client>::into_channel_and_future(client);
        Self { channel: Some(channel), driving: tokio::spawn(driver.unwrap()) }
    }

    /// Connects to the server and opens the connection's stream.
    pub(crate) async fn connected(server: &mut Server) -> (Self, Events) {
        let client = HttpClient::builder(server.url()).configure_http(|http| http.no_proxy()).build().unwrap();
        Self::connect(client, server).await
    }

    pub(crate) async fn connect(client: HttpClient, server: &mut Server) -> (Self, Events) {
        let mut local = Self::start(client);
        local.send(initialize(0));
        server.expect("POST").await.initialized().await;
        assert_eq!(local.recv().await["id"], 0);
        let events = server.expect("GET").await.events().await;
        (local, events)
    }

    pub(crate) fn send(&self, message: Value) {
        self.send_text(&message.to_string());
    }

    pub(crate) fn send_text(&self, text: &str) {
        let frame = Frame::parse(text.to_owned().into()).to_transport_frame();
        // After the end it goes nowhere, as for every other sender.
        let _ = self.channel.as_ref().unwrap().tx.unbounded_send(frame);
    }

    /// The next message for the local side.
    pub(crate) async fn recv(&mut self) -> Value {
        let next = self.channel.as_mut().unwrap().rx.next();
        let frame = timeout(PATIENCE, next).await.expect("no message came").expect("the connection is over");
        serde_json::from_str(&frame.to_json().unwrap()).unwrap()
    }

    /// Asserts that no message comes.
    pub(crate) async fn hears_nothing(&mut self) {
        if let Ok(Some(frame)) = timeout(QUIET, self.channel.as_mut().unwrap().rx.next()).await {
            panic!("unexpected: {}", frame.to_json().unwrap());
        }
    }

    /// Ends the local output.
    pub(crate) fn end(&mut self) {
        self.channel.as_mut().unwrap().tx.close_channel();
    }

    /// How the connection ended.
    pub(crate) async fn outcome(self) -> Result<(), Error> {
        timeout(PATIENCE, self.driving).await.expect("the connection goes on").unwrap()
    }

    /// The reason of the failure, for people.
    pub(crate) async fn reason(self) -> String {
        reason(&self.outcome().await.unwrap_err())
    }

    /// Drops the connection, at whatever it is.
    pub(crate) async fn abandon(self) {
        self.driving.abort();
        let _ = self.driving.await;
    }
}

/// The words of a failure.
pub(crate) fn reason(error: &Error) -> String {
    match &error.data {
        Some(Value::String(text)) => text.clone(),
        Some(data) => data["reason"].as_str().unwrap_or_default().to_owned(),
        None => String::new(),
    }
}

pub(crate) fn initialize(id: i64) -> Value {
    call(id, "initialize", json!({ "protocolVersion": 1 }))
}

pub(crate) fn call(id: i64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub(crate) fn note(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

pub(crate) fn result(id: i64, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

pub(crate) fn in_session(session: &str) -> Value {
    json!({ "sessionId": session })
}

/// A client that uses no proxy, whatever the environment says.
pub(crate) fn direct(url: &str) -> HttpClient {
    HttpClient::builder(url).configure_http(|http| http.no_proxy()).build().unwrap()
}
