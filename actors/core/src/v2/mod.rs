//! Endpoints of protocol version 2: the handle that their callbacks get, and what it can do that
//! the protocol-neutral one cannot.

mod connection;
mod outcome;

use crate::builder::{Builder, Guarded};
use crate::close::{HandleConnectionClose, NullClose};
use crate::connection_to::RawConnectionContext;
use crate::handlers::{HandleDispatchFrom, NullHandler};
use crate::role::Role;
use crate::role::acp::{Agent, Client, Proxy};
use crate::run::{NullRun, RunWithConnectionTo};

pub use connection::{V2ConnectionContext, V2ConnectionTo};
pub use outcome::{InitializationVersionMismatch, InitializeOutcome, SelectedInitializeResponse};

/// A builder whose callbacks get a [`V2ConnectionTo`].
pub type V2Builder<Host, Handler = NullHandler, Runner = NullRun, Close = NullClose> =
    Builder<Host, Handler, Runner, Close, V2ConnectionContext>;

macro_rules! version_two {
    ($($role:ident, $guard:ident, $doc:literal;)*) => {
        $(impl $role {
            #[doc = $doc]
            ///
            /// The connection speaks protocol version 2 and nothing else; other messages than those of
            /// the handshake are refused before it is done (spec §5.7).
            #[must_use]
            pub fn v2(self) -> V2Builder<Self> {
                Builder::new(self).in_context().guarded(Guarded::$guard)
            }
        })*
    };
}

version_two! {
    Client, V2Client, "A builder for a client of protocol version 2.";
    Agent, V2Agent, "A builder for an agent of protocol version 2.";
    Proxy, V2Proxy, "A builder for a proxy of protocol version 2.";
}

macro_rules! raw_guard {
    ($role:ident, $guard:ident) => {
        impl<Handler, Runner, Close> Builder<$role, Handler, Runner, Close, RawConnectionContext>
        where
            Handler: HandleDispatchFrom<<$role as Role>::Counterpart>,
            Runner: RunWithConnectionTo<<$role as Role>::Counterpart>,
            Close: HandleConnectionClose<<$role as Role>::Counterpart>,
        {
            /// Guards the handshake of protocol version 2, with callbacks that get the
            /// protocol-neutral handle.
            #[must_use]
            pub fn with_v2_protocol_guard(self) -> Self {
                self.guarded(Guarded::$guard)
            }
        }
    };
}

raw_guard!(Client, V2Client);
raw_guard!(Agent, V2Agent);
