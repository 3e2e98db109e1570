//! Two trees of one process, connected by value: each writes straight into the other's mailbox.

use greenroom_protocol::{Error, Frame};

use crate::link::Exit;
use crate::runtime::{Mailbox, Permit};

/// What comes in from the far side, in wire order. The end of the input is the last item.
#[derive(Debug)]
pub enum Inbound {
    /// A frame, with the credit that its bytes hold until they are worked off.
    Frame(Frame, Option<Permit>),
    /// The end of the input, behind everything that came before it.
    Eof(EndOfInput),
}

/// How the input ended.
#[derive(Clone, Debug, Default)]
pub struct EndOfInput {
    /// Set when the transport broke; `None` for a clean end.
    pub error: Option<Error>,
    /// How the process behind the transport ended, when that is known.
    pub exit: Option<Exit>,
}

/// One end of an in-process connection.
#[derive(Debug)]
pub(crate) struct Port {
    /// What the other tree sends to us.
    pub(crate) incoming: Mailbox<Inbound>,
    /// What we send to the other tree.
    pub(crate) outgoing: Mailbox<Inbound>,
}

impl Port {
    /// Two connected ends.
    pub(crate) fn pair() -> (Self, Self) {
        let (left, right) = (Mailbox::new(), Mailbox::new());
        (Self { incoming: left.clone(), outgoing: right.clone() }, Self { incoming: right, outgoing: left })
    }
}
