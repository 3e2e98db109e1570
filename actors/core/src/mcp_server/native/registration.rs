//! One server that is attached to a connection.
//!
//! The actor owns: admission and the logical ids in use. Supervised by: the connection's MCP servers.
//! When it dies: restarted up to three times in a minute, nothing lost; then only this server is
//! gone: what waits is answered `-33001`, and what runs is stopped, joined and answered so too.
//! Ordering promise: operations begin in the order of their requests.

use std::sync::{Arc, Weak};

use greenroom_protocol::mcp::{RESOURCE_LIMIT, Refusal, read};
use greenroom_protocol::schema::{McpServerAcpId, MessageMcpResponse};
use greenroom_protocol::{Error, RemoteStyle};

use super::active::{Active, Refused};
use super::admission::Admission;
use super::operation::{Execute, Operation, Reserved, Stop};
use crate::connection::{InboundCall, OpenCall, Shared};
use crate::runtime::{Flow, Inbox, Mailbox, Node, Seat, Stage};

/// What a registration's actor is told.
pub(crate) enum ServerItem {
    /// The agent calls.
    Call(InboundCall, OpenCall),
    /// An operation is over, cleanup included.
    Ended(Arc<str>),
    /// Nothing more is admitted.
    Close,
}

/// See the module documentation.
pub(crate) struct Registration {
    pub(super) id: McpServerAcpId,
    /// Where the agent is.
    pub(super) to: RemoteStyle,
    mailbox: Mailbox<ServerItem>,
    admission: Arc<Admission>,
    seat: Seat<Server>,
}

impl Registration {
    pub(super) fn new(
        connection: &Arc<Shared>,
        id: McpServerAcpId,
        to: RemoteStyle,
        execute: Execute,
        node: Arc<Node>,
    ) -> Arc<Self> {
        let mailbox = Mailbox::new();
        let admission = Arc::new(Admission::new());
        let stage = Server {
            connection: Arc::downgrade(connection),
            to,
            execute,
            mailbox: mailbox.clone(),
            admission: admission.clone(),
            active: Active::default(),
        };
        let counted = Arc::downgrade(&admission);
        node.count_in_flight(move || counted.upgrade().map_or(0, |admission| admission.running()));
        let seat = Seat::new(stage, mailbox.clone(), node, connection.live.clone());
        Arc::new(Self { id, to, mailbox, admission, seat })
    }

    pub(super) fn seat(&self) -> Seat<Server> {
        self.seat.clone()
    }

    pub(super) fn node(&self) -> &Arc<Node> {
        self.seat.node()
    }

    /// Hands a request for this server over.
    pub(super) fn call(&self, call: InboundCall, open: OpenCall) {
        if let Err(ServerItem::Call(_, open)) = self.mailbox.send(ServerItem::Call(call, open)) {
            refuse(open, self.admission.closing());
        }
    }

    /// Seals admission, and stops what runs. From here on every call is refused.
    pub(crate) fn close(&self, stop: Stop) {
        self.admission.close(stop);
        let _ = self.mailbox.send(ServerItem::Close);
    }

    /// Waits until no operation runs. Cancel-safe.
    pub(crate) async fn settled(&self) {
        self.admission.settled().await;
    }

    /// The actor cannot work any more. What it had taken from the mailbox already is for
    /// [`wind_up`](Self::wind_up).
    pub(super) fn fail(&self) {
        self.admission.close(Stop::Removed);
        for item in self.mailbox.close() {
            if let ServerItem::Call(_, open) = item {
                refuse(open, self.admission.closing());
            }
        }
    }

    /// Refuses what a dead actor had taken and not worked on, after it [failed](Self::fail).
    pub(super) async fn wind_up(&self) {
        self.seat.wind_up().await;
    }
}

/// Answers a call that is not admitted any more.
fn refuse(open: OpenCall, closing: Option<Stop>) {
    let _ = open.answer(Err(closing.unwrap_or(Stop::Removed).error()));
}

/// The stage of a registration's actor.
pub(super) struct Server {
    connection: Weak<Shared>,
    /// Where the agent is.
    to: RemoteStyle,
    execute: Execute,
    mailbox: Mailbox<ServerItem>,
    admission: Arc<Admission>,
    active: Active,
}

impl Server {
    fn call(&mut self, call: &InboundCall, open: OpenCall) {
        // The connection is gone, and with it everybody who could be answered.
        let Some(connection) = self.connection.upgrade() else { return };
        let call = match read(call.params_text()) {
            Ok(call) => call,
            Err(Refusal::Carrier(error)) => return drop(open.answer(Err(error))),
            Err(Refusal::Inner(error)) => {
                let text = serde_json::to_vec(&MessageMcpResponse::error(error));
                return drop(open.answer(text.map(Into::into).map_err(Error::into_internal_error)));
            }
        };
        if self.admission.closing().is_some() {
            self.active.seal();
        }
        let id = call.request_id.0.clone();
        match self.active.admit(&id) {
            Ok(()) => {}
            Err(Refused::Sealed) => return refuse(open, self.admission.closing()),
            Err(Refused::Duplicate) => {
                return drop(open.answer(Err(Error::invalid_params().data("this requestId is active already"))));
            }
            Err(Refused::Full) => {
                let error = Error::new(RESOURCE_LIMIT, "MCP resource limit").data("too many operations are active");
                return drop(open.answer(Err(error)));
            }
        }
        if open.state().cancelled.is_set() {
            self.active.end(&id);
            return drop(open.answer(Err(Stop::Cancelled.error())));
        }
        match Reserved::new(id.clone(), self.mailbox.clone(), self.admission.clone()) {
            Ok(reserved) => Operation::start(call, open, self.to, reserved, &self.execute, connection),
            // Closed in this moment.
            Err(stop) => {
                self.active.end(&id);
                refuse(open, Some(stop));
            }
        }
    }
}

impl Stage for Server {
    type Item = ServerItem;

    async fn run(&mut self, inbox: &mut Inbox<ServerItem>) -> Flow {
        while let Some(item) = inbox.take() {
            match item {
                ServerItem::Call(call, open) => self.call(&call, open),
                ServerItem::Ended(id) => self.active.end(&id),
                ServerItem::Close => self.active.seal(),
            }
        }
        // Nobody sends to a closed mailbox, not even an operation that ends.
        if !self.active.is_done() && !self.mailbox.is_closed() {
            return Flow::Idle;
        }
        for item in self.mailbox.close() {
            if let ServerItem::Call(_, open) = item {
                refuse(open, self.admission.closing());
            }
        }
        Flow::Finished
    }

    fn quarantine(&mut self, item: ServerItem) {
        drop(item);
    }
}
