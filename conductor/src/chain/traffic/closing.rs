//! How the router's actor brings a chain to its end.

use greenroom::{EndOfInput, Error, Origin, program_name};
use tokio::time::Duration;

use super::super::end::Next;
use super::super::message::{ChainMessage, Traffic};
use super::{Order, TrafficStage};
use crate::router::{Action, Hop};

/// Time for answers that are still missing after the client closed its input, counted from the
/// last message that passed.
const DRAIN: Duration = Duration::from_secs(5);

/// Time for the components to end. Longer than the ladder that ends a process.
const CLOSE: Duration = Duration::from_secs(10);

impl TrafficStage {
    pub(super) fn end_of_input(&mut self, from: Hop, end: &EndOfInput) {
        match from {
            Hop::Client => {
                if let Some(error) = &end.error {
                    self.failure.get_or_insert_with(|| error.clone());
                }
                self.router.client_finished(&cause("the client", end), &mut self.actions);
                self.act(None);
                match self.ending.is_closing() {
                    true => {}
                    false if self.unanswered() > 0 => self.start_drain(),
                    false => self.shut(Order::LeftToRight),
                }
            }
            Hop::Component(component) => self.component_down(component, &cause("the component", end)),
        }
    }

    /// What the client still waits for, be it that a component works on it or has yet to start.
    pub(super) fn unanswered(&self) -> usize {
        self.router.in_flight() + self.router.waiting()
    }

    pub(super) fn start_drain(&mut self) {
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
            self.reopening.push((component, Some(cause.clone())));
            self.ending.ended(Hop::Component(component));
        }
        self.act(None);
        if let Some(connection) = self.components.get(component).and_then(Option::as_ref) {
            connection.close();
        }
        if !replaced && !self.ending.is_closing() {
            self.failure.get_or_insert_with(|| cause.clone());
            self.shut(Order::LeftwardFrom(component));
        }
    }

    pub(super) fn ended(&mut self, hop: Hop, result: Result<(), Error>) {
        let told = |who| match &result {
            Err(error) => broke(who, error),
            Ok(()) => cause(who, &EndOfInput::default()),
        };
        self.ending.ended(hop);
        match hop {
            Hop::Client => {
                let cause = told("the client");
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
                let cause = told("the component");
                self.component_down(component, &cause);
                if self.ending.is_closing() {
                    self.close_components();
                }
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
    pub(super) fn drained(&mut self) {
        if self.drain.is_some() && self.unanswered() == 0 {
            self.shut(Order::LeftToRight);
        }
    }

    /// Shuts the chain down with nobody left who could be told anything.
    pub(super) fn close(&mut self) {
        self.shut(Order::AllAtOnce);
    }

    /// Components first, then upstream.
    pub(super) fn shut(&mut self, order: Order) {
        self.order = order;
        if let Some(drain) = self.drain.take() {
            drain.abort();
        }
        if self.ending.close() {
            self.answer_waiting();
            let mailbox = self.mailbox.clone();
            self.limit = Some(tokio::spawn(async move {
                tokio::time::sleep(CLOSE).await;
                let _ = mailbox.send(Traffic::CloseOver);
            }));
        }
        self.close_components();
        self.advance();
    }

    /// What waits for components that have not started yet will not reach them.
    fn answer_waiting(&mut self) {
        let error = || Error::internal_error().data("the chain ended before its components had started");
        self.router.instantiated(Err(error()), &mut self.actions);
        for (component, _) in &self.reopening {
            self.router.recreated(*component, Err(error()), &mut self.actions);
        }
        self.act(None);
    }

    pub(super) fn close_components(&self) {
        let (gone, nearest) = match self.order {
            Order::AllAtOnce => (0, None),
            Order::LeftToRight => (self.components.len(), self.components.iter().flatten().next()),
            Order::LeftwardFrom(gone) => (gone, self.components.iter().take(gone).flatten().next_back()),
        };
        for connection in self.components.iter().skip(gone).flatten().chain(nearest) {
            connection.close();
        }
    }

    /// Components that do not end, and do not even read that they should.
    pub(super) fn kill_components(&self) {
        for connection in self.components.iter().flatten() {
            connection.kill();
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
                if let Some(tap) = &mut self.tap {
                    tap.end();
                }
                let result = self.failure.take().map_or(Ok(()), Err);
                self.tell(ChainMessage::Conclude(result));
            }
        }
    }
}

/// Why a hop is gone, in words that the others of the chain may read. Folders, stderr and what an
/// application says stay in the source.
fn cause(who: &str, end: &EndOfInput) -> Error {
    match (&end.error, &end.exit) {
        (_, Some(exit)) => {
            let text = format!("{who} {} ended: {}", program_name(&exit.program), exit.status);
            Error::new(-32603, text).with_source(exit.clone())
        }
        (Some(error), None) => broke(who, error),
        (None, None) => Error::new(-32603, format!("{who} closed its output")),
    }
}

/// As [`cause`], for a connection that ended with this error.
fn broke(who: &str, error: &Error) -> Error {
    let reason = error.data.as_ref().and_then(|data| data.get("reason")).and_then(|reason| reason.as_str());
    let text = match error.origin() {
        // The words of an embedded component.
        Origin::Ordinary => format!("{who} failed: {}", error.reason()),
        Origin::Process | Origin::NotStarted => error.message.clone(),
        kind => format!("the connection to {who} broke: {}", reason.unwrap_or(kind.reason())),
    };
    Error::new(-32603, text).with_source(error.clone())
}
