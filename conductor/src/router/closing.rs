//! The end of a hop: whoever waits for it is told, whatever it asked is called off.

use greenroom_protocol::Error;

use super::cancel::cancellation;
use super::path::CLIENT;
use super::table::{End, Held, Stage};
use super::{Action, Phase, Router, dropped, fault};

impl Router {
    /// The peer answers nothing more: fails what waits for it, and all that will.
    pub(super) fn end_input(&mut self, at: usize, cause: &Error, out: &mut Vec<Action>) {
        let link = &mut self.links.links[at];
        link.probe = None;
        link.end = Some(End { cause: cause.clone(), reads: true });
        for id in self.links.links[at].ids(|_| true) {
            self.fail_closed(at, id, cause, out);
        }
        self.release(at, out);
    }

    /// The peer neither answers nor reads nor asks any more.
    pub(super) fn end(&mut self, at: usize, cause: &Error, out: &mut Vec<Action>) {
        self.forget(at, out);
        let link = &mut self.links.links[at];
        link.probe = None;
        link.end = Some(End { cause: cause.clone(), reads: false });
        for held in link.held.drain(..) {
            if let Held::Call { id: None, .. } = held {
                out.push(Action::Drop { reason: dropped::CLOSED });
            }
        }
        for id in self.links.links[at].ids(|_| true) {
            self.fail_closed(at, id, cause, out);
        }
    }

    /// Another peer takes the place of this one; what never reached the old one waits for it.
    pub(super) fn replace(&mut self, at: usize, cause: &Error, out: &mut Vec<Action>) {
        self.forget(at, out);
        for id in self.links.links[at].ids(|entry| entry.stage != Stage::Held) {
            self.fail_closed(at, id, cause, out);
        }
    }

    fn fail_closed(&mut self, at: usize, id: u64, cause: &Error, out: &mut Vec<Action>) {
        if let Some(entry) = self.links.settle(at, id) {
            let error = fault::closed(entry.name.as_str(), cause);
            self.passages.answered(self.path, at, &entry, true, || fault::text(&error));
            self.reply(entry.origin, entry.slot, fault::answer(&entry.id, &error), out);
        }
    }

    /// Calls off every request that came from this hop. Nobody waits for the answers any more.
    fn forget(&mut self, origin: usize, out: &mut Vec<Action>) {
        self.groups.forget(origin);
        if origin == CLIENT
            && let Phase::Opening { waiting } = &mut self.phase
        {
            waiting.clear();
        }
        for at in 0..self.links.links.len() {
            for id in self.links.links[at].ids(|entry| entry.origin == origin) {
                let Some(entry) = self.links.settle(at, id) else { continue };
                let link = &mut self.links.links[at];
                if entry.stage == Stage::Sent && at != origin {
                    out.push(cancellation(at, id, &entry, link.dialect()));
                }
                if entry.stage != Stage::Held && link.probe.take_if(|probe| probe.id == id).is_some() {
                    self.release(at, out);
                }
            }
        }
        self.links.links[origin].asked.clear();
    }
}
