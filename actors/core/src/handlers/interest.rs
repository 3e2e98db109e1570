//! Which handlers may want a message, found once for each method.

use std::collections::HashMap;
use std::sync::Arc;

use greenroom_protocol::RemoteStyle;

use super::delivery::Delivery;

type Matches = fn(&str) -> bool;

/// What a handler may take.
#[derive(Clone, Copy)]
pub(crate) enum Interest {
    /// Requests whose method matches, from this peer.
    Requests(Matches, RemoteStyle),
    /// Notifications whose method matches, from this peer.
    Notifications(Matches, RemoteStyle),
    /// Requests and their responses, and notifications, from this peer.
    Dispatches { requests: Matches, notifications: Matches, peer: RemoteStyle },
    /// Anything.
    All,
}

/// What kind of message is offered.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Request,
    Notification,
    Response,
}

impl Interest {
    pub(crate) fn covers(&self, kind: Kind, method: &str, from: RemoteStyle) -> bool {
        match *self {
            Self::Requests(matches, peer) => kind == Kind::Request && fits(peer, from) && matches(method),
            Self::Notifications(matches, peer) => kind == Kind::Notification && fits(peer, from) && matches(method),
            Self::Dispatches { requests, notifications, peer } => {
                fits(peer, from)
                    && match kind {
                        Kind::Request | Kind::Response => requests(method),
                        Kind::Notification => notifications(method),
                    }
            }
            Self::All => true,
        }
    }
}

/// Whether a handler for `wanted` takes messages from `from`. The counterpart of a two-peer
/// connection is either of them.
fn fits(wanted: RemoteStyle, from: RemoteStyle) -> bool {
    wanted == from || wanted == RemoteStyle::Counterpart
}

/// Positions of the handlers to ask, in registration order.
pub(crate) type Plan = Arc<[usize]>;

/// The handlers' interests, with what was found out about each method so far. Dispatch costs the
/// same with 3 and with 300 handlers.
pub(crate) struct Plans {
    interests: Vec<Interest>,
    known: HashMap<(Kind, RemoteStyle), HashMap<Box<str>, Plan>>,
    none: Plan,
}

/// A peer that makes up methods must not fill the memory.
const REMEMBERED_METHODS: usize = 1024;

impl Plans {
    pub(crate) fn new(interests: Vec<Interest>) -> Self {
        Self { interests, known: HashMap::new(), none: Arc::from([]) }
    }

    /// Which handlers to ask about this message.
    pub(crate) fn of(&mut self, delivery: &Delivery) -> Plan {
        if self.interests.is_empty() {
            return self.none.clone();
        }
        self.find(delivery.kind(), delivery.method(), delivery.peer())
    }

    /// Whether a handler takes requests with this method by their type, and not just any.
    pub(crate) fn has_typed_request(&self, method: &str) -> bool {
        self.interests.iter().any(|interest| match interest {
            Interest::Requests(matches, _) | Interest::Dispatches { requests: matches, .. } => {
                matches(method) && !matches("a method that nobody has")
            }
            Interest::Notifications(..) | Interest::All => false,
        })
    }

    /// Whether any handler may want the response to a request with this method.
    pub(crate) fn wants_responses(&mut self, method: &str, from: RemoteStyle) -> bool {
        !self.interests.is_empty() && !self.find(Kind::Response, method, from).is_empty()
    }

    fn find(&mut self, kind: Kind, method: &str, from: RemoteStyle) -> Plan {
        let known = self.known.entry((kind, from)).or_default();
        if let Some(plan) = known.get(method) {
            return plan.clone();
        }
        let positions = self.interests.iter().enumerate().filter(|(_, interest)| interest.covers(kind, method, from));
        let plan: Plan = positions.map(|(position, _)| position).collect();
        if known.len() < REMEMBERED_METHODS {
            known.insert(method.into(), plan.clone());
        }
        plan
    }
}
