//! Opening a chain and initialising its components (spec §3.2).

use std::collections::VecDeque;

use bytes::Bytes;
use greenroom_protocol::{Error, Frame, FrameKind, Outbound};

use super::batch::Slot;
use super::call::{Call, Word, wire_id};
use super::passage::Passage;
use super::path::{CLIENT, Form};
use super::table::{Asked, Held, Link};
use super::{Action, Hop, Instantiated, Mode, Phase, Router, dropped, fault, version};

impl Router {
    /// A call from upstream while there are no components.
    pub(super) fn before_running(&mut self, frame: &Frame, word: Word, slot: Slot, out: &mut Vec<Action>) {
        match &mut self.phase {
            Phase::Fresh => {}
            Phase::Opening { waiting } => {
                waiting.push_back((frame.clone(), slot));
                return;
            }
            Phase::Failed(error) => {
                let error = error.clone();
                return self.refuse_as(CLIENT, frame, slot, &error, dropped::UNINITIALIZED, out);
            }
            Phase::Running => return,
        }
        let expected = match (self.path.mode, word) {
            (Mode::Agent, Word::Initialize) | (Mode::Proxy, Word::ProxyInitialize(_)) => None,
            (Mode::Agent, Word::ProxyInitialize(_)) => Some(ONLY_CONDUCTORS),
            (Mode::Agent, _) => Some("expected an initialize request first"),
            (Mode::Proxy, _) => Some("expected a proxy/initialize request first"),
        };
        if let Some(reason) = expected {
            return self.refuse_as(CLIENT, frame, slot, &fault::misplaced(reason), dropped::UNINITIALIZED, out);
        }
        if frame.kind() != FrameKind::Request {
            return out.push(Action::Drop { reason: dropped::UNINITIALIZED });
        }
        match version::requested(Call::plain(frame, word).params(frame), self.lowest_version) {
            Err(error) => self.refuse(CLIENT, frame, slot, &error, out),
            Ok(_) => {
                self.phase = Phase::Opening { waiting: VecDeque::from([(frame.clone(), slot)]) };
                out.push(Action::Instantiate { initialize: frame.clone() });
            }
        }
    }

    /// The components run, or cannot: what waited goes on, or is answered with the error.
    pub(super) fn opened(&mut self, outcome: Result<Instantiated, Error>, out: &mut Vec<Action>) {
        let Phase::Opening { waiting } = &mut self.phase else { return };
        let mut waiting = std::mem::take(waiting);
        let params = match outcome.and_then(|chain| self.adopt(chain, waiting.front())) {
            Ok(params) => {
                self.phase = Phase::Running;
                params
            }
            Err(error) => {
                self.phase = Phase::Failed(error);
                None
            }
        };
        if let Some(params) = params
            && let Some((frame, slot)) = waiting.pop_front()
        {
            let call = Call::plain(&frame, Word::of(frame.method()));
            self.start(CLIENT, &frame, call, slot, Some(params), out);
        }
        for (frame, slot) in waiting {
            self.call(CLIENT, &frame, slot, out);
        }
    }

    /// Takes over what the driver decided when it started the components.
    fn adopt(&mut self, chain: Instantiated, first: Option<&(Frame, Slot)>) -> Result<Option<Bytes>, Error> {
        if let (Some(params), Some((frame, _))) = (&chain.params, first) {
            let asked =
                version::Version::find(frame.envelope().params.of(frame.text())).map_or(0, |asked| asked.number);
            let (chosen, _) = version::requested(params.clone(), self.lowest_version)?;
            if chosen > asked.max(1) {
                return Err(fault::misplaced("the chain was started for a higher protocol version than requested"));
            }
        }
        if let Some(proxies) = chain.proxies {
            let links = &mut self.links.links;
            links.truncate(1);
            links.extend(proxies.iter().map(|dialect| Link::new(dialect.fixed())));
            if self.path.mode == Mode::Agent {
                links.push(Link::default());
            }
            self.path.components = links.len() - 1;
        }
        Ok(chain.params)
    }

    /// An initialize or proxy-initialize of a running chain.
    pub(super) fn initialize(&mut self, from: usize, frame: &Frame, call: Call, slot: Slot, out: &mut Vec<Action>) {
        if call.form == Form::Wrapped
            && let Word::ProxyInitialize(_) = call.word
            && self.is_echo(from, frame)
        {
            // No message of the chain's: it is not shown.
            if let Some(id) = frame.raw_id() {
                self.reply(from, slot, fault::answer(&id, &Error::method_not_found()), out);
            }
            return;
        }
        let misplaced = match (call.word, call.form, from) {
            _ if frame.kind() != FrameKind::Request => Some("initialize is a request"),
            (Word::Initialize, Form::Plain, CLIENT) if self.path.mode == Mode::Agent => None,
            (Word::ProxyInitialize(_), Form::Plain, CLIENT) if self.path.mode == Mode::Proxy => None,
            (Word::Initialize, Form::Wrapped, from) if from != CLIENT => None,
            (Word::ProxyInitialize(_), ..) => Some(ONLY_CONDUCTORS),
            (Word::Initialize, Form::Plain, CLIENT) => Some("a proxy is initialised with proxy/initialize"),
            _ => Some("initialize travels from the client towards the agent only"),
        };
        match misplaced {
            Some(reason) => self.refuse(from, frame, slot, &fault::misplaced(reason), out),
            None => self.start(from, frame, call, slot, None, out),
        }
    }

    /// Sends a valid initialize to the next component, or beyond the right end.
    fn start(
        &mut self,
        from: usize,
        frame: &Frame,
        call: Call,
        slot: Slot,
        replaced: Option<Bytes>,
        out: &mut Vec<Action>,
    ) {
        match call.word {
            Word::ProxyInitialize(dialect) => self.links.links[CLIENT].spelling = Some(dialect),
            _ if from != CLIENT => self.probe_accepted(from, out),
            _ => {}
        }
        let original = call.params(frame);
        let wanted = replaced.unwrap_or_else(|| original.clone());
        let (version, params) = match version::requested(wanted, self.lowest_version) {
            Ok(requested) => requested,
            Err(error) => return self.refuse(from, frame, slot, &error, out),
        };
        let (to, form) = self.path.next(from, call.form);
        if let Some(cause) = self.links.links[to].ended() {
            let error = fault::closed(INITIALIZE, cause);
            return self.refuse(from, frame, slot, &error, out);
        }
        let Some(id) = frame.raw_id() else { return };
        self.passages.note(|| Passage::Call {
            from: self.path.party(from, call.form),
            to: self.path.party(to, form),
            id: Some(id.clone()),
            method: Bytes::from_static(QUOTED_INITIALIZE),
            params: params.clone(),
        });
        let to_agent = self.path.is_agent(to);
        let asked = Asked { origin: from, slot, id, name: INITIALIZE };
        let id = self.links.register(to, asked, form, to_agent.then_some(version));
        let message = if form == Form::Wrapped {
            let dialect = self.links.links[to].dialect();
            Outbound::wrapped(dialect, Some(&wire_id(id)), QUOTED_INITIALIZE, params)
        } else if !to_agent {
            return self.propose(to, id, version, params, out);
        } else if call.form == Form::Plain && params == original {
            Outbound::with_id(frame, &wire_id(id))
        } else {
            Outbound::call(Some(&wire_id(id)), QUOTED_INITIALIZE, params)
        };
        out.push(Action::Send { to: Hop::at(to), message });
    }

    /// Sends a proxy-initialize, or keeps it until the running probe has ended.
    pub(super) fn propose(&mut self, to: usize, id: u64, version: u16, params: Bytes, out: &mut Vec<Action>) {
        let link = &mut self.links.links[to];
        if link.probe.is_some() {
            link.held.push_back(Held::Initialize { id, version, params });
            return;
        }
        self.send_proposal(to, id, version, params, out);
    }
}

/// The logical method of both initialize and proxy-initialize.
const INITIALIZE: &str = greenroom_protocol::method::INITIALIZE;

const QUOTED_INITIALIZE: &[u8] = br#""initialize""#;

const ONLY_CONDUCTORS: &str = "only a conductor sends proxy/initialize";
