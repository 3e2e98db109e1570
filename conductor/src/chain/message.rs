//! The typed messages between the actors of a chain.

use greenroom::{Error, Inbound, RawConnection};
use greenroom_protocol::Frame;

use crate::router::{Hop, Instantiated};

/// What the traffic actor works on, in arrival order.
pub(super) enum Traffic {
    /// Something came in from a hop, from this generation of it.
    Inbound(Hop, u32, Inbound),
    /// The upstream connection is up.
    Upstream(RawConnection),
    /// The components were started, or could not be.
    Opened(Result<Opened, Error>),
    /// A component was started anew, or could not be.
    Recreated(usize, Result<RawConnection, Error>),
    /// A connection is over, this generation of the hop.
    Ended(Hop, u32, Result<(), Error>),
    /// The time for answers that are still missing after the end of the client's input is over,
    /// unless more than `.0` frames were routed by now.
    DrainOver(u64),
    /// The time for the components to end is over.
    CloseOver,
}

/// Components that run.
pub(super) struct Opened {
    pub(super) instantiated: Instantiated,
    pub(super) connections: Vec<RawConnection>,
}

/// What the supervisor of a chain is told.
#[derive(Debug)]
pub(super) enum ChainMessage {
    /// The back-off of a child is over.
    Restart(usize),
    /// Start the components for this initialize.
    Open(Frame),
    /// Start component `.0` anew, as its generation `.1`.
    Recreate(usize, u32),
    /// The chain is over.
    Conclude(Result<(), Error>),
}

#[cfg(feature = "cluster")]
impl ractor::Message for ChainMessage {}
