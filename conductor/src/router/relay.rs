//! Requests and notifications: refuse, or pass on to the next hop.

use greenroom_protocol::{Error, Frame, FrameKind};

use super::batch::Slot;
use super::call::{Call, Word};
use super::passage::Passage;
use super::path::CLIENT;
use super::table::{Asked, Held};
use super::{Action, Hop, Phase, Router, dropped, fault};

impl Router {
    /// One request or notification, alone or from a batch.
    pub(super) fn call(&mut self, from: usize, frame: &Frame, slot: Slot, out: &mut Vec<Action>) {
        let outer = Word::of(frame.method());
        if from == CLIENT && !matches!(self.phase, Phase::Running) {
            return self.before_running(frame, outer, slot, out);
        }
        let call = if let Word::Successor(_) = outer {
            if !self.path.has_successor(from) {
                let reason = "a successor envelope from a peer that has no successor";
                return self.refuse(from, frame, slot, &fault::misplaced(reason), out);
            }
            match Call::wrapped(frame) {
                Ok(call) => call,
                Err(error) => return self.refuse(from, frame, slot, &error, out),
            }
        } else {
            Call::plain(frame, outer)
        };
        match call.word {
            Word::Other => self.relay(from, frame, call, slot, out),
            Word::Cancel if frame.kind() == FrameKind::Notification => {
                self.cancel(from, &call.params(frame), out);
            }
            Word::Cancel => {
                self.refuse(from, frame, slot, &fault::misplaced("a cancellation is a notification"), out);
            }
            Word::Successor(_) => {
                let reason = "a successor envelope inside a successor envelope";
                self.refuse(from, frame, slot, &fault::misplaced(reason), out);
            }
            Word::Initialize | Word::ProxyInitialize(_) => self.initialize(from, frame, call, slot, out),
        }
    }

    /// Passes ordinary traffic on.
    fn relay(&mut self, from: usize, frame: &Frame, call: Call, slot: Slot, out: &mut Vec<Action>) {
        let (to, form) = self.path.next(from, call.form);
        let link = &self.links.links[to];
        if let Some(cause) = link.ended()
            && (frame.kind() == FrameKind::Request || link.is_gone())
        {
            let error = fault::closed(call.name(frame), cause);
            return self.refuse_as(from, frame, slot, &error, dropped::CLOSED, out);
        }
        let id = match frame.raw_id() {
            Some(id) => {
                let asked = Asked { origin: from, slot, id, name: call.name(frame) };
                Some(self.links.register(to, asked, form, None))
            }
            None => None,
        };
        self.passages.note(|| Passage::Call {
            from: self.path.party(from, call.form),
            to: self.path.party(to, form),
            id: frame.raw_id(),
            method: call.method(frame),
            params: call.params(frame),
        });
        let link = &mut self.links.links[to];
        if link.probe.is_some() {
            link.held.push_back(Held::Call { frame: frame.clone(), call, form, id });
            return;
        }
        out.push(Action::Send { to: Hop::at(to), message: call.forward(frame, form, link.dialect(), id) });
    }

    /// Sends what waited for the dialect of this hop.
    pub(super) fn release(&mut self, at: usize, out: &mut Vec<Action>) {
        loop {
            let link = &mut self.links.links[at];
            // A held initialize may have started another probe.
            if link.probe.is_some() {
                return;
            }
            match link.held.pop_front() {
                None => return,
                Some(Held::Call { frame, call, form, id }) => {
                    // A request that was cancelled while it waited is not in the table any more.
                    if id.is_some_and(|id| !link.mark_sent(id)) {
                        continue;
                    }
                    let message = call.forward(&frame, form, link.dialect(), id);
                    out.push(Action::Send { to: Hop::at(at), message });
                }
                Some(Held::Initialize { id, version, params }) => {
                    if link.mark_sent(id) {
                        self.propose(at, id, version, params, out);
                    }
                }
            }
        }
    }

    /// Answers a request with an error; a notification is dropped.
    pub(super) fn refuse(&mut self, from: usize, frame: &Frame, slot: Slot, error: &Error, out: &mut Vec<Action>) {
        self.refuse_as(from, frame, slot, error, dropped::MISPLACED, out);
    }

    /// As [`refuse`](Self::refuse), with another reason for notifications.
    pub(super) fn refuse_as(
        &mut self,
        from: usize,
        frame: &Frame,
        slot: Slot,
        error: &Error,
        reason: &'static str,
        out: &mut Vec<Action>,
    ) {
        match frame.raw_id() {
            Some(id) => {
                self.passages.refused(self.path, from, frame, &id, || fault::text(error));
                self.reply(from, slot, fault::answer(&id, error), out);
            }
            None => out.push(Action::Drop { reason }),
        }
    }

    /// Takes a batch apart.
    pub(super) fn batch(&mut self, from: usize, frame: &Frame, out: &mut Vec<Action>) {
        let group = self.groups.open(from);
        for entry in frame.entries() {
            match entry.kind() {
                FrameKind::Request => {
                    let slot = self.groups.slot(group);
                    self.call(from, entry, slot, out);
                }
                FrameKind::Notification => self.call(from, entry, Slot::ALONE, out),
                FrameKind::Result | FrameKind::Error => self.answer(from, entry, out),
                FrameKind::Malformed => match entry.malformation() {
                    Some(malformed) if !malformed.response_shaped => {
                        let slot = self.groups.slot(group);
                        self.reply(from, slot, fault::answer_unidentified(&malformed.error), out);
                    }
                    _ => out.push(Action::Drop { reason: dropped::MALFORMED_RESPONSE }),
                },
                FrameKind::Batch | FrameKind::Noise => out.push(Action::Drop { reason: dropped::NOISE }),
            }
        }
        if let Some((to, message)) = self.groups.seal(group) {
            out.push(Action::Send { to: Hop::at(to), message });
        }
    }
}
