//! Finding out which spelling a proxy understands (spec §3.5).
//!
//! The first proxy-initialize of a hop is a guess. A peer of the other dialect shows itself by an
//! error, by sending the unknown method on in its own envelope (the echo), or by closing.

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
            link.probe = Some(Probe { id, spelling, retried: false, echoed: None, params: params.clone() });
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
        let Probe { id, spelling, retried, echoed, params } = probe;
        let link = &mut self.links.links[at];
        if frame.kind() == FrameKind::Result {
            link.spelling = Some(spelling);
        } else {
            link.spelling = echoed;
            let unknown_name = echoed.is_some() || is_unknown_name(frame);
            let cancelled = link.sent.get(&id).is_some_and(|entry| entry.stage == Stage::Cancelled);
            if unknown_name && cancelled {
                // That the name was wrong is not what the requester asked.
                self.fail(at, id, &Error::request_cancelled(), out);
                return self.release(at, out);
            }
            if unknown_name && !retried {
                return self.retry(at, id, spelling.other(), echoed, params, out);
            }
        }
        if let Some(entry) = self.links.settle(at, id) {
            self.note_answer(at, &entry, frame);
            self.reply(entry.origin, entry.slot, Outbound::with_id(frame, &entry.id), out);
        }
        self.release(at, out);
    }

    /// Sends the other name, once.
    fn retry(
        &mut self,
        at: usize,
        id: u64,
        spelling: Dialect,
        echoed: Option<Dialect>,
        params: Bytes,
        out: &mut Vec<Action>,
    ) {
        let Some(id) = self.links.renumber(at, id) else { return self.release(at, out) };
        let link = &mut self.links.links[at];
        link.mark_sent(id);
        link.guess = Some(spelling);
        link.probe = Some(Probe { id, spelling, retried: true, echoed, params: params.clone() });
        out.push(proposal(at, id, spelling, params));
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
        }
        true
    }

    /// The new component runs: the other name goes to it, then whatever waited.
    pub(super) fn probe_recreated(&mut self, at: usize, out: &mut Vec<Action>) {
        let link = &mut self.links.links[at];
        let lost = |probe: &mut Probe| link.sent.get(&probe.id).is_none_or(|entry| entry.stage == Stage::Held);
        let Some(probe) = link.probe.take_if(lost) else { return };
        self.retry(at, probe.id, probe.spelling.other(), None, probe.params, out);
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

/// Whether an error response may mean "I do not know this method".
fn is_unknown_name(frame: &Frame) -> bool {
    #[derive(Deserialize)]
    struct Code {
        code: i64,
    }
    let code = serde_json::from_str::<Code>(frame.part(frame.envelope().error)).map(|error| error.code);
    matches!(code, Ok(-32601 | -32600))
}
