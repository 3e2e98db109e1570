//! Who may use a session, and what is sent for that: a pure state machine.
//!
//! One entry for each session that somebody wants or that is not closed yet:
//!
//! ```text
//!            load              resumed             last lease gone
//! (nothing) ------> Resuming ----------> Open ---------------------> Closing ---> (nothing)
//!                      |                                                ^    \
//!                      | last load gone         resumed                 |     \ not closed
//!                      +-------------> Draining ------------------------+      +---> Blocked
//! ```
//!
//! Who comes while a session drains or closes waits for the close, and gets a fresh resume.

use std::collections::{BTreeSet, HashMap};

use greenroom_protocol::Error;
use greenroom_protocol::schema::v2::SessionId;

/// One load: a place in the line of those that use a session. Never used again.
pub(super) type Load = u64;

/// One resume or close. An answer names the operation that it belongs to: one that comes late hits
/// nothing.
pub(super) type Operation = u64;

/// What has to be done, in this order.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Effect {
    /// Begin an empty log and send `session/resume`.
    Resume(SessionId, Operation),
    /// Send `session/close`.
    Close(SessionId, Operation),
    /// Forget the log: nobody may see it any more.
    Discard(SessionId),
    /// Hand the session's log and the answer to its resume over.
    Deliver(SessionId, Load),
    /// This load gets an error.
    Fail(Load, Error),
    /// No update of the session is wanted any more.
    Forget(SessionId),
}

#[derive(Debug)]
enum Phase {
    /// A resume is under way, and these wait for it.
    Resuming { operation: Operation, loads: BTreeSet<Load> },
    /// These share the session. `broken`: why nobody else may join them.
    Open { leases: BTreeSet<Load>, broken: Option<Error> },
    /// A resume is under way that nobody waits for any more. These wait for what comes after it.
    Draining { operation: Operation, waiting: BTreeSet<Load> },
    /// A close is under way. These wait for it.
    Closing { operation: Operation, waiting: BTreeSet<Load> },
    /// It could not be closed: nobody gets it on this connection any more.
    Blocked(Error),
}

/// The sessions of one coordination.
#[derive(Debug, Default)]
pub(super) struct Policy {
    sessions: HashMap<SessionId, Phase>,
    operations: Operation,
    /// Why nothing can be loaded any more.
    ended: Option<Error>,
}

impl Policy {
    /// Somebody wants the session.
    pub(super) fn load(&mut self, session: &SessionId, load: Load) -> Vec<Effect> {
        if let Some(error) = &self.ended {
            return vec![Effect::Fail(load, error.clone())];
        }
        match self.sessions.get_mut(session) {
            None => self.resume(session, BTreeSet::from([load])),
            Some(Phase::Resuming { loads, .. }) => {
                loads.insert(load);
                Vec::new()
            }
            Some(Phase::Open { broken: Some(error), .. } | Phase::Blocked(error)) => {
                vec![Effect::Fail(load, error.clone())]
            }
            Some(Phase::Open { leases, broken: None }) => {
                leases.insert(load);
                vec![Effect::Deliver(session.clone(), load)]
            }
            Some(Phase::Draining { waiting, .. } | Phase::Closing { waiting, .. }) => {
                waiting.insert(load);
                Vec::new()
            }
        }
    }

    /// A load was dropped, whether it got the session or not.
    pub(super) fn release(&mut self, session: &SessionId, load: Load) -> Vec<Effect> {
        match self.sessions.get_mut(session) {
            Some(Phase::Resuming { operation, loads }) => {
                if !loads.remove(&load) || !loads.is_empty() {
                    return Vec::new();
                }
                let draining = Phase::Draining { operation: *operation, waiting: BTreeSet::new() };
                self.sessions.insert(session.clone(), draining);
                vec![Effect::Discard(session.clone())]
            }
            Some(Phase::Open { leases, .. }) => {
                if !leases.remove(&load) || !leases.is_empty() {
                    return Vec::new();
                }
                let mut effects = vec![Effect::Discard(session.clone())];
                effects.extend(self.close(session, BTreeSet::new()));
                effects
            }
            Some(Phase::Draining { waiting, .. } | Phase::Closing { waiting, .. }) => {
                waiting.remove(&load);
                Vec::new()
            }
            Some(Phase::Blocked(_)) | None => Vec::new(),
        }
    }

    /// The answer to a resume came.
    pub(super) fn resumed(&mut self, session: &SessionId, operation: Operation, refused: Option<Error>) -> Vec<Effect> {
        match self.sessions.get_mut(session) {
            Some(Phase::Resuming { operation: current, loads }) if *current == operation => {
                let loads = std::mem::take(loads);
                match refused {
                    None => {
                        let deliver = |load: &Load| Effect::Deliver(session.clone(), *load);
                        let effects = loads.iter().map(deliver).collect();
                        self.sessions.insert(session.clone(), Phase::Open { leases: loads, broken: None });
                        effects
                    }
                    Some(error) => {
                        self.sessions.remove(session);
                        let mut effects = vec![Effect::Discard(session.clone()), Effect::Forget(session.clone())];
                        effects.extend(failed(loads, &error));
                        effects
                    }
                }
            }
            Some(Phase::Draining { operation: current, waiting }) if *current == operation => {
                let waiting = std::mem::take(waiting);
                // What was not resumed needs no closing.
                if refused.is_some() { self.reopen(session, waiting) } else { self.close(session, waiting) }
            }
            _ => Vec::new(),
        }
    }

    /// The answer to a close came.
    pub(super) fn closed(&mut self, session: &SessionId, operation: Operation, refused: Option<Error>) -> Vec<Effect> {
        match self.sessions.get_mut(session) {
            Some(Phase::Closing { operation: current, waiting }) if *current == operation => {
                let waiting = std::mem::take(waiting);
                let Some(error) = refused else { return self.reopen(session, waiting) };
                self.sessions.insert(session.clone(), Phase::Blocked(error.clone()));
                let mut effects = vec![Effect::Forget(session.clone())];
                effects.extend(failed(waiting, &error));
                effects
            }
            _ => Vec::new(),
        }
    }

    /// Whether an update of this session goes into its log.
    pub(super) fn keeps(&self, session: &SessionId) -> bool {
        matches!(self.sessions.get(session), Some(Phase::Resuming { .. } | Phase::Open { broken: None, .. }))
    }

    /// The log of the session takes no more.
    pub(super) fn overflowed(&mut self, session: &SessionId, error: &Error) -> Vec<Effect> {
        match self.sessions.get_mut(session) {
            Some(Phase::Resuming { operation, loads }) => {
                let (operation, loads) = (*operation, std::mem::take(loads));
                self.sessions.insert(session.clone(), Phase::Draining { operation, waiting: BTreeSet::new() });
                let mut effects = vec![Effect::Discard(session.clone())];
                effects.extend(failed(loads, error));
                effects
            }
            Some(Phase::Open { broken, .. }) => {
                broken.get_or_insert_with(|| error.clone());
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// The connection hears nothing more: whoever waits gets this error.
    pub(super) fn end(&mut self, error: &Error) -> Vec<Effect> {
        self.ended.get_or_insert_with(|| error.clone());
        let mut waiting = BTreeSet::new();
        for (_, phase) in self.sessions.drain() {
            match phase {
                Phase::Resuming { loads, .. } => waiting.extend(loads),
                Phase::Draining { waiting: more, .. } | Phase::Closing { waiting: more, .. } => waiting.extend(more),
                Phase::Open { .. } | Phase::Blocked(_) => {}
            }
        }
        failed(waiting, error)
    }

    fn resume(&mut self, session: &SessionId, loads: BTreeSet<Load>) -> Vec<Effect> {
        let operation = self.operation();
        self.sessions.insert(session.clone(), Phase::Resuming { operation, loads });
        vec![Effect::Resume(session.clone(), operation)]
    }

    /// Recorded before anything may open the session again.
    fn close(&mut self, session: &SessionId, waiting: BTreeSet<Load>) -> Vec<Effect> {
        let operation = self.operation();
        self.sessions.insert(session.clone(), Phase::Closing { operation, waiting });
        vec![Effect::Close(session.clone(), operation)]
    }

    /// The session is closed: a fresh resume for those that waited, if any.
    fn reopen(&mut self, session: &SessionId, waiting: BTreeSet<Load>) -> Vec<Effect> {
        self.sessions.remove(session);
        if waiting.is_empty() { vec![Effect::Forget(session.clone())] } else { self.resume(session, waiting) }
    }

    fn operation(&mut self) -> Operation {
        self.operations += 1;
        self.operations
    }
}

fn failed(loads: BTreeSet<Load>, error: &Error) -> Vec<Effect> {
    loads.into_iter().map(|load| Effect::Fail(load, error.clone())).collect()
}

#[cfg(test)]
mod tests;
