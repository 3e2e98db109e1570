//! One side of a relay: a link whose frames can be read before it is known where they go.

use std::sync::Arc;

use greenroom_protocol::{Error, Outbound, Result};
use tokio::sync::oneshot;

use super::crossing::Crossing;
use crate::connection::RawConnection;
use crate::link::Link;
use crate::options::ConnectionOptions;
use crate::port::{EndOfInput, Inbound};
use crate::runtime::{LiveCount, Node, Permit};

/// A link with its actors. Dropping it ends them at once.
pub(crate) struct Side {
    pub(super) connection: Guarded,
    /// What comes out of the link.
    pub(super) crossing: Crossing,
    pub(super) ending: Ending,
    pub(super) live: LiveCount,
}

/// Kills its connection when it is dropped.
pub(super) struct Guarded(RawConnection);

impl std::ops::Deref for Guarded {
    type Target = RawConnection;

    fn deref(&self) -> &RawConnection {
        &self.0
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// How a side ended, once it has.
pub(super) struct Ending {
    told: oneshot::Receiver<Result<()>>,
    result: Option<Result<()>>,
}

impl Ending {
    /// Waits for the end. Cancel-safe, and may be asked again.
    pub(super) async fn wait(&mut self) -> Result<()> {
        match &self.result {
            Some(result) => result.clone(),
            None => {
                let gone = || Err(Error::internal_error().data("a side of the relay disappeared"));
                let result = (&mut self.told).await.unwrap_or_else(|_| gone());
                self.result.insert(result).clone()
            }
        }
    }
}

impl Side {
    /// Opens the link and starts its actors; `name` is their place below `node`.
    ///
    /// # Errors
    /// When the link does not open or the actors do not start.
    pub(crate) async fn start(link: Link, node: &Arc<Node>, name: &str, options: &ConnectionOptions) -> Result<Self> {
        let (crossing, live) = (Crossing::new(), LiveCount::new());
        let (tell, told) = oneshot::channel();
        let on_end = Box::new(move |result| drop(tell.send(result)));
        let node = node.child(name, "connection");
        let connection =
            RawConnection::start(link, crossing.outlet(), on_end, node, live.clone(), options, None).await?;
        Ok(Self { connection: Guarded(connection), crossing, ending: Ending { told, result: None }, live })
    }

    /// The next frame out of the link, or the end of the input behind the last; a side that died has
    /// ended as well. Cancel-safe. Only before the side is joined.
    pub(crate) async fn next(&mut self) -> Inbound {
        tokio::select! {
            biased;
            item = self.crossing.next() => item,
            result = self.ending.wait() => {
                let end = EndOfInput { error: result.err(), exit: None };
                self.crossing.try_next().unwrap_or(Inbound::Eof(end))
            }
        }
    }

    /// Puts back what [`next`](Self::next) gave: it is the next again.
    pub(crate) fn unread(&self, item: Inbound) {
        self.crossing.unread(item);
    }

    /// Sends into the link, behind everything sent before; `permit` is held until it is written.
    pub(crate) fn send(&self, message: Outbound, permit: Option<Permit>) {
        self.connection.send(message, permit);
    }

    /// Closes what goes into the link, behind everything that was sent, and waits until whoever
    /// stands there is done and nothing of this side is left.
    ///
    /// # Errors
    /// How the side ended.
    pub(crate) async fn finish(mut self) -> Result<()> {
        self.connection.half_close();
        self.ended().await
    }

    /// Ends the side behind everything that was sent, and waits until nothing of it is left. A driver
    /// that can be asked to finish is asked.
    ///
    /// # Errors
    /// How the side ended.
    pub(crate) async fn close(mut self) -> Result<()> {
        self.connection.close();
        self.ended().await
    }

    /// Ends the side at once, and waits until nothing of it is left.
    pub(crate) async fn discard(mut self) {
        self.connection.kill();
        // It ends because it was told to.
        let _ = self.ended().await;
    }

    async fn ended(&mut self) -> Result<()> {
        let result = self.ending.wait().await;
        self.live.none().await;
        result
    }
}
