//! The outgoing protocol: calls and answers in, wire messages out.
//!
//! Owns: nothing but its inbox; ids are assigned when a request is published, so a repeated item
//! writes the same id. Supervised by: the connection. When it dies: restarted, nothing lost.
//! Ordering promise: wire order is publication order.

use std::sync::Arc;

use bytes::Bytes;
use greenroom_protocol::{Outbound, RawId, RemoteStyle, quoted};

use super::message::{MethodText, Outgoing, Wire};
use super::shared::Shared;
use crate::port::{EndOfInput, Inbound};
use crate::runtime::{Flow, Inbox, Mailbox, Permit, Stage};

/// Where wire messages go.
#[derive(Clone, Debug)]
pub(crate) enum WireSink {
    /// To the writer of a physical transport.
    Writer(Mailbox<Wire>),
    /// Straight into the other tree of this process.
    Port(Mailbox<Inbound>),
}

impl WireSink {
    pub(crate) fn message(&self, message: Outbound, permit: Option<Permit>) {
        // A closed mailbox belongs to a connection that is over: its callers were told.
        match self {
            Self::Writer(mailbox) => drop(mailbox.send(Wire::Message(message, permit))),
            Self::Port(mailbox) => drop(mailbox.send(Inbound::Frame(message.into_frame(), permit))),
        }
    }

    /// Ends the stream behind everything that was sent.
    pub(crate) fn seal(&self) {
        match self {
            Self::Writer(mailbox) => drop(mailbox.send(Wire::Seal)),
            Self::Port(mailbox) => drop(mailbox.send(Inbound::Eof(EndOfInput::default()))),
        }
    }
}

/// The stage of the outgoing protocol.
pub(crate) struct OutgoingProtocol {
    shared: Arc<Shared>,
    exit: WireSink,
}

impl OutgoingProtocol {
    pub(crate) fn new(shared: Arc<Shared>, exit: WireSink) -> Self {
        Self { shared, exit }
    }

    fn call(&self, id: Option<i64>, method: &MethodText, params: Bytes, to: RemoteStyle) -> Outbound {
        let id = id.map(RawId::Int);
        let spelled;
        let method: &[u8] = match method {
            MethodText::Json(text) => text,
            MethodText::Name(name) => {
                spelled = quoted(name);
                spelled.as_bytes()
            }
        };
        match to {
            RemoteStyle::Successor => Outbound::wrapped(self.shared.dialect(), id.as_ref(), method, params),
            _ => Outbound::call(id.as_ref(), method, params),
        }
    }
}

impl Stage for OutgoingProtocol {
    type Item = Outgoing;

    async fn run(&mut self, inbox: &mut Inbox<Outgoing>) -> Flow {
        while let Some(item) = inbox.begin() {
            match item {
                Outgoing::Call { id, method, params, to, permit } => {
                    let message = self.call(*id, method, params.clone(), *to);
                    let permit = permit.take();
                    self.exit.message(message, permit);
                }
                Outgoing::Reply(message, permit) => {
                    let (message, permit) = (std::mem::take(message), permit.take());
                    self.exit.message(message, permit);
                }
                Outgoing::Seal => {
                    self.exit.seal();
                    inbox.commit();
                    return Flow::Finished;
                }
            }
            inbox.commit();
        }
        Flow::Idle
    }

    fn quarantine(&mut self, item: Outgoing) {
        if let Outgoing::Call { id: Some(id), .. } = item {
            self.shared
                .fail_one(id, &greenroom_protocol::Error::internal_error().data("this request could not be written"));
        }
    }
}
