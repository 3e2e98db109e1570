//! Runs handlers, one at a time, in wire order.
//!
//! Owns: the handlers (or the way to them), the progress of the end of the input. Supervised by:
//! the connection; supervises nobody, because it waits for user code.
//! When it dies: restarted, the queue goes on in order. A handler runs at most once: when its
//! actor is killed, the request gets an error that says `interrupted`.
//! Ordering promise: a step ends before the next begins. An ordered response callback is part of
//! its step; a plain awaiter is only resolved. What was kept for a handler that came later is
//! offered to it before anything newer.

mod ending;
mod passing;
mod unclaimed;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use greenroom_protocol::{BoxFuture, Error, Origin, RequestId};
use tokio::time::Duration;

use super::call::DispatchGuard;
use super::message::Step;
use super::shared::{Shared, Waiter};
use super::start::Spec;
use crate::connection_to::ConnectionTo;
use crate::dispatch::Handled;
use crate::handlers::{Called, Delivery, HandlerPort, Offered, Parked, Plans, Registry, Verdict, gone};
use crate::request::{Reply, StepGuard};
use crate::role::Role;
use crate::runtime::{Flow, Inbox, Permit, Scoped, Stage};
use crate::session::SessionEntry;
use crate::termination::ConnectionTermination;
use ending::EndProgress;

/// The stage of the dispatch loop. `C` is the role of the peer.
pub(crate) struct Dispatch<C: Role> {
    shared: Arc<Shared>,
    counterpart: C,
    handlers: HandlerPort<C>,
    plans: Plans,
    dynamic: Arc<Registry<C>>,
    /// Whether the end of the input ends the connection (nobody works in the foreground).
    auto_finish: bool,
    /// Whether notifications of sessions wait for a handler that is not there yet.
    parks: bool,
    /// How long accepted requests may take after the end of the input.
    drain: Duration,
    /// Whether an ordered callback that fails ends the connection.
    end_on_failure: bool,
    /// What handlers work on. In the leased state, so that a restart waits for it.
    at_work: Option<AtWork>,
    /// An ordered callback that runs. In the leased state, so that a restart goes on with it.
    callback: Option<Scoped<BoxFuture<'static, Result<(), Error>>>>,
    /// Messages that wait for a handler.
    parked: Parked,
    /// How many of them were given up, because there were too many.
    given_up: u64,
    /// Those of them that are being offered again, because one was added.
    retrying: Parked,
    /// How many handlers had been added when the parked messages were last offered.
    seen: u64,
    end: EndProgress,
}

/// A message that handlers look at.
struct AtWork {
    subject: Subject,
    place: Place,
    /// Whether a handler before wanted the message to be offered again.
    retry: bool,
    /// The session that the message belongs to: it takes what no handler before it takes.
    session: Option<Arc<SessionEntry>>,
}

/// Where it is looked at.
enum Place {
    /// By the registered handlers, in the future of whoever drives the connection.
    Registered(Verdict),
    /// By the handlers that were added later.
    Added(BoxFuture<'static, Result<Handled<Delivery>, Error>>),
}

/// What a dispatch step is about, for its end.
enum Subject {
    Request(DispatchGuard),
    Notification(Box<str>),
    Response(StepGuard),
}

impl Subject {
    /// The method and, where there is one, the id: all that a log may say about a message.
    fn label(&self) -> (&str, Option<&RequestId>) {
        match self {
            Self::Request(guard) => (guard.state().method(), Some(guard.state().id())),
            Self::Notification(method) => (method, None),
            Self::Response(guard) => (guard.method(), None),
        }
    }
}

impl<C: Role> Dispatch<C> {
    pub(crate) fn new(shared: Arc<Shared>, spec: Spec<C>, dynamic: Arc<Registry<C>>) -> Self {
        Self {
            shared,
            counterpart: spec.counterpart,
            handlers: spec.handlers,
            plans: spec.plans,
            dynamic,
            auto_finish: spec.auto_finish,
            parks: spec.parks,
            drain: spec.options.drain,
            end_on_failure: spec.options.end_on_failure,
            at_work: None,
            callback: None,
            parked: Parked::default(),
            given_up: 0,
            retrying: Parked::default(),
            seen: 0,
            end: EndProgress::default(),
        }
    }

    fn connection(&self) -> ConnectionTo<C> {
        ConnectionTo::new(self.shared.clone(), self.counterpart.clone())
    }

    async fn step(&mut self, step: Step) {
        // The foreground of `connect_with` is done: only answers that somebody may still await
        // matter, and what is dropped here is answered by its guard where that is possible.
        if self.shared.is_draining() && !matches!(step, Step::Response(..) | Step::BatchDispatched(..)) {
            return;
        }
        match step {
            Step::Request(call, open) => self.arrived(Delivery::Request(call, open)).await,
            Step::Notification(call) => self.arrived(Delivery::Notification(call)).await,
            Step::Response(id, outcome, permit) => self.response(id, outcome, permit).await,
            Step::BatchDispatched(batch, _permit) => batch.dispatched(&self.shared),
            // Its work was done before this step, and `end_of_input` leaves the end in front until it
            // is worked off.
            Step::HandlerAdded | Step::Eof(_) => {}
        }
    }

    async fn arrived(&mut self, delivery: Delivery) {
        if let Some(delivery) = self.pass_on(delivery) {
            let subject = match &delivery {
                Delivery::Request(_, open) => Subject::Request(DispatchGuard::new(open.state().clone())),
                other => Subject::Notification(other.method().into()),
            };
            self.deliver(delivery, subject).await;
        }
    }

    async fn response(&mut self, id: i64, outcome: Result<Bytes, Error>, permit: Option<Permit>) {
        let waiter = self.shared.pending.lock().settle(&id);
        match waiter {
            None => tracing::debug!("a response to an unknown request was ignored"),
            Some(Waiter::Forward(call)) => {
                // A peer that is gone needs no answer.
                let _ = call.forward(outcome, permit);
            }
            Some(Waiter::Reply(reply)) if self.is_intercepted(&reply) => {
                let delivery = Delivery::response(reply.clone(), outcome, &self.shared);
                let guard = reply.begin_step(&self.shared);
                self.deliver(delivery, Subject::Response(guard)).await;
            }
            Some(Waiter::Reply(reply)) => self.settle(&reply, outcome).await,
        }
    }

    /// Whether any handler may want the response.
    fn is_intercepted(&mut self, reply: &Reply) -> bool {
        let (method, peer) = (reply.method(), reply.peer());
        self.plans.wants_responses(method, peer) || self.dynamic.wants_responses(method, peer)
    }

    /// Offers a message to the registered handlers, then to those that were added later.
    async fn deliver(&mut self, delivery: Delivery, subject: Subject) {
        let plan = self.plans.of(&delivery);
        if plan.is_empty() {
            return self.offer(delivery, subject, false).await;
        }
        let connection = self.connection();
        match self.handlers.call(plan, delivery, &connection).await {
            Called::Done(handled) => self.registered(subject, handled).await,
            Called::Posted(verdict) => {
                self.at_work = Some(AtWork { subject, place: Place::Registered(verdict), retry: false, session: None });
                self.resume().await;
            }
        }
    }

    /// Goes on with what is in the leased state: a message that handlers work on, or an ordered
    /// callback. Called again after a restart.
    async fn resume(&mut self) {
        while let Some(work) = &mut self.at_work {
            let handled = match &mut work.place {
                Place::Registered(verdict) => verdict.await.unwrap_or_else(|_| Err(gone())),
                Place::Added(handlers) => handlers.await,
            };
            let Some(AtWork { subject, place, retry, session }) = self.at_work.take() else { break };
            match place {
                // Boxed, because offering a message ends here again.
                Place::Registered(_) => Box::pin(self.registered(subject, handled)).await,
                Place::Added(_) => self.added(subject, handled, retry, session).await,
            }
        }
        self.run_callback().await;
    }

    /// The registered handlers are done.
    async fn registered(&mut self, subject: Subject, handled: Result<Handled<Delivery>, Error>) {
        match handled {
            Ok(Handled::Yes) => self.conclude(subject, Ok(())).await,
            Ok(Handled::No { message, retry }) => self.offer(message, subject, retry).await,
            Err(error) => self.conclude(subject, Err(error)).await,
        }
    }

    /// Offers a message to the handlers that were added later.
    async fn offer(&mut self, delivery: Delivery, subject: Subject, retry: bool) {
        // A notification must not overtake those that were kept for a session that opened just now: it
        // is kept too. A request is not kept.
        let session = self.shared.sessions.of(&delivery);
        let session =
            session.filter(|session| !matches!(delivery, Delivery::Notification(_)) || session.is_known_to(self.seen));
        let before = session.as_ref().map_or(u64::MAX, |session| session.opened());
        match self.dynamic.offer(delivery, self.connection(), before, self.seen) {
            Offered::Unwanted(delivery) => self.claim(delivery, subject, retry, session).await,
            Offered::Running(handlers) => {
                self.at_work = Some(AtWork { subject, place: Place::Added(handlers), retry, session });
                Box::pin(self.resume()).await;
            }
        }
    }

    /// The handlers that were added later are done.
    async fn added(
        &mut self,
        subject: Subject,
        handled: Result<Handled<Delivery>, Error>,
        retry: bool,
        session: Option<Arc<SessionEntry>>,
    ) {
        match handled {
            Ok(Handled::Yes) => self.conclude(subject, Ok(())).await,
            Ok(Handled::No { message, retry: again }) => self.claim(message, subject, retry | again, session).await,
            Err(error) => self.conclude(subject, Err(error)).await,
        }
    }

    /// Gives a message to its session or to the MCP server that it names, if there is one.
    async fn claim(&mut self, delivery: Delivery, subject: Subject, retry: bool, session: Option<Arc<SessionEntry>>) {
        match session {
            Some(session) => {
                session.deliver(delivery);
                self.conclude(subject, Ok(())).await;
            }
            None => match self.shared.servers.take(delivery) {
                Some(delivery) => self.unclaimed(delivery, subject, retry).await,
                None => self.conclude(subject, Ok(())).await,
            },
        }
    }

    async fn conclude(&mut self, subject: Subject, result: Result<(), Error>) {
        if let Err(error) = &result {
            self.log_failure(&subject, error);
        }
        match (subject, result) {
            (Subject::Request(guard), result) => guard.finish(result),
            // The interceptor's error is what the local awaiter gets.
            (Subject::Response(guard), result) => {
                let method = guard.method().to_owned();
                if let Some(callback) = guard.finish(result.err()) {
                    self.call_back(&method, callback).await;
                }
            }
            (Subject::Notification(_), _) => {}
        }
    }

    fn log_failure(&self, subject: &Subject, error: &Error) {
        let ((method, id), code) = (subject.label(), i32::from(error.code));
        match id {
            Some(id) => tracing::warn!(connection = %self.shared.name, method, %id, code, "a handler failed"),
            None => tracing::warn!(connection = %self.shared.name, method, code, "a handler failed"),
        }
    }

    /// Hands a response to whoever waits. An ordered callback is awaited here, inside the step.
    async fn settle(&mut self, reply: &Arc<Reply>, outcome: Result<Bytes, Error>) {
        if let Some(callback) = reply.settle(outcome) {
            self.call_back(reply.method(), callback).await;
        }
    }

    async fn call_back(&mut self, method: &str, callback: BoxFuture<'static, Result<(), Error>>) {
        self.callback = Some(Scoped::new(self.shared.id, method, callback));
        self.run_callback().await;
    }

    async fn run_callback(&mut self) {
        let Some(callback) = &mut self.callback else { return };
        let result = AssertUnwindSafe(callback).catch_unwind().await;
        self.callback = None;
        let error = match result {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            // What the panic said went to the panic hook; it may quote payload.
            Err(_panic) => Error::internal_error().data("an ordered response callback panicked"),
        };
        let code = i32::from(error.code);
        tracing::warn!(connection = %self.shared.name, code, "an ordered response callback failed");
        if self.end_on_failure {
            self.shared.fail(ConnectionTermination::HandlerError(error));
        }
    }
}

impl<C: Role> Stage for Dispatch<C> {
    type Item = Step;

    async fn run(&mut self, inbox: &mut Inbox<Step>) -> Flow {
        self.resume().await;
        loop {
            self.offer_again().await;
            if let Some(Step::Eof(end)) = inbox.front() {
                let end = end.clone();
                self.end_of_input(end).await;
                inbox.take();
                return Flow::Finished;
            }
            match inbox.take() {
                Some(step) => self.step(step).await,
                None => return Flow::Idle,
            }
        }
    }

    fn quarantine(&mut self, item: Step) {
        drop(item);
    }
}

/// What a request gets whose handler panicked. The panic's text may hold a payload and stays out.
pub(crate) fn panicked(method: &str) -> Error {
    Error::internal_error()
        .with_origin(Origin::Interrupted)
        .data(serde_json::json!({ "reason": "interrupted", "method": method }))
}
