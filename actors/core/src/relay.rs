//! Joining two links: what comes out of one goes into the other.

use std::sync::Arc;

use greenroom_protocol::{Error, Outbound, Result};
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

enum CrossingState {
    Waiting(Vec<Inbound>),
    Up(RawConnection),
}

impl Crossing {
    fn new() -> Self {
        Self { state: Arc::new(Mutex::new(CrossingState::Waiting(Vec::new()))) }
    }

    fn outlet(&self) -> Outlet {
        let crossing = self.clone();
        Arc::new(move |item| match &mut *crossing.state.lock() {
            CrossingState::Waiting(items) => items.push(item),
            CrossingState::Up(connection) => pass(connection, item),
        })
    }

    fn up(&self, connection: &RawConnection) {
        let mut state = self.state.lock();
        if let CrossingState::Waiting(items) = &mut *state {
            for item in items.drain(..) {
                pass(connection, item);
            }
        }
        *state = CrossingState::Up(connection.clone());
    }
}

fn pass(connection: &RawConnection, item: Inbound) {
    match item {
        Inbound::Frame(frame, permit) => connection.send(Outbound::whole(&frame), permit),
        Inbound::Eof(_) => connection.close(),
    }
}

/// Relays frames in both directions, unchanged, until both sides have ended. Each direction ends
/// by itself, so that a half-closed side still gets its last answers.
///
/// # Errors
/// The first error of either side. Dropping the future ends both.
pub(crate) async fn join(left: Link, right: Link) -> Result<()> {
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
    // A side that broke may never tell the other one the end of its stream: the ends do.
    let left_over = async {
        let end = left_end.await;
        right.close();
        end
    };
    let right_over = async {
        let end = right_end.await;
        left.close();
        end
    };
    let (left, right) = tokio::join!(left_over, right_over);
    live.none().await;
    let gone = |_| Error::internal_error().data("a side of the relay disappeared");
    left.map_err(gone)?.and(right.map_err(gone)?)
}
