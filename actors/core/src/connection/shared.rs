//! What the actors of one connection and the application's handles have in common.
//!
//! Mailboxes, the reply table and counters: never a transport half, never an actor's state. A
//! handle that outlives its connection finds closed mailboxes and a closed table.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_util::FutureExt as _;
use greenroom_protocol::handshake::Endpoint;
use greenroom_protocol::pending::{Pending, Refused};
use greenroom_protocol::{Dialect, Error, Origin, Outbound, RemoteStyle, RequestId, method};
use parking_lot::Mutex;
use ractor::ActorRef;
use tokio::runtime::{EnterGuard, Handle};
use tokio::sync::{Notify, watch};
use tokio::time::Duration;

use super::batch::Undispatched;
use super::call::{CallState, OpenCall};
use super::drain::CloseCallbacks;
use super::guard::Guard;
use super::message::{MethodText, Outgoing, Step, Task};
use super::open_calls::OpenCalls;
use super::supervisor::ConnectionMessage;
use super::tasks::TaskItem;
use crate::handlers::AnyRegistry;
use crate::mcp_server::ConnectionServers;
use crate::options::{ConnectionOptions, ResponderDropPolicy};
use crate::request::Reply;
use crate::runtime::{Credit, LiveCount, Mailbox, Node, Permit};
use crate::session::{SessionItem, SessionTable};
use crate::termination::{Cause, ConnectionTermination};

/// Who waits for the answer to one of our requests.
pub(crate) enum Waiter {
    /// Application code.
    Reply(Arc<Reply>),
    /// A request that a proxy passed on: the answer answers it.
    Forward(OpenCall),
}

/// Counts inbound requests without an answer. Cheap to change, because every request does it
/// twice; only the end of the input waits for it.
#[derive(Default)]
pub(crate) struct OpenCount {
    count: AtomicUsize,
    zero: Notify,
    /// Set once the last answer is the last message.
    seals: AtomicBool,
}

/// A request that has its answer. It counts as open until this is dropped, which has to be behind
/// the queueing of the answer: the end of the connection seals what is queued when the count is
/// zero.
#[must_use]
pub(crate) struct ClosedCall<'a> {
    shared: &'a Shared,
}

impl Drop for ClosedCall<'_> {
    fn drop(&mut self) {
        self.shared.close_one();
    }
}

impl OpenCount {
    fn add(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether none is left.
    fn sub(&self) -> bool {
        let last = self.count.fetch_sub(1, Ordering::SeqCst) == 1;
        if last {
            self.zero.notify_waiters();
        }
        last
    }

    pub(crate) fn now(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits until there are none. Cancel-safe.
    pub(crate) async fn none(&self) {
        loop {
            let zero = self.zero.notified();
            tokio::pin!(zero);
            zero.as_mut().enable();
            if self.now() == 0 {
                return;
            }
            zero.await;
        }
    }
}

/// See the module documentation.
pub(crate) struct Shared {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) outgoing: Mailbox<Outgoing>,
    pub(crate) steps: Mailbox<Step>,
    pub(crate) tasks: Mailbox<TaskItem>,
    pub(crate) pending: Mutex<Pending<i64, Waiter, Cause>>,
    pub(crate) open_calls: Mutex<OpenCalls>,
    pub(crate) supervisor: OnceLock<ActorRef<ConnectionMessage>>,
    pub(crate) incoming_closed: watch::Sender<bool>,
    pub(crate) open_count: OpenCount,
    pub(crate) undispatched: Undispatched,
    pub(crate) termination: watch::Sender<Option<ConnectionTermination>>,
    pub(crate) node: Arc<Node>,
    pub(crate) live: LiveCount,
    /// The handlers that are added while the connection runs; a `Registry` of the peer's role.
    pub(crate) dynamic: Arc<dyn AnyRegistry>,
    /// What may pass before the handshake, and which version it selects.
    pub(crate) guard: Option<Guard>,
    /// Whether a permission request that its sender cancels is answered at once: a rule of protocol
    /// version 2 (spec §9, decision 14).
    answers_cancelled_permissions: bool,
    /// The open sessions of a client.
    pub(crate) sessions: SessionTable,
    /// The MCP servers that the peer can reach through this connection.
    pub(crate) servers: ConnectionServers,
    /// What was read and is not worked off.
    pub(crate) in_credit: Credit,
    pub(crate) out_credit: Credit,
    pub(crate) out_cap: usize,
    pub(crate) dropped_responder: ResponderDropPolicy,
    /// Where callbacks run that nobody may abort.
    runtime: Handle,
    next_id: AtomicI64,
    dialect: AtomicU8,
    /// Set once nothing new may begin.
    pub(super) draining: AtomicBool,
    pub(super) close_callbacks: CloseCallbacks,
    overflowed: AtomicBool,
}

/// How long a callback that runs beside the dispatch loop may still take once the connection has
/// ended; that end waits for it.
const CALLBACK_LIMIT: Duration = Duration::from_secs(5);

/// The answer to a permission request that nobody decides any more.
const PERMISSION_CANCELLED: &[u8] = br#"{"outcome":{"outcome":"cancelled"}}"#;

static NEXT_CONNECTION: AtomicU64 = AtomicU64::new(1);

impl Shared {
    pub(crate) fn new(
        name: String,
        node: Arc<Node>,
        id: u64,
        options: &ConnectionOptions,
        guard: Option<Endpoint>,
        dynamic: Arc<dyn AnyRegistry>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            name,
            outgoing: Mailbox::new(),
            steps: Mailbox::new(),
            tasks: Mailbox::new(),
            pending: Mutex::new(Pending::default()),
            open_calls: Mutex::default(),
            supervisor: OnceLock::new(),
            incoming_closed: watch::Sender::new(false),
            open_count: OpenCount::default(),
            undispatched: Undispatched::default(),
            termination: watch::Sender::new(None),
            node,
            live: LiveCount::new(),
            dynamic,
            answers_cancelled_permissions: guard.is_some_and(Endpoint::is_v2_client),
            guard: guard.map(Guard::new),
            sessions: SessionTable::new(options),
            servers: ConnectionServers::default(),
            in_credit: Credit::new(options.incoming_credit),
            out_credit: Credit::new(options.outgoing_high_mark),
            out_cap: options.outgoing_cap,
            dropped_responder: options.dropped_responder,
            runtime: Handle::current(),
            next_id: AtomicI64::new(0),
            dialect: AtomicU8::new(0),
            draining: AtomicBool::new(false),
            close_callbacks: CloseCallbacks::default(),
            overflowed: AtomicBool::new(false),
        })
    }

    /// A number that no other connection of this process has. Never 0.
    pub(crate) fn next_connection() -> u64 {
        NEXT_CONNECTION.fetch_add(1, Ordering::Relaxed)
    }

    // --- inbound requests -------------------------------------------------------------------

    /// Registers an inbound request, so that the peer can cancel it.
    pub(crate) fn open_call(&self, call: &Arc<CallState>) {
        // Counted before it can be found, and answered, by another thread.
        self.open_one();
        self.open_calls.lock().insert(call);
    }

    /// One more answer is due before the output may end.
    pub(crate) fn open_one(&self) {
        self.open_count.add();
    }

    /// One of those answers is queued.
    pub(crate) fn close_one(&self) {
        if self.open_count.sub() && self.open_count.seals.load(Ordering::SeqCst) {
            self.seal();
        }
    }

    /// Forgets an inbound request whose answer is about to be queued: the peer may use its id again
    /// as soon as it has that.
    pub(crate) fn close_call(&self, call: &Arc<CallState>) -> ClosedCall<'_> {
        self.open_calls.lock().remove(call);
        ClosedCall { shared: self }
    }

    /// Inbound requests without an answer.
    pub(crate) fn open_calls(&self) -> usize {
        self.open_calls.lock().len()
    }

    /// Sets the marker of an inbound request that the peer wants cancelled.
    pub(crate) fn cancel_call(&self, id: &RequestId) {
        let call = self.open_calls.lock().find(id);
        if let Some(call) = call {
            call.cancelled.set();
            if self.answers_cancelled_permissions && call.permission_of().is_some() {
                let _ = call.answer(Ok(Bytes::from_static(PERMISSION_CANCELLED)));
            }
        }
    }

    /// A session's work is cancelled: its open permission requests are answered so, and its turn
    /// gets a deadline.
    pub(crate) fn cancel_session(&self, id: &str) {
        let asked = |call: &&Arc<CallState>| call.permission_of() == Some(id);
        let open: Vec<_> = self.open_calls.lock().iter().filter(asked).cloned().collect();
        for call in open {
            call.cancelled.set();
            let _ = call.answer(Ok(Bytes::from_static(PERMISSION_CANCELLED)));
        }
        if let Some(session) = self.sessions.find(id) {
            let _ = session.tell(SessionItem::Cancel);
        }
    }

    pub(crate) fn send_reply(&self, message: Outbound) -> Result<(), Error> {
        self.send_reply_with(message, None)
    }

    /// Queues an answer that holds credit: the given one, or else that of this side's output.
    pub(crate) fn send_reply_with(&self, message: Outbound, permit: Option<Permit>) -> Result<(), Error> {
        let permit = permit.unwrap_or_else(|| self.out_permit(message.len()));
        self.publish(Outgoing::Reply(message, Some(permit)))
    }

    // --- outbound calls ---------------------------------------------------------------------

    pub(crate) fn allocate_id(&self) -> i64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers who waits for the answer, then queues the request: both before this returns.
    ///
    /// # Errors
    /// Gives the waiter back when the connection takes no requests any more.
    pub(crate) fn publish_request(
        &self,
        id: i64,
        method: MethodText,
        params: Bytes,
        to: RemoteStyle,
        waiter: Waiter,
        permit: Option<Permit>,
    ) -> Result<(), (Waiter, Error)> {
        let mut params = params;
        if let Some(guard) = &self.guard {
            let lower = matches!(&waiter, Waiter::Reply(reply) if reply.takes_lower_version());
            match guard.send_request(method.name(), to, id, &params, lower) {
                Ok(changed) => params = changed.unwrap_or(params),
                Err(error) => return Err((waiter, error)),
            }
        }
        let sent = self.register_and_publish(id, method, params, to, waiter, permit);
        if let (Err(_), Some(guard)) = (&sent, &self.guard) {
            guard.unsent(id);
        }
        sent
    }

    fn register_and_publish(
        &self,
        id: i64,
        method: MethodText,
        params: Bytes,
        to: RemoteStyle,
        waiter: Waiter,
        permit: Option<Permit>,
    ) -> Result<(), (Waiter, Error)> {
        if let Err(refused) = self.pending.lock().insert(id, waiter) {
            return Err(match refused {
                Refused::Closed(waiter, cause) => (waiter, cause.to_error(&method.to_string())),
                Refused::Duplicate(waiter) => (waiter, Error::internal_error().data("this request id is taken")),
            });
        }
        let permit = permit.or_else(|| Some(self.out_permit(params.len())));
        if let Err(error) = self.publish(Outgoing::Call { id: Some(id), method, params, to, permit }) {
            // Nobody will answer a request that was not sent; unless the table was closed in the
            // meantime, the waiter is still ours.
            return match self.pending.lock().settle(&id) {
                Some(waiter) => Err((waiter, error)),
                None => Ok(()),
            };
        }
        Ok(())
    }

    /// Queues a notification.
    pub(crate) fn publish_notification(
        &self,
        method: MethodText,
        params: Bytes,
        to: RemoteStyle,
        permit: Option<Permit>,
    ) -> Result<(), Error> {
        if let Some(guard) = &self.guard {
            guard.send_notification(method.name())?;
        }
        let permit = permit.or_else(|| Some(self.out_permit(params.len())));
        self.publish(Outgoing::Call { id: None, method, params, to, permit })
    }

    fn publish(&self, item: Outgoing) -> Result<(), Error> {
        if self.out_credit.used() > self.out_cap {
            let error = Error::internal_error().with_origin(Origin::Overflow).data(serde_json::json!({
                "reason": "outgoing overflow: the peer does not read",
                "limit": self.out_cap,
            }));
            // Once: whoever floods may not look at errors, and every request is a message.
            if !self.overflowed.swap(true, Ordering::AcqRel) {
                self.fail(ConnectionTermination::TransportError(error.clone()));
            }
            return Err(error);
        }
        self.outgoing.send(item).map_err(|_| self.closed_error())
    }

    fn out_permit(&self, bytes: usize) -> Permit {
        // The envelope costs about as much as a short message; counting it keeps a flood of empty
        // notifications bounded as well.
        self.out_credit.take(bytes + 64)
    }

    /// Why the connection takes nothing any more.
    pub(crate) fn closed_error(&self) -> Error {
        match &*self.termination.borrow() {
            Some(ConnectionTermination::IncomingClosed) => Cause::IncomingClosed(None).to_error(""),
            Some(other) => Cause::Terminated(other.clone()).to_error(""),
            None => Cause::Terminated(ConnectionTermination::LocalShutdown).to_error(""),
        }
    }

    /// Asks the peer to cancel one of our requests, in the form that its hop understands: inside
    /// the envelope for a wrapped request on a legacy hop, plain otherwise (spec §3.4 X2).
    pub(crate) fn send_cancel(&self, id: i64, to: RemoteStyle) -> Result<(), Error> {
        let wrapped = to == RemoteStyle::Successor && self.dialect() == Dialect::Legacy;
        let to = if wrapped { RemoteStyle::Successor } else { RemoteStyle::Counterpart };
        let params = Bytes::from(format!(r#"{{"requestId":{id}}}"#));
        self.publish_notification(MethodText::Name(method::CANCEL_REQUEST.into()), params, to, None)
    }

    // --- answers ----------------------------------------------------------------------------

    /// Fails everything that waits for an answer, and every later request.
    pub(crate) fn fail_pending(self: &Arc<Self>, cause: Cause) {
        let waiting = self.pending.lock().close(cause.clone());
        for (_, waiter) in waiting {
            match waiter {
                Waiter::Reply(reply) => {
                    let error = cause.to_error(reply.method());
                    reply.fail(error, self);
                }
                Waiter::Forward(call) => {
                    let error = cause.to_error(call.state().method());
                    let _ = call.answer(Err(error));
                }
            }
        }
    }

    /// Makes the connection's runtime that of the current thread, until the guard is dropped.
    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }

    /// Runs the callback of a request beside the dispatch loop. It is owed its outcome, so the end
    /// of the connection does not abort it; [`closed`](crate::Connection::closed) waits for it, for
    /// a bounded time.
    pub(crate) fn run_callback(&self, callback: Task) {
        let (live, tasks, name) = (self.live.enter(), self.tasks.clone(), self.name.clone());
        let mut termination = self.termination.subscribe();
        drop(self.runtime.spawn(async move {
            let _live = live;
            // While the connection lasts it may take its time; only the end does not wait for ever.
            let limit = async {
                let _ = termination.wait_for(Option::is_some).await;
                tokio::time::sleep(CALLBACK_LIMIT).await;
            };
            let result = tokio::select! {
                outcome = AssertUnwindSafe(callback).catch_unwind() => match outcome {
                    Ok(result) => result,
                    // The panic's text may hold a payload: it is not repeated.
                    Err(_panic) => Err(Error::internal_error().data("a response callback panicked")),
                },
                () = limit => Err(Error::internal_error().data("a response callback did not end")),
            };
            if let Err(TaskItem::Ended(Err(error))) = tasks.send(TaskItem::Ended(result)) {
                tracing::warn!(connection = %name, code = i32::from(error.code), reason = error.reason(), "a response callback failed");
            }
        }));
    }

    /// Runs what the end of the connection must not abort, and what limits itself instead;
    /// [`closed`](crate::Connection::closed) waits for it.
    #[cfg(feature = "unstable_mcp_over_acp")]
    pub(crate) fn spawn_owed(&self, task: impl Future<Output = ()> + Send + 'static) {
        let live = self.live.enter();
        drop(self.runtime.spawn(async move {
            let _live = live;
            task.await;
        }));
    }

    /// Fails one request that will not be sent.
    pub(crate) fn fail_one(self: &Arc<Self>, id: i64, error: &Error) {
        let waiter = self.pending.lock().settle(&id);
        match waiter {
            Some(Waiter::Reply(reply)) => reply.fail(error.clone(), self),
            Some(Waiter::Forward(call)) => drop(call.answer(Err(error.clone()))),
            None => {}
        }
    }

    /// Answers every inbound request that has no answer yet.
    pub(crate) fn answer_open_calls(&self, error: &Error) {
        let open: Vec<_> = self.open_calls.lock().iter().cloned().collect();
        for call in open {
            let _ = call.answer(Err(error.clone()));
        }
    }

    // --- lifecycle --------------------------------------------------------------------------

    /// Asks the supervisor to end the connection for this reason.
    pub(crate) fn fail(&self, termination: ConnectionTermination) {
        if let Some(supervisor) = self.supervisor.get() {
            let _ = supervisor.cast(ConnectionMessage::Fail(termination));
        }
    }

    /// Lets everything published so far leave, then closes the outgoing half.
    pub(crate) fn seal(&self) {
        self.outgoing.send_last(Outgoing::Seal);
    }

    /// As [`seal`](Self::seal), behind the answers that other threads are giving right now.
    pub(crate) fn seal_behind_answers(&self) {
        self.open_count.seals.store(true, Ordering::SeqCst);
        if self.open_count.now() == 0 {
            self.seal();
        }
    }

    /// Records how the connection ended; the first record stays.
    pub(crate) fn terminate(&self, termination: ConnectionTermination) {
        self.termination.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                *current = Some(termination);
            }
            first
        });
    }

    /// Fails what waits, refuses what comes later, and drops what is queued. The termination is
    /// recorded before.
    pub(crate) fn close_all(self: &Arc<Self>) {
        // The table first: from here on every new request fails at once.
        let termination = self.termination.borrow().clone().unwrap_or(ConnectionTermination::Dropped);
        self.fail_pending(Cause::Terminated(termination));
        // Items are dropped outside of the mailboxes' locks.
        drop(self.tasks.close());
        drop(self.steps.close());
        drop(self.outgoing.close());
        self.dynamic.close();
        self.sessions.kill_all(&self.closed_error(), &self.runtime);
        self.servers.close_all();
        self.incoming_closed.send_replace(true);
    }

    // --- dialect ----------------------------------------------------------------------------

    /// The spelling in which this hop's peer spoke first; legacy until it spoke.
    pub(crate) fn dialect(&self) -> Dialect {
        if self.dialect.load(Ordering::Relaxed) == 1 { Dialect::Modern } else { Dialect::Legacy }
    }

    pub(crate) fn set_dialect(&self, dialect: Dialect) {
        self.dialect.store(u8::from(dialect == Dialect::Modern), Ordering::Relaxed);
    }
}

impl fmt::Display for MethodText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Json(text) => f.write_str(String::from_utf8_lossy(text).trim_matches('"')),
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}
