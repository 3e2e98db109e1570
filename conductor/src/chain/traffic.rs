//! The router's actor: the one place where the forwarding order of a chain is decided.
//!
//! Owns: the routing state machine, the handles of all connections, the progress of the end.
//! Supervised by: the chain. When it dies: restarted, nothing lost.
//! Ordering promise: frames of one hop are routed in the order in which that hop sent them, and
//! each hop gets its messages in the order in which they were routed.

mod closing;

use greenroom::runtime::{Flow, Inbox, Mailbox, Permit, Stage};
use greenroom::{Error, Inbound, RawConnection};
use greenroom_protocol::{Frame, FrameKind, Noise, NoiseReport, Outbound};
use ractor::ActorRef;
use std::collections::BTreeMap;
use std::error::Error as _;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::end::Ending;
use super::message::{ChainMessage, Opened, Traffic};
use crate::router::{Action, ComponentIndex, Hop, Party, Router, dropped};
use crate::trace::Tap;

/// The stage of the router.
pub(super) struct TrafficStage {
    router: Router,
    upstream: Option<RawConnection>,
    components: Vec<Option<RawConnection>>,
    ending: Ending,
    /// Counts the starts of each component, so that the end of an old one is not taken for the
    /// end of its successor.
    generations: Vec<u32>,
    chain: ActorRef<ChainMessage>,
    mailbox: Mailbox<Traffic>,
    drain: Option<JoinHandle<()>>,
    order: Order,
    /// Runs while the components are being closed.
    limit: Option<JoinHandle<()>>,
    /// Frames routed so far.
    routed: u64,
    refusals: greenroom_protocol::ReplyLimit,
    started: Instant,
    failure: Option<Error>,
    actions: Vec<Action>,
    /// What a connection said before it was introduced.
    early: Vec<Traffic>,
    /// Components that are being started anew, and how the old one ended; it may still run.
    reopening: Vec<(usize, Option<Error>)>,
    /// The components could not be started; those that ran for a moment count no more.
    abandoned: bool,
    /// Where what passes is recorded.
    tap: Option<Tap>,
    /// Of each connection that made any.
    noise: BTreeMap<Hop, Noise>,
}

/// Which components are closed when. What is still on its way passes the components that have not
/// been closed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Nobody is left to receive anything.
    AllAtOnce,
    /// Each when the one to its left has ended: what the client said last passes every proxy.
    LeftToRight,
    /// This component is gone: those to its right at once, those to its left each when the one to
    /// its right has ended, so that the last words of the dead pass every proxy up to the client.
    LeftwardFrom(usize),
}

/// Whether to listen to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It is not known here yet, although it speaks already.
    Early,
    Current,
    /// It was replaced or given up.
    Gone,
}

impl TrafficStage {
    pub(super) fn new(
        router: Router,
        chain: ActorRef<ChainMessage>,
        mailbox: Mailbox<Traffic>,
        tap: Option<Tap>,
    ) -> Self {
        Self {
            router,
            upstream: None,
            components: Vec::new(),
            ending: Ending::default(),
            generations: Vec::new(),
            chain,
            mailbox,
            drain: None,
            order: Order::AllAtOnce,
            limit: None,
            routed: 0,
            refusals: greenroom_protocol::ReplyLimit::default(),
            started: Instant::now(),
            failure: None,
            actions: Vec::new(),
            early: Vec::new(),
            reopening: Vec::new(),
            abandoned: false,
            tap,
            noise: BTreeMap::new(),
        }
    }

    /// Decides about a frame. Nothing leaves before the item is committed, so that a panic here
    /// repeats it.
    fn route(&mut self, from: Hop, frame: &Frame) {
        self.actions.clear();
        drop(self.router.passages());
        self.routed += 1;
        if frame.kind() == FrameKind::Malformed && !self.refusals.allow(self.started.elapsed()) {
            tracing::debug!("too many malformed messages: not answered");
            return;
        }
        self.router.handle(from, frame, &mut self.actions);
    }

    /// Whose words these are.
    fn standing(&self, hop: Hop, generation: u32) -> Standing {
        match hop {
            Hop::Client if self.ending.is_known(hop) => Standing::Current,
            Hop::Client => Standing::Early,
            Hop::Component(_) if self.abandoned => Standing::Gone,
            Hop::Component(index) => match self.generations.get(index) {
                None => Standing::Early,
                Some(current) if generation < *current => Standing::Gone,
                Some(_) if self.is_reopening(index) => Standing::Early,
                Some(_) => Standing::Current,
            },
        }
    }

    /// A connection became known: what it said before is next.
    fn known(&mut self) {
        for item in std::mem::take(&mut self.early) {
            self.decide(&item);
            self.work(item);
        }
    }

    /// The part of the work on an item that may be repeated.
    fn decide(&mut self, item: &Traffic) {
        if let Traffic::Inbound(from, generation, Inbound::Frame(frame, _)) = item
            && self.standing(*from, *generation) == Standing::Current
        {
            self.route(*from, frame);
        }
    }

    fn work(&mut self, item: Traffic) {
        if let Traffic::Inbound(hop, generation, _) | Traffic::Ended(hop, generation, _) = item {
            match self.standing(hop, generation) {
                Standing::Current => {}
                Standing::Early => return self.early.push(item),
                Standing::Gone => return,
            }
        }
        match item {
            Traffic::Inbound(from, _, Inbound::Frame(frame, permit)) => {
                self.record_noise(from, &frame);
                self.act(permit);
            }
            Traffic::Inbound(from, _, Inbound::Eof(end)) => {
                self.last_noise(from);
                self.end_of_input(from, &end);
            }
            Traffic::Upstream(connection) => {
                self.upstream = Some(connection);
                self.ending.up(Hop::Client);
                self.known();
            }
            Traffic::Opened(outcome) => {
                self.opened(outcome);
                self.known();
            }
            Traffic::Recreated(component, outcome) => {
                self.recreated(component, outcome);
                self.known();
            }
            Traffic::Ended(hop, _, result) => {
                self.last_noise(hop);
                self.ended(hop, result);
            }
            // It was on its way when the drain ended.
            Traffic::DrainOver(_) if self.drain.is_none() => {}
            Traffic::DrainOver(routed) if routed != self.routed => self.start_drain(),
            Traffic::DrainOver(_) => {
                tracing::warn!(open = self.unanswered(), "requests were not answered in time");
                self.close();
            }
            Traffic::CloseOver => self.kill_components(),
        }
        self.drained();
    }

    /// Carries out what the router decided. The credit of the frame goes to the first message that
    /// it caused: it is given back when that is written.
    fn act(&mut self, permit: Option<Permit>) {
        let mut permit = permit;
        if let Some(tap) = &mut self.tap {
            self.router.passages().for_each(|passage| tap.passed(passage));
        }
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Send { to, message } => {
                    if let Some(connection) = self.connection(to) {
                        connection.send(message, permit.take());
                    }
                }
                Action::Instantiate { initialize } => self.tell(ChainMessage::Open(initialize)),
                Action::Recreate { component } => self.recreate(component),
                Action::Drop { reason } => tracing::debug!(reason, "a message was dropped"),
            }
        }
        if self.actions.is_empty() {
            // Its memory is for the next message.
            self.actions = actions;
        } else {
            // What became of a component that nobody needs anew.
            self.act(permit);
        }
    }

    fn is_reopening(&self, component: usize) -> bool {
        self.reopening.iter().any(|(reopening, _)| *reopening == component)
    }

    /// Asks for a new component. An old one that still runs is not listened to meanwhile.
    fn recreate(&mut self, component: usize) {
        let mut generation = self.generations.get(component).copied().unwrap_or_default();
        if !self.is_reopening(component) {
            if self.ending.is_closing() {
                let error = Error::internal_error().data("the chain is ending");
                return self.router.recreated(component, Err(error), &mut self.actions);
            }
            generation += 1;
            self.reopening.push((component, None));
        }
        self.tell(ChainMessage::Recreate(component, generation));
    }

    /// What cannot be shown is shown by its length only, and in a recording as often as it would be
    /// answered if it were a malformed request.
    fn record_noise(&mut self, from: Hop, frame: &Frame) {
        let why = |action: &Action| match action {
            Action::Drop { reason: reason @ (dropped::NOISE | dropped::MALFORMED_RESPONSE) } => Some(*reason),
            _ => None,
        };
        let Some(reason) = self.actions.iter().find_map(why) else { return };
        let bytes = frame.text().len();
        // A response that cannot be used is JSON.
        if reason == dropped::NOISE {
            self.noise.entry(from).or_default().add(bytes);
        }
        let from = self.component(from);
        if let Some(tap) = &mut self.tap
            && self.refusals.allow(self.started.elapsed())
        {
            tap.noise(Party::At(from), bytes);
        }
    }

    fn component(&self, hop: Hop) -> ComponentIndex {
        match hop {
            Hop::Client => ComponentIndex::Client,
            Hop::Component(index) if self.router.is_agent(index) => ComponentIndex::Agent,
            Hop::Component(index) => ComponentIndex::Proxy(index),
        }
    }

    /// Logs what noise came since the last time.
    fn report_noise(&mut self) {
        let now = self.started;
        let due = |(hop, noise): (&Hop, &mut Noise)| Some((*hop, noise.report(|| now.elapsed())?));
        let reports: Vec<_> = self.noise.iter_mut().filter_map(due).collect();
        for (hop, report) in reports {
            self.log_noise(hop, report);
        }
    }

    /// Nothing more comes from there.
    fn last_noise(&mut self, hop: Hop) {
        if let Some(report) = self.noise.get_mut(&hop).and_then(Noise::last_report) {
            self.log_noise(hop, report);
        }
    }

    fn log_noise(&self, hop: Hop, NoiseReport { lines, bytes, total }: NoiseReport) {
        let from = self.component(hop);
        tracing::warn!(%from, lines, bytes, total, "input that is not JSON was ignored");
    }

    fn connection(&self, hop: Hop) -> Option<&RawConnection> {
        match hop {
            Hop::Client => self.upstream.as_ref(),
            Hop::Component(index) => self.components.get(index)?.as_ref(),
        }
    }

    fn tell(&self, message: ChainMessage) {
        let _ = self.chain.cast(message);
    }

    fn opened(&mut self, outcome: Result<Opened, Error>) {
        match outcome {
            Ok(opened) => {
                for (index, connection) in opened.connections.into_iter().enumerate() {
                    self.components.push(Some(connection));
                    self.generations.push(0);
                    self.ending.up(Hop::Component(index));
                }
                self.router.instantiated(Ok(opened.instantiated), &mut self.actions);
            }
            Err(error) => {
                self.abandoned = true;
                // The client is told as much as a peer may know; whoever runs the chain learns the
                // rest from how it ends.
                self.failure.get_or_insert_with(|| error.clone());
                self.router.instantiated(Err(error), &mut self.actions);
            }
        }
        self.act(None);
        if self.ending.is_closing() {
            self.close_components();
        }
    }

    fn recreated(&mut self, component: usize, outcome: Result<RawConnection, Error>) {
        let before = self.reopening.iter().position(|(index, _)| *index == component);
        let before = before.map(|index| self.reopening.remove(index).1);
        let lives = matches!(before, Some(None));
        let failure = match outcome {
            Ok(connection) => {
                if self.ending.is_closing() {
                    connection.close();
                }
                if lives {
                    self.last_noise(Hop::Component(component));
                    // From now on the old one's words and its end are no news.
                    self.generations[component] += 1;
                }
                let old = self.components[component].replace(connection);
                if let Some(old) = old.filter(|_| lives) {
                    old.close();
                }
                self.ending.up(Hop::Component(component));
                self.router.recreated(component, Ok(()), &mut self.actions);
                None
            }
            Err(error) => {
                self.router.recreated(component, Err(error.clone()), &mut self.actions);
                // How the first one ended says more than that there is no second one.
                match before {
                    Some(None) => None,
                    Some(Some(cause)) if error.source().is_none() => Some(error.with_source(cause)),
                    _ => Some(error),
                }
            }
        };
        self.act(None);
        if let Some(error) = failure
            && !self.ending.is_closing()
        {
            self.failure.get_or_insert(error);
            self.shut(Order::LeftwardFrom(component));
        }
    }
}

impl Drop for TrafficStage {
    fn drop(&mut self) {
        for timer in [&self.drain, &self.limit].into_iter().flatten() {
            timer.abort();
        }
    }
}

impl Stage for TrafficStage {
    type Item = Traffic;

    async fn run(&mut self, inbox: &mut Inbox<Traffic>) -> Flow {
        while let Some(item) = inbox.begin() {
            self.decide(item);
            if let Some(item) = inbox.commit() {
                self.work(item);
            }
        }
        self.report_noise();
        Flow::Idle
    }

    fn quarantine(&mut self, item: Traffic) {
        // What half a decision left behind.
        self.actions.clear();
        match item {
            Traffic::Inbound(from, _, Inbound::Frame(frame, _)) => {
                if frame.kind() == FrameKind::Request
                    && let Some(id) = frame.raw_id()
                    && let Some(connection) = self.connection(from)
                {
                    let error = Error::internal_error().data("this request could not be routed");
                    let error = error.to_wire().get().as_bytes().to_vec().into();
                    connection.send(Outbound::error(&id, error), None);
                }
            }
            // Nothing is decided about these before they are committed, so they are not to blame.
            other => self.work(other),
        }
    }
}
