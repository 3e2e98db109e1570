//! Who talks to whom.

pub mod acp;
pub mod mcp;
mod untyped;

use std::fmt::Debug;
use std::hash::Hash;

use greenroom_protocol::Error;
pub use greenroom_protocol::{RemoteStyle, RoleId};
pub use untyped::UntypedRole;

use crate::builder::Builder;
use crate::connection_to::ConnectionTo;
use crate::dispatch::{Dispatch, Handled};

/// A side of a connection. A value of the type stands for the role itself, as in
/// `Client.builder()`.
pub trait Role: Debug + Clone + Send + Sync + 'static + Eq + Ord + Hash {
    /// The role at the other end.
    type Counterpart: Role<Counterpart = Self>;

    /// A builder for an endpoint that plays this role.
    fn builder(self) -> Builder<Self>
    where
        Self: Sized,
    {
        Builder::new(self)
    }

    /// The role at the other end.
    fn counterpart(&self) -> Self::Counterpart;

    /// The identity of the role, for comparing roles of different types.
    fn role_id(&self) -> RoleId;

    /// What happens to a message from this role that no handler took.
    ///
    /// Returning [`Handled::No`] lets the connection answer a request with `-32601`, ignore a
    /// notification and give a response to whoever waits for it; with `retry` it keeps a request or
    /// notification for a handler that is added later. Runs inside the dispatch step, after all
    /// handlers: it must not wait for a response of `connection`. The roles of this crate are handled
    /// without calling it, with the same effect.
    ///
    /// # Errors
    /// As for [`HandleDispatchFrom::handle_dispatch_from`](crate::HandleDispatchFrom::handle_dispatch_from).
    fn default_handle_dispatch_from(
        &self,
        message: Dispatch,
        connection: ConnectionTo<Self>,
    ) -> impl Future<Output = Result<Handled<Dispatch>, Error>> + Send;

    /// How the connection treats this role, beside the default handler.
    #[doc(hidden)]
    fn nature(&self) -> Nature {
        Nature::Custom
    }
}

/// How a connection treats its peer's role.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// Nothing happens by default.
    Plain,
    /// An agent: what belongs to a session that nobody handles yet waits for its handler.
    Agent,
    /// A conductor: two logical peers, and what no handler takes passes on to the other one.
    Conductor,
    /// Ask [`Role::default_handle_dispatch_from`].
    Custom,
}

/// A role that can reach a logical peer, directly or through a conductor. `Conductor: HasPeer<Agent>`
/// reads: who is connected to a conductor can talk to an agent.
pub trait HasPeer<Peer: Role>: Role {
    /// How messages from and to that peer travel.
    fn remote_style(&self, peer: Peer) -> RemoteStyle;
}

/// Implements a role for which nothing happens by default.
macro_rules! plain_role {
    ($(#[$doc:meta])* $role:ident, $counterpart:ty $(, $guard:ident)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $role;

        impl crate::role::Role for $role {
            type Counterpart = $counterpart;

            fn counterpart(&self) -> Self::Counterpart {
                <$counterpart>::default()
            }

            fn role_id(&self) -> crate::role::RoleId {
                crate::role::RoleId::from_singleton(self)
            }

            async fn default_handle_dispatch_from(
                &self,
                message: crate::dispatch::Dispatch,
                _connection: crate::connection_to::ConnectionTo<Self>,
            ) -> Result<crate::dispatch::Handled<crate::dispatch::Dispatch>, greenroom_protocol::Error> {
                Ok(crate::dispatch::Handled::No { message, retry: false })
            }

            fn nature(&self) -> crate::role::Nature {
                crate::role::Nature::Plain
            }
        }

        crate::role::own_peer!($role $(, $guard)?);
    };
}
pub(crate) use plain_role;

/// What every role of a two-sided connection has.
macro_rules! own_peer {
    ($role:ident $(, $guard:ident)?) => {
        impl $role {
            /// A builder for an endpoint that plays this role.
            #[must_use]
            pub fn builder(self) -> crate::builder::Builder<Self> {
                crate::builder::Builder::new(self)$(.guarded(crate::builder::Guarded::$guard))?
            }
        }

        impl crate::role::HasPeer<$role> for $role {
            fn remote_style(&self, _peer: $role) -> crate::role::RemoteStyle {
                crate::role::RemoteStyle::Counterpart
            }
        }
    };
}
pub(crate) use own_peer;
