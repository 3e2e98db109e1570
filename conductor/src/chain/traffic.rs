//! The router's actor: the one place where the forwarding order of a chain is decided.
//!
//! Owns: the routing state machine, the handles of all connections, the progress of the end.
//! Supervised by: the chain. When it dies: restarted, nothing lost.
//! Ordering promise: frames of one hop are routed in the order in which that hop sent them, and
//! each hop gets its messages in the order in which they were routed.

use greenroom::runtime::{Flow, Inbox, Mailbox, Permit, Stage};
use greenroom::{EndOfInput, Error, Inbound, RawConnection};
use greenroom_protocol::{Frame, FrameKind, Outbound};
use ractor::ActorRef;
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant};

use super::end::{Ending, Next};
use super::message::{ChainMessage, Opened, Traffic};
use crate::router::{Action, Hop, Router};

/// Time for answers that are still missing after the client closed its input, counted from the
/// last message that passed.
const DRAIN: Duration = Duration::from_secs(5);

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
    /// Frames routed so far.
    routed: u64,
    refusals: greenroom_protocol::ReplyLimit,
    started: Instant,
    failure: Option<Error>,
    actions: Vec<Action>,
    /// What a connection said before it was introduced.
    early: Vec<Traffic>,
    /// Components that are being started anew.
    reopening: Vec<usize>,
    /// The components could not be started; those that ran for a moment count no more.
    abandoned: bool,
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
    pub(super) fn new(router: Router, chain: ActorRef<ChainMessage>, mailbox: Mailbox<Traffic>) -> Self {
        Self {
            router,
            upstream: None,
            components: Vec::new(),
            ending: Ending::default(),
            generations: Vec::new(),
            chain,
            mailbox,
            drain: None,
            routed: 0,
            refusals: greenroom_protocol::ReplyLimit::default(),
            started: Instant::now(),
            failure: None,
            actions: Vec::new(),
            early: Vec::new(),
            reopening: Vec::new(),
            abandoned: false,
        }
    }

    /// Decides about a frame. Nothing leaves before the item is committed, so that a panic here
    /// repeats it.
    fn route(&mut self, from: Hop, frame: &Frame) {
        self.actions.clear();
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
                Some(_) if self.reopening.contains(&index) => Standing::Early,
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
            Traffic::Inbound(_, _, Inbound::Frame(_, permit)) => self.act(permit),
            Traffic::Inbound(from, _, Inbound::Eof(end)) => self.end_of_input(from, &end),
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
            Traffic::Ended(hop, _, result) => self.ended(hop, result),
            // It was on its way when the drain ended.
            Traffic::DrainOver(_) if self.drain.is_none() => {}
            Traffic::DrainOver(routed) if routed != self.routed => self.start_drain(),
            Traffic::DrainOver(_) => {
                tracing::warn!(open = self.unanswered(), "requests were not answered in time");
                self.close();
            }
        }
        self.drained();
    }

    /// Carries out what the router decided. The credit of the frame goes to the first message that
    /// it caused: it is given back when that is written.
    fn act(&mut self, permit: Option<Permit>) {
        let mut permit = permit;
        for action in std::mem::take(&mut self.actions) {
            match action {
                Action::Send { to, message } => {
                    if let Some(connection) = self.connection(to) {
                        connection.send(message, permit.take());
                    }
                }
                Action::Instantiate { initialize } => self.tell(ChainMessage::Open(initialize)),
                Action::Recreate { component } => {
                    let generation = self.generations.get(component).copied().unwrap_or_default();
                    self.tell(ChainMessage::Recreate(component, generation));
                }
                Action::Drop { reason } => tracing::debug!(reason, "a message was dropped"),
            }
        }
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
                self.router.instantiated(Err(error), &mut self.actions);
            }
        }
        self.act(None);
        if self.ending.is_closing() {
            self.close_components();
        }
    }

    fn recreated(&mut self, component: usize, outcome: Result<RawConnection, Error>) {
        self.reopening.retain(|index| *index != component);
        let failure = match outcome {
            Ok(connection) => {
                if self.ending.is_closing() {
                    connection.close();
                }
                self.components[component] = Some(connection);
                self.ending.up(Hop::Component(component));
                self.router.recreated(component, Ok(()), &mut self.actions);
                None
            }
            Err(error) => {
                self.router.recreated(component, Err(error.clone()), &mut self.actions);
                Some(error)
            }
        };
        self.act(None);
        if let Some(error) = failure
            && !self.ending.is_closing()
        {
            self.failure.get_or_insert(error);
            self.close();
        }
    }

    fn end_of_input(&mut self, from: Hop, end: &EndOfInput) {
        match from {
            Hop::Client => {
                self.router.client_finished(&cause("the client", end), &mut self.actions);
                self.act(None);
                if self.unanswered() > 0 && !self.ending.is_closing() {
                    self.start_drain();
                } else {
                    self.close();
                }
            }
            Hop::Component(component) => self.component_down(component, &cause("the component", end)),
        }
    }

    /// What the client still waits for, be it that a component works on it or has yet to start.
    fn unanswered(&self) -> usize {
        self.router.in_flight() + self.router.waiting()
    }

    fn start_drain(&mut self) {
        let (mailbox, routed) = (self.mailbox.clone(), self.routed);
        let before = self.drain.replace(tokio::spawn(async move {
            tokio::time::sleep(DRAIN).await;
            let _ = mailbox.send(Traffic::DrainOver(routed));
        }));
        if let Some(before) = before {
            before.abort();
        }
    }

    /// A component is gone: its requests fail with the reason, and the chain ends in order. Says
    /// the same thing again without effect.
    fn component_down(&mut self, component: usize, cause: &Error) {
        self.router.component_down(component, cause, &mut self.actions);
        let is_recreate = |action: &Action| matches!(action, Action::Recreate { .. });
        let replaced = self.actions.iter().any(is_recreate);
        if replaced && self.ending.is_closing() {
            // Nobody would need the new one.
            self.actions.retain(|action| !is_recreate(action));
            self.router.recreated(component, Err(cause.clone()), &mut self.actions);
        } else if replaced {
            // From now on the old process's words and its end are no news.
            self.generations[component] += 1;
            self.reopening.push(component);
            self.ending.ended(Hop::Component(component));
        }
        self.act(None);
        if let Some(connection) = self.components.get(component).and_then(Option::as_ref) {
            connection.close();
        }
        if !replaced && !self.ending.is_closing() {
            self.failure.get_or_insert_with(|| cause.clone());
            self.close();
        }
    }

    fn ended(&mut self, hop: Hop, result: Result<(), Error>) {
        let gone = || Error::internal_error().with_origin(greenroom::Origin::IncomingClosed);
        self.ending.ended(hop);
        match hop {
            Hop::Client => {
                let cause = result.as_ref().err().cloned().unwrap_or_else(gone);
                self.router.client_closed(&cause, &mut self.actions);
                self.act(None);
                if let Err(error) = result {
                    self.failure.get_or_insert(error);
                }
                self.close();
            }
            Hop::Component(component) => {
                self.components[component] = None;
                // Its output may not have ended before it did; whoever waits for it is told now.
                let cause = result.as_ref().err().cloned().unwrap_or_else(gone);
                self.component_down(component, &cause);
                // More telling than "its output ended": exit status and last words.
                if let Err(error) = result
                    && self.failure.as_ref().is_some_and(|failure| failure.data.is_none())
                {
                    self.failure = Some(error);
                }
            }
        }
        self.advance();
    }

    /// Once the client is done and everything is answered, the chain closes.
    fn drained(&mut self) {
        if self.drain.is_some() && self.unanswered() == 0 {
            self.close();
        }
    }

    /// Shuts the chain down, components first.
    fn close(&mut self) {
        if let Some(drain) = self.drain.take() {
            drain.abort();
        }
        if self.ending.close() {
            self.answer_waiting();
            self.close_components();
        }
        self.advance();
    }

    /// What waits for components that have not started yet will not reach them.
    fn answer_waiting(&mut self) {
        let error = || Error::internal_error().data("the chain ended before its components had started");
        self.router.instantiated(Err(error()), &mut self.actions);
        for component in &self.reopening {
            self.router.recreated(*component, Err(error()), &mut self.actions);
        }
        self.act(None);
    }

    fn close_components(&self) {
        for connection in self.components.iter().flatten() {
            connection.close();
        }
    }

    fn advance(&mut self) {
        match self.ending.next() {
            Next::Wait => {}
            Next::CloseUpstream => {
                if let Some(upstream) = &self.upstream {
                    upstream.close();
                }
            }
            Next::Conclude => {
                let result = self.failure.take().map_or(Ok(()), Err);
                self.tell(ChainMessage::Conclude(result));
            }
        }
    }
}

impl Drop for TrafficStage {
    fn drop(&mut self) {
        if let Some(drain) = &self.drain {
            drain.abort();
        }
    }
}

/// Why a hop is gone, in words that a client may see: no stderr, no paths beyond the program.
fn cause(who: &str, end: &EndOfInput) -> Error {
    let text = match (&end.error, &end.exit) {
        (_, Some(exit)) => format!("{who} {} ended: {}", exit.program, exit.status),
        (Some(error), None) => format!("the connection to {who} broke: {error}"),
        (None, None) => format!("{who} closed its output"),
    };
    Error::new(-32603, text)
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
