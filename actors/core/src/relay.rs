//! Joining two links: what comes out of one goes into the other.

use std::sync::Arc;

use greenroom_protocol::{Error, Origin, Outbound, Result};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::connection::{Outlet, RawConnection};
use crate::link::Link;
use crate::options::ConnectionOptions;
use crate::port::Inbound;
use crate::runtime::{LiveCount, Node};

/// Kills what it guards when it is dropped.
struct KillOnDrop(Vec<RawConnection>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        for connection in &self.0 {
            connection.kill();
        }
    }
}

/// The way from one side to the other, which may not be up yet.
#[derive(Clone)]
struct Crossing {
    state: Arc<Mutex<CrossingState>>,
}

struct CrossingState {
    target: Target,
    /// Whether the end of the input came this way.
    ended: bool,
    /// Whether the target is to end with the input, instead of going on in the other direction.
    finishing: bool,
    broken: Option<Error>,
}

enum Target {
    Waiting(Vec<Inbound>),
    Up(RawConnection),
}

impl Crossing {
    fn new() -> Self {
        let state = CrossingState { target: Target::Waiting(Vec::new()), ended: false, finishing: false, broken: None };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn outlet(&self) -> Outlet {
        let crossing = self.clone();
        Arc::new(move |item| crossing.state.lock().pass(item))
    }

    fn up(&self, connection: &RawConnection) {
        let mut state = self.state.lock();
        let waiting = std::mem::replace(&mut state.target, Target::Up(connection.clone()));
        if let Target::Waiting(items) = waiting {
            items.into_iter().for_each(|item| state.pass(item));
        }
    }

    /// The target ends when the input has ended, whatever it may still have to say.
    fn finish(&self) {
        let mut state = self.state.lock();
        state.finishing = true;
        state.end();
    }

    fn broken(&self) -> Option<Error> {
        self.state.lock().broken.clone()
    }
}

impl CrossingState {
    fn pass(&mut self, item: Inbound) {
        match (item, &mut self.target) {
            (item, Target::Waiting(items)) => items.push(item),
            (Inbound::Frame(frame, permit), Target::Up(connection)) => {
                connection.send(Outbound::whole(&frame), permit);
            }
            (Inbound::Eof(end), Target::Up(_)) => {
                self.ended = true;
                // As everywhere: a peer that vanished has ended its input.
                self.broken = end.error.filter(|error| error.origin() != Origin::PeerGone);
                self.end();
            }
        }
    }

    fn end(&self) {
        let Target::Up(connection) = &self.target else { return };
        match self.ended {
            true if self.finishing || self.broken.is_some() => connection.close(),
            true => connection.half_close(),
            false => {}
        }
    }
}

/// Relays frames in both directions, unchanged, until both sides have ended.
///
/// Each direction ends by itself, so that a half-closed side still gets its last answers. A side
/// whose driver is done ends both: what it sent is still handed over, and the other side's input is
/// not waited for. A driver that is not done is waited for.
///
/// # Errors
/// The first error of either side. Dropping the future ends both.
pub(crate) async fn join(left: Link, right: Link) -> Result<()> {
    join_until(left, right, std::future::pending()).await
}

/// As [`join`]. When `finish` resolves, what `right` has sent by then is still written to `left`; then
/// `left` is closed, and its input is waited for no longer.
pub(crate) async fn join_until(left: Link, right: Link, finish: impl Future<Output = ()>) -> Result<()> {
    let node = Node::root("relay", "relay");
    let live = LiveCount::new();
    let options = ConnectionOptions::default();
    let (to_left, to_right) = (Crossing::new(), Crossing::new());
    let (left_done, left_end) = oneshot::channel();
    let (right_done, right_end) = oneshot::channel();
    let start = async |link, outlet, done: oneshot::Sender<Result<()>>, name| {
        let on_end = Box::new(move |result| drop(done.send(result)));
        let node = node.child(name, "connection");
        RawConnection::start(link, outlet, on_end, node, live.clone(), &options, None).await
    };
    let left = start(left, to_right.outlet(), left_done, "left").await?;
    let mut guard = KillOnDrop(vec![left.clone()]);
    let right = start(right, to_left.outlet(), right_done, "right").await?;
    guard.0.push(right.clone());
    to_left.up(&left);
    to_right.up(&right);
    let both = async { tokio::join!(ended(left_end, &left, &right), ended(right_end, &right, &left)) };
    let mut both = std::pin::pin!(both);
    let (left_result, right_result) = tokio::select! {
        results = &mut both => results,
        () = finish => {
            to_left.finish();
            right.stop_input();
            both.await
        }
    };
    live.none().await;
    left_result.and(right_result)?;
    [to_right.broken(), to_left.broken()].into_iter().flatten().next().map_or(Ok(()), Err)
}

/// Waits for the end of one side and lets the other side end.
async fn ended(end: oneshot::Receiver<Result<()>>, side: &RawConnection, other: &RawConnection) -> Result<()> {
    let result = end.await.unwrap_or_else(|_| Err(Error::internal_error().data("a side of the relay disappeared")));
    if result.is_ok() && !side.is_driven() {
        // Both its directions have ended. Whoever drives the other side may still be at work.
        other.half_close();
    } else {
        other.close();
    }
    result
}
