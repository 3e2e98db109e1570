//! Everything that can stand at one end of a connection.

use std::fmt;

pub use greenroom_protocol::ConnectionDriver;
use greenroom_protocol::{BoxFuture, Channel, Result};
use tokio::sync::oneshot;

use crate::link::Link;
use crate::role::Role;

/// Something that a `R` can be connected to: a transport, or a component in this process.
///
/// `impl ConnectTo<Client>` is an agent, however it is reached. Implement
/// [`connect_to`](Self::connect_to); the rest has defaults. Transports of this crate override a
/// hidden method, so that a connection can put its own actors around them.
pub trait ConnectTo<R: Role>: Send + 'static {
    /// Connects to `client` and drives the connection until it ends.
    ///
    /// Two passive ends are relayed: each direction ends by itself, so that a side that closed its
    /// output still gets its last answers (spec §6.2, 57).
    ///
    /// Cancel-safety: dropping the future ends the connection at once.
    ///
    /// # Errors
    /// What ended the connection, unless both sides were done. I/O errors come out here, never as
    /// an item of a channel (spec §6.2, 64).
    fn connect_to(self, client: impl ConnectTo<R::Counterpart>) -> impl Future<Output = Result<()>> + Send;

    /// A channel to this component, and the future that drives it. `None` means that there is
    /// nothing to drive, not that it has ended (spec §6.2, 58).
    ///
    /// Frames go through parsed values here. To connect two builders, pass one to the other instead.
    fn into_channel_and_future(self) -> (Channel, Option<ConnectionDriver>)
    where
        Self: Sized,
    {
        let (ours, theirs) = Channel::duplex();
        (ours, Some(ConnectionDriver::new(self.connect_to(theirs))))
    }

    /// The far side of a connection to this component.
    #[doc(hidden)]
    fn into_link(self) -> Link
    where
        Self: Sized,
    {
        let (channel, driver) = self.into_channel_and_future();
        let link = Link::channel(channel);
        match driver {
            Some(driver) => link.with_driver(driver),
            None => link,
        }
    }
}

impl<R: Role> ConnectTo<R> for Channel {
    async fn connect_to(self, client: impl ConnectTo<R::Counterpart>) -> Result<()> {
        crate::relay::join(Link::channel(self), client.into_link()).await
    }

    fn into_channel_and_future(self) -> (Channel, Option<ConnectionDriver>) {
        (self, None)
    }
}

impl<R: Role> ConnectTo<R> for Link {
    async fn connect_to(self, client: impl ConnectTo<R::Counterpart>) -> Result<()> {
        crate::relay::join(self, client.into_link()).await
    }

    /// The driver can be asked to finish: what is in the channel by then is written and flushed, and
    /// the end of the input is not waited for.
    fn into_channel_and_future(self) -> (Channel, Option<ConnectionDriver>) {
        match self.into_channel() {
            Ok(normalized) => normalized,
            Err(link) => {
                let (ours, theirs) = Channel::duplex();
                let (finish, finished) = oneshot::channel();
                let finished = async {
                    // Nobody is left to ask: then it ends by itself.
                    if finished.await.is_err() {
                        std::future::pending::<()>().await;
                    }
                };
                let work = crate::relay::join_until(link, Link::channel(theirs), finished);
                (
                    ours,
                    Some(ConnectionDriver::with_finish(work, move || {
                        let _ = finish.send(());
                    })),
                )
            }
        }
    }

    fn into_link(self) -> Link {
        self
    }
}

/// Any component for an `R`, behind one type. Nothing else changes: how the component is reached,
/// and what it costs, stays as it is.
pub struct DynConnectTo<R: Role> {
    inner: Box<dyn Erased<R>>,
}

trait Erased<R: Role>: Send {
    fn type_name(&self) -> &'static str;
    fn connect_to(self: Box<Self>, client: DynConnectTo<R::Counterpart>) -> BoxFuture<'static, Result<()>>;
    fn into_channel_and_future(self: Box<Self>) -> (Channel, Option<ConnectionDriver>);
    fn into_link(self: Box<Self>) -> Link;
}

impl<R: Role, C: ConnectTo<R>> Erased<R> for C {
    fn type_name(&self) -> &'static str {
        std::any::type_name::<C>()
    }

    fn connect_to(self: Box<Self>, client: DynConnectTo<R::Counterpart>) -> BoxFuture<'static, Result<()>> {
        Box::pin(ConnectTo::connect_to(*self, client))
    }

    fn into_channel_and_future(self: Box<Self>) -> (Channel, Option<ConnectionDriver>) {
        ConnectTo::into_channel_and_future(*self)
    }

    fn into_link(self: Box<Self>) -> Link {
        ConnectTo::into_link(*self)
    }
}

impl<R: Role> DynConnectTo<R> {
    /// Hides the type of a component.
    pub fn new<C: ConnectTo<R>>(component: C) -> Self {
        Self { inner: Box::new(component) }
    }

    /// The hidden type's name, for diagnostics. Not stable between compiler versions.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.inner.type_name()
    }
}

impl<R: Role> ConnectTo<R> for DynConnectTo<R> {
    async fn connect_to(self, client: impl ConnectTo<R::Counterpart>) -> Result<()> {
        self.inner.connect_to(DynConnectTo::new(client)).await
    }

    fn into_channel_and_future(self) -> (Channel, Option<ConnectionDriver>) {
        self.inner.into_channel_and_future()
    }

    fn into_link(self) -> Link {
        self.inner.into_link()
    }
}

impl<R: Role> fmt::Debug for DynConnectTo<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DynConnectTo").field(&self.type_name()).finish()
    }
}
