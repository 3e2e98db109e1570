//! Runs the agent of one connection, and passes on what it says.
//!
//! `AgentStage` owns the future of the agent; when that ends, so does the actor. `RouterStage`
//! owns nothing but its inbox. Both are supervised by the connection. When the actor of the agent
//! dies, the agent goes on in the next one; when the router dies, nothing is lost.
//! Ordering promise: frames reach each stream in the order in which the agent said them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use greenroom_actors::runtime::{Flow, Inbox, Stage};
use greenroom_actors::{BoxFuture, Inbound};
use greenroom_protocol::{Error, Result};

use super::connection::Connection;

/// The stage that polls an agent.
pub(super) struct AgentStage {
    agent: Option<BoxFuture<'static, Result<()>>>,
}

impl AgentStage {
    pub(super) fn new(agent: BoxFuture<'static, Result<()>>) -> Self {
        Self { agent: Some(agent) }
    }
}

impl Stage for AgentStage {
    type Item = std::convert::Infallible;

    async fn run(&mut self, _inbox: &mut Inbox<Self::Item>) -> Flow {
        let Some(agent) = &mut self.agent else { return Flow::Finished };
        let result = AssertUnwindSafe(agent).catch_unwind().await;
        self.agent = None;
        match result {
            Ok(Ok(())) => Flow::Finished,
            Ok(Err(error)) => Flow::Failed(error),
            // Polling it again would only panic again.
            Err(_panic) => Flow::Failed(Error::internal_error().data("the agent panicked")),
        }
    }

    fn quarantine(&mut self, item: Self::Item) {
        match item {}
    }
}

/// The stage that sends what the agent says to the streams.
pub(super) struct RouterStage {
    connection: Arc<Connection>,
}

impl RouterStage {
    pub(super) fn new(connection: Arc<Connection>) -> Self {
        Self { connection }
    }
}

impl Stage for RouterStage {
    type Item = Inbound;

    async fn run(&mut self, inbox: &mut Inbox<Inbound>) -> Flow {
        while let Some(item) = inbox.begin() {
            match item {
                Inbound::Frame(frame, permit) => {
                    let permit = permit.take();
                    self.connection.deliver(frame, permit);
                    inbox.commit();
                }
                Inbound::Eof(_) => {
                    inbox.commit();
                    self.connection.agent_ended();
                    return Flow::Finished;
                }
            }
        }
        Flow::Idle
    }

    fn quarantine(&mut self, _item: Inbound) {
        self.connection.fail("a message of the agent could not be passed on");
    }
}
