//! Finding out which spelling a proxy understands (spec §3.5).
//!
//! The first proxy-initialize of a hop is a guess. A peer of the other dialect shows itself by an
//! error, by sending the unknown method on in its own envelope (the echo), or by closing. Released
//! conductors of the legacy dialect answer everything with their first error from then on: they have
//! to be started anew to hear the right name.

use bytes::Bytes;
use greenroom_protocol::{Dialect, Error, Frame, FrameKind, Outbound};
use serde::Deserialize;

use super::call::{quoted_initialize, wire_id};
use super::table::{Probe, Stage};
use super::{Action, Hop, Router, fault};

impl Router {
    /// Sends a proxy-initialize; with an unknown dialect it is a probe.
    pub(super) fn send_proposal(&mut self, to: usize, id: u64, version: u16, params: Bytes, out: &mut Vec<Action>) {
        let link = &mut self.links.links[to];
        let spelling = link.spelling.unwrap_or_else(|| {
            // Nobody closes on the legacy name with version 1. With a later version it could tie
            // a modern router to version 1.
            let spelling = if version >= 2 { Dialect::Modern } else { Dialect::Legacy };
            link.probe = Some(Probe::first(id, spelling, params.clone()));
            spelling
        });
        link.guess = Some(spelling);
        out.push(proposal(to, id, spelling, params));
    }

    /// Whether a proxy-initialize inside an envelope is the running probe that comes back.
    pub(super) fn is_echo(&mut self, from: usize, frame: &Frame) -> bool {
        let Some(probe) = &mut self.links.links[from].probe else { return false };
        probe.echoed = Dialect::of_successor(frame.method());
        true
    }

    /// The proxy initialises its successor: it understood the spelling.
    pub(super) fn probe_accepted(&mut self, at: usize, out: &mut Vec<Action>) {
        let link = &mut self.links.links[at];
        if let Some(probe) = link.probe.take() {
            link.spelling = Some(probe.spelling);
            self.release(at, out);
        }
    }

    /// The answer to the current attempt of a probe.
    pub(super) fn probe_answered(&mut self, at: usize, probe: Probe, frame: &Frame, out: &mut Vec<Action>) {
        let Probe { id, spelling, retried, echoed, .. } = probe;
        let link = &mut self.links.links[at];
        if frame.kind() == FrameKind::Result {
            link.spelling = Some(spelling);
        } else {
            link.spelling = echoed;
            let code = error_code(frame);
            let unknown_name = echoed.is_some() || matches!(code, Some(-32601 | -32600));
            let cancelled = link.sent.get(&id).is_some_and(|entry| entry.stage == Stage::Cancelled);
            if unknown_name && cancelled {
                // That the name was wrong is not what the requester asked.
                self.fail(at, id, &Error::request_cancelled(), out);
                return self.release(at, out);
            }
            if unknown_name && !retried {
                return self.retry(at, Probe { spelling: spelling.other(), ..probe }, out);
            }
            if echoed.is_none() && code == Some(-32600) && !probe.renewed && self.hold_probe(at, &probe, frame) {
                // It may stick to its first error; a new one would know the name.
                let Hop::Component(component) = Hop::at(at) else { return };
                return out.push(Action::Recreate { component });
            }
        }
        self.probe_over(at, id, frame, out);
    }

    /// The peer's last word about a probe.
    fn probe_over(&mut self, at: usize, id: u64, frame: &Frame, out: &mut Vec<Action>) {
        if let Some(entry) = self.links.settle(at, id) {
            self.note_answer(at, &entry, frame);
            self.reply(entry.origin, entry.slot, Outbound::with_id(frame, &entry.id), out);
        }
        self.release(at, out);
    }

    /// Keeps a refused probe until there is a new component; false if nobody waits for it.
    fn hold_probe(&mut self, at: usize, probe: &Probe, refusal: &Frame) -> bool {
        let Some(id) = self.links.renumber(at, probe.id) else { return false };
        let link = &mut self.links.links[at];
        if let Some(entry) = link.sent.get_mut(&id) {
            entry.stage = Stage::Held;
        }
        let params = probe.params.clone();
        let refusal = Some(refusal.clone());
        link.probe = Some(Probe { retried: true, renewed: true, refusal, ..Probe::first(id, probe.spelling, params) });
        true
    }

    /// Sends a name again, or the other one.
    fn retry(&mut self, at: usize, probe: Probe, out: &mut Vec<Action>) {
        let Some(id) = self.links.renumber(at, probe.id) else { return self.release(at, out) };
        let link = &mut self.links.links[at];
        link.mark_sent(id);
        link.guess = Some(probe.spelling);
        out.push(proposal(at, id, probe.spelling, probe.params.clone()));
        link.probe = Some(Probe { id, retried: true, refusal: None, ..probe });
    }

    /// The component closed. Asks for a new one if the spelling may be the cause.
    pub(super) fn probe_closed(&mut self, at: usize) -> bool {
        let Some(probe) = &self.links.links[at].probe else { return false };
        let sent = self.links.links[at].sent.get(&probe.id).is_some_and(|entry| entry.stage == Stage::Sent);
        if probe.retried || !sent {
            return false;
        }
        // A new id, not sent yet: nothing that the dead component still says can answer it.
        let Some(id) = self.links.renumber(at, probe.id) else { return false };
        let link = &mut self.links.links[at];
        if let Some(entry) = link.sent.get_mut(&id) {
            entry.stage = Stage::Held;
        }
        if let Some(probe) = &mut link.probe {
            probe.id = id;
            probe.renewed = true;
        }
        true
    }

    /// The new component runs: the name that the old one did not hear or did not get over goes to
    /// it, then whatever waited.
    pub(super) fn probe_recreated(&mut self, at: usize, out: &mut Vec<Action>) {
        let link = &mut self.links.links[at];
        let lost = |probe: &mut Probe| link.sent.get(&probe.id).is_none_or(|entry| entry.stage == Stage::Held);
        let Some(probe) = link.probe.take_if(lost) else { return };
        let spelling = if probe.refusal.is_some() { probe.spelling } else { probe.spelling.other() };
        self.retry(at, Probe { spelling, echoed: None, ..probe }, out);
    }

    /// There is no new component. True when the old one refused but lives: then its refusal is the
    /// answer, and nothing has ended.
    pub(super) fn probe_not_recreated(&mut self, at: usize, out: &mut Vec<Action>) -> bool {
        let Some(mut probe) = self.links.links[at].probe.take_if(|probe| probe.refusal.is_some()) else { return false };
        if let Some(refusal) = probe.refusal.take() {
            self.probe_over(at, probe.id, &refusal, out);
        }
        true
    }

    /// Answers a request of the table with an error.
    pub(super) fn fail(&mut self, at: usize, id: u64, error: &Error, out: &mut Vec<Action>) {
        if let Some(entry) = self.links.settle(at, id) {
            self.passages.answered(self.path, at, &entry, true, || fault::text(error));
            self.reply(entry.origin, entry.slot, fault::answer(&entry.id, error), out);
        }
    }
}

fn proposal(to: usize, id: u64, spelling: Dialect, params: Bytes) -> Action {
    Action::Send { to: Hop::at(to), message: Outbound::call(Some(&wire_id(id)), quoted_initialize(spelling), params) }
}

impl Probe {
    fn first(id: u64, spelling: Dialect, params: Bytes) -> Self {
        Self { id, spelling, retried: false, echoed: None, refusal: None, renewed: false, params }
    }
}

/// The code of an error response. `-32601` and `-32600` may mean "I do not know this method".
fn error_code(frame: &Frame) -> Option<i64> {
    #[derive(Deserialize)]
    struct Code {
        code: i64,
    }
    serde_json::from_str::<Code>(frame.part(frame.envelope().error)).map(|error| error.code).ok()
}
