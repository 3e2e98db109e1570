//! The way from one side of a relay to the other, which may not be up yet.

use std::collections::VecDeque;
use std::sync::Arc;

use greenroom_protocol::{Error, Origin, Outbound};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::connection::{Outlet, RawConnection};
use crate::port::Inbound;

/// Clones are the same way. Until it is [up](Self::up), what enters it waits, and can be looked at.
#[derive(Clone)]
pub(super) struct Crossing {
    state: Arc<Mutex<State>>,
    /// Told about each item that begins to wait.
    entered: Arc<Notify>,
}

struct State {
    target: Target,
    /// Whether the end of the input came this way.
    ended: bool,
    /// Whether the target is to end with the input, instead of going on in the other direction.
    finishing: bool,
    broken: Option<Error>,
}

enum Target {
    Waiting(VecDeque<Inbound>),
    Up(RawConnection),
}

impl Crossing {
    pub(super) fn new() -> Self {
        let state = State { target: Target::Waiting(VecDeque::new()), ended: false, finishing: false, broken: None };
        Self { state: Arc::new(Mutex::new(state)), entered: Arc::default() }
    }

    pub(super) fn outlet(&self) -> Outlet {
        let crossing = self.clone();
        Arc::new(move |item| {
            crossing.state.lock().pass(item);
            crossing.entered.notify_one();
        })
    }

    /// What waits passes on now, and what comes later as it comes.
    pub(super) fn up(&self, connection: &RawConnection) {
        let mut state = self.state.lock();
        let waiting = std::mem::replace(&mut state.target, Target::Up(connection.clone()));
        if let Target::Waiting(items) = waiting {
            items.into_iter().for_each(|item| state.pass(item));
        }
    }

    /// The next item that waits, if there is one.
    pub(super) fn try_next(&self) -> Option<Inbound> {
        match &mut self.state.lock().target {
            Target::Waiting(items) => items.pop_front(),
            Target::Up(_) => None,
        }
    }

    /// The next item, as long as the way is not up. Cancel-safe; for one caller at a time.
    pub(super) async fn next(&self) -> Inbound {
        loop {
            if let Some(item) = self.try_next() {
                return item;
            }
            self.entered.notified().await;
        }
    }

    /// Puts an item back before those that wait.
    pub(super) fn unread(&self, item: Inbound) {
        if let Target::Waiting(items) = &mut self.state.lock().target {
            items.push_front(item);
        }
    }

    /// The target ends when the input has ended, whatever it may still have to say.
    pub(super) fn finish(&self) {
        let mut state = self.state.lock();
        state.finishing = true;
        state.end();
    }

    pub(super) fn broken(&self) -> Option<Error> {
        self.state.lock().broken.clone()
    }
}

impl State {
    fn pass(&mut self, item: Inbound) {
        match (item, &mut self.target) {
            (item, Target::Waiting(items)) => items.push_back(item),
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
