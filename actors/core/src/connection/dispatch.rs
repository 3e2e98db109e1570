//! Runs handlers, one at a time, in wire order.
//!
//! Owns: the handlers (or the way to them), the progress of the end of the input. Supervised by:
//! the connection; supervises nobody, because it waits for user code.
//! When it dies: restarted, the queue goes on in order. A handler runs at most once: when its
//! actor is killed, the request gets an error that says `interrupted`.
//! Ordering promise: a step ends before the next begins. An ordered response callback is part of
//! its step; a plain awaiter is only resolved.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use greenroom_protocol::{BoxFuture, Error, Origin};
use tokio::time::{Duration, Instant, timeout_at};

use super::call::DispatchGuard;
use super::message::Step;
use super::shared::{Shared, Waiter};
use super::supervisor::ConnectionMessage;
use crate::connection_to::ConnectionTo;
use crate::dispatch::Handled;
use crate::handlers::{Called, Delivery, HandlerPort, Plans, Verdict, gone};
use crate::port::EndOfInput;
use crate::request::{Reply, StepGuard};
use crate::role::{Nature, Role};
use crate::runtime::{Flow, Inbox, Permit, Scoped, Stage};
use crate::termination::{Cause, ConnectionTermination};

/// The stage of the dispatch loop. `C` is the role of the peer.
pub(crate) struct Dispatch<C: Role> {
    shared: Arc<Shared>,
    counterpart: C,
    handlers: HandlerPort<C>,
    plans: Plans,
    /// Whether the end of the input ends the connection (nobody works in the foreground).
    auto_finish: bool,
    /// How long accepted requests may take after the end of the input.
    drain: Duration,
    /// A message that the host works on. In the leased state, so that a restart waits for it.
    posted: Option<(Subject, Verdict)>,
    /// An ordered callback that runs. In the leased state, so that a restart goes on with it.
    callback: Option<Scoped<BoxFuture<'static, Result<(), Error>>>>,
    end: EndProgress,
}

/// What a dispatch step is about, for its end.
enum Subject {
    Request(DispatchGuard),
    Notification,
    Response(StepGuard),
}

/// How far the end of the input is worked off. Kept in the leased state, so that a restart in the
/// middle goes on there.
#[derive(Default)]
struct EndProgress {
    closing: Option<BoxFuture<'static, Result<(), Error>>>,
    closed: bool,
    drain_until: Option<Instant>,
}

impl<C: Role> Dispatch<C> {
    pub(crate) fn new(
        shared: Arc<Shared>,
        counterpart: C,
        handlers: HandlerPort<C>,
        plans: Plans,
        auto_finish: bool,
        drain: Duration,
    ) -> Self {
        Self {
            shared,
            counterpart,
            handlers,
            plans,
            auto_finish,
            drain,
            posted: None,
            callback: None,
            end: EndProgress::default(),
        }
    }

    fn connection(&self) -> ConnectionTo<C> {
        ConnectionTo::new(self.shared.clone(), self.counterpart.clone())
    }

    async fn step(&mut self, step: Step) {
        // The foreground of `connect_with` is done: only answers that somebody may still await
        // matter, and what is dropped here is answered by its guard where that is possible.
        if self.shared.is_draining() && !matches!(step, Step::Response(..)) {
            return;
        }
        match step {
            Step::Request(call, open) => {
                let guard = DispatchGuard::new(open.state().clone());
                self.deliver(Delivery::Request(call, open), Subject::Request(guard)).await;
            }
            Step::Notification(call) => self.deliver(Delivery::Notification(call), Subject::Notification).await,
            Step::Response(id, outcome, permit) => self.response(id, outcome, permit).await,
            Step::BatchDispatched(batch, _permit) => batch.dispatched(&self.shared),
            // Worked off by `end_of_input`, which leaves it in front until it is done.
            Step::Eof(_) => {}
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
            Some(Waiter::Reply(reply)) if self.plans.wants_responses(reply.method()) => {
                let delivery = Delivery::response(reply.clone(), outcome, &self.shared);
                let guard = reply.begin_step(&self.shared);
                self.deliver(delivery, Subject::Response(guard)).await;
            }
            Some(Waiter::Reply(reply)) => self.settle(&reply, outcome).await,
        }
    }

    /// Offers a message to the registered handlers.
    async fn deliver(&mut self, delivery: Delivery, subject: Subject) {
        let plan = self.plans.of(&delivery);
        if plan.is_empty() {
            let result = self.fall_back(delivery).await;
            return self.conclude(subject, result).await;
        }
        let connection = self.connection();
        match self.handlers.call(plan, delivery, &connection).await {
            Called::Done(handled) => self.handled(subject, handled).await,
            Called::Posted(verdict) => {
                self.posted = Some((subject, verdict));
                self.resume().await;
            }
        }
    }

    /// Goes on with what is in the leased state: a message that the host works on, or an ordered
    /// callback. Called again after a restart.
    async fn resume(&mut self) {
        if let Some((_, verdict)) = &mut self.posted {
            let handled = verdict.await.unwrap_or_else(|_| Err(gone()));
            if let Some((subject, _)) = self.posted.take() {
                self.handled(subject, handled).await;
            }
        }
        self.run_callback().await;
    }

    async fn handled(&mut self, subject: Subject, handled: Result<Handled<Delivery>, Error>) {
        let result = match handled {
            Ok(Handled::Yes) => Ok(()),
            Ok(Handled::No { message, .. }) => self.fall_back(message).await,
            Err(error) => Err(error),
        };
        self.conclude(subject, result).await;
    }

    /// No handler took the message: the peer's role decides, then the protocol.
    async fn fall_back(&mut self, delivery: Delivery) -> Result<(), Error> {
        let left = match self.counterpart.nature() {
            Nature::Plain => delivery,
            Nature::Conductor => match crate::proxy::forward(delivery, &self.shared)? {
                Handled::Yes => return Ok(()),
                Handled::No { message, .. } => message,
            },
            Nature::Custom => {
                let connection = self.connection();
                let (dispatch, _) = delivery.into_dispatch(self.counterpart.role_id())?;
                let method = dispatch.method().to_owned();
                let work = self.counterpart.default_handle_dispatch_from(dispatch, connection);
                let work = AssertUnwindSafe(Scoped::new(self.shared.id, work)).catch_unwind();
                match work.await.unwrap_or_else(|_panic| Err(panicked(&method)))? {
                    Handled::Yes => return Ok(()),
                    Handled::No { message, .. } => Delivery::from_dispatch(message)?,
                }
            }
        };
        match left {
            Delivery::Request(call, open) => {
                let method = call.method().to_owned();
                tracing::debug!(connection = %self.shared.name, method, "nobody handles this request");
                // A peer that is gone needs no answer.
                let _ = open.answer(Err(Error::method_not_found().data(method)));
            }
            Delivery::Notification(call) => {
                tracing::debug!(connection = %self.shared.name, method = call.method(), "nobody handles this notification");
            }
            Delivery::Response(response) => {
                let (reply, outcome) = response.into_parts();
                self.settle(&reply, outcome).await;
            }
        }
        Ok(())
    }

    async fn conclude(&mut self, subject: Subject, result: Result<(), Error>) {
        if let Err(error) = &result {
            tracing::warn!(connection = %self.shared.name, code = i32::from(error.code), "a handler failed");
        }
        match (subject, result) {
            (Subject::Request(guard), result) => guard.finish(result),
            // The interceptor's error is what the local awaiter gets.
            (Subject::Response(guard), result) => {
                if let Some(callback) = guard.finish(result.err()) {
                    self.call_back(callback).await;
                }
            }
            (Subject::Notification, _) => {}
        }
    }

    /// Hands a response to whoever waits. An ordered callback is awaited here, inside the step.
    async fn settle(&mut self, reply: &Arc<Reply>, outcome: Result<Bytes, Error>) {
        if let Some(callback) = reply.settle(outcome) {
            self.call_back(callback).await;
        }
    }

    async fn call_back(&mut self, callback: BoxFuture<'static, Result<(), Error>>) {
        self.callback = Some(Scoped::new(self.shared.id, callback));
        self.run_callback().await;
    }

    async fn run_callback(&mut self) {
        let Some(callback) = &mut self.callback else { return };
        let result = AssertUnwindSafe(callback).catch_unwind().await;
        self.callback = None;
        match result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.shared.fail(ConnectionTermination::HandlerError(error)),
            Err(_panic) => {
                tracing::error!(connection = %self.shared.name, "an ordered response callback panicked");
            }
        }
    }

    /// Works off the end of the input: pending requests fail, close callbacks run, accepted
    /// requests get time for their answers. Repeatable: a restart goes on where it was cut.
    async fn end_of_input(&mut self, end: EndOfInput) {
        let EndOfInput { error, exit } = end;
        self.shared.fail_pending(match &error {
            Some(error) => Cause::Terminated(ConnectionTermination::TransportError(error.clone())),
            None => Cause::IncomingClosed(exit),
        });
        if !self.end.closed {
            let connection = self.connection();
            let closing = self.end.closing.get_or_insert_with(|| self.handlers.close(connection));
            let result = closing.await;
            (self.end.closed, self.end.closing) = (true, None);
            if let Err(error) = result {
                self.shared.fail(ConnectionTermination::HandlerError(error));
            }
        }
        self.shared.incoming_closed.send_replace(true);
        if self.auto_finish && error.is_none() {
            let until = *self.end.drain_until.get_or_insert_with(|| Instant::now() + self.drain);
            if timeout_at(until, self.shared.open_count.none()).await.is_err() {
                let open = self.shared.open_count.now();
                tracing::warn!(connection = %self.shared.name, open, "requests were not answered in time");
            }
            self.shared.seal();
        }
        if let Some(supervisor) = self.shared.supervisor.get() {
            let _ = supervisor.cast(ConnectionMessage::InputEnded(error));
        }
    }
}

impl<C: Role> Stage for Dispatch<C> {
    type Item = Step;

    async fn run(&mut self, inbox: &mut Inbox<Step>) -> Flow {
        self.resume().await;
        loop {
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
