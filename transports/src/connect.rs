//! Transports as components: what a builder can connect to.
//!
//! Each only says how it becomes a link; the connection's own actors do the rest.

use futures_sink::Sink;
use greenroom_actors::link::Link;
use greenroom_actors::{Channel, ConnectTo, ConnectionDriver, Role};
use greenroom_protocol::Result;

use crate::{ByteStreams, Lines};

/// Implements [`ConnectTo`] for a type that turns itself into a link.
macro_rules! component {
    ($(#[$attribute:meta])* [$($generics:tt)*] $role:ident, $type:ty, [$($bounds:tt)*]) => {
        $(#[$attribute])*
        impl<$($generics)*> ConnectTo<$role> for $type
        where
            $($bounds)*
        {
            async fn connect_to(self, client: impl ConnectTo<<$role as Role>::Counterpart>) -> Result<()> {
                ConnectTo::<$role>::connect_to(<$type>::into_link(self), client).await
            }

            fn into_channel_and_future(self) -> (Channel, Option<ConnectionDriver>) {
                ConnectTo::<$role>::into_channel_and_future(<$type>::into_link(self))
            }

            fn into_link(self) -> Link {
                <$type>::into_link(self)
            }
        }
    };
}

component!(
    [OB, IB, R] R, ByteStreams<OB, IB>,
    [R: Role, OB: futures_io::AsyncWrite + Send + 'static, IB: futures_io::AsyncRead + Send + 'static]
);

component!(
    [O, I, R] R, Lines<O, I>,
    [
        R: Role,
        O: Sink<String, Error = std::io::Error> + Send + 'static,
        I: futures_core::Stream<Item = std::io::Result<String>> + Send + 'static
    ]
);

component!(
    #[cfg(feature = "stdio")]
    [R] R, crate::Stdio, [R: Role]
);

component!(
    #[cfg(feature = "process")]
    [R] R, crate::AcpAgent, [R: AcpAgentCounterpartRole]
);

component!(
    #[cfg(feature = "socket")]
    [R] R, crate::Socket, [R: Role]
);

/// The roles that a child process can be connected by: a client, when the process is an agent, or
/// a conductor, when it is a proxy. Implement it for a role of your own to start programs that play
/// its counterpart.
pub trait AcpAgentCounterpartRole: Role {}

impl AcpAgentCounterpartRole for greenroom_actors::Client {}
impl AcpAgentCounterpartRole for greenroom_actors::Conductor {}
