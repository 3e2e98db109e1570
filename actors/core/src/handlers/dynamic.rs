//! Handlers that are added while a connection runs.
//!
//! Owns: nothing of the actors. The registry belongs to the connection's handles; the dispatch
//! actor reads it before each message. Adding and removing take effect for the next message that
//! is dispatched: there is no queue in between that something could overtake.

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use futures_util::FutureExt as _;
use greenroom_protocol::{BoxFuture, RemoteStyle, Result};
use parking_lot::Mutex;

use super::delivery::Delivery;
use super::entries::{HandleDispatchFrom, Handlers};
use super::interest::{Interest, Kind};
use crate::connection::panicked;
use crate::connection_to::ConnectionTo;
use crate::dispatch::Handled;
use crate::role::Role;
use crate::runtime::Scoped;

/// The handlers that were added to one connection, in the order of their registration.
pub(crate) struct Registry<C: Role> {
    entries: Mutex<Vec<Arc<Added<C>>>>,
    /// How many there are: most connections have none and should not pay for the lock.
    count: AtomicUsize,
    /// Places that were given out so far.
    numbers: AtomicU64,
    /// Changes when something can be found that could not before, sessions included; never earlier.
    /// Whoever keeps messages for later looks at it.
    generation: AtomicU64,
    closed: AtomicBool,
}

/// One registration.
struct Added<C: Role> {
    /// Its place among everything that was added to the connection.
    number: u64,
    /// The generation that it began. A message whose dispatch began before is none of its business: it
    /// would overtake what was kept for this handler.
    since: AtomicU64,
    interests: Vec<Interest>,
    /// Only the dispatch actor locks it, one message at a time.
    handlers: tokio::sync::Mutex<Handlers<'static, C>>,
    active: AtomicBool,
}

impl<C: Role> Default for Registry<C> {
    fn default() -> Self {
        Self {
            entries: Mutex::new(Vec::new()),
            count: AtomicUsize::new(0),
            numbers: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }
}

impl<C: Role> Registry<C> {
    /// Adds a handler behind the others. `None` when the connection is over.
    pub(crate) fn add(
        self: &Arc<Self>,
        handler: impl HandleDispatchFrom<C> + 'static,
    ) -> Option<DynamicHandlerGuard<C>> {
        let handlers = handler.into_handlers();
        let mut entries = self.entries.lock();
        if self.closed.load(Ordering::Acquire) {
            return None;
        }
        let added = Arc::new(Added {
            number: self.next_number(),
            since: AtomicU64::new(u64::MAX),
            interests: handlers.interests(),
            handlers: tokio::sync::Mutex::new(handlers),
            active: AtomicBool::new(true),
        });
        entries.push(added.clone());
        self.count.store(entries.len(), Ordering::Release);
        added.since.store(self.announce(), Ordering::Release);
        Some(DynamicHandlerGuard { registry: Arc::downgrade(self), added: Some(added) })
    }

    fn remove(&self, added: &Arc<Added<C>>) {
        added.active.store(false, Ordering::Release);
        let mut entries = self.entries.lock();
        let position = entries.iter().position(|entry| Arc::ptr_eq(entry, added));
        let removed = position.map(|position| entries.remove(position));
        self.count.store(entries.len(), Ordering::Release);
        drop(entries);
        // A handler's own drop may do anything, so it does not happen under the lock.
        drop(removed);
    }

    /// Whether there is none now.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether any of them may want the response to a request with this method.
    pub(crate) fn wants_responses(&self, method: &str, from: RemoteStyle) -> bool {
        !self.is_empty() && self.entries.lock().iter().any(|added| added.wants(Kind::Response, method, from))
    }

    /// Has those handlers look at the message that may want it, in order, up to the one with the number
    /// `before`, without those that came after the generation `seen`. Gives the message back at once
    /// when there are none.
    ///
    /// The future holds everything it needs, so it may outlive the actor that began it. A panic
    /// becomes an error of this message alone.
    pub(crate) fn offer(&self, delivery: Delivery, connection: ConnectionTo<C>, before: u64, seen: u64) -> Offered {
        if self.is_empty() {
            return Offered::Unwanted(delivery);
        }
        let (kind, method, from) = (delivery.kind(), delivery.method(), delivery.peer());
        let wants = |added: &&Arc<Added<C>>| {
            added.number < before && added.since.load(Ordering::Acquire) <= seen && added.wants(kind, method, from)
        };
        let wanting: Vec<_> = self.entries.lock().iter().filter(wants).cloned().collect();
        if wanting.is_empty() {
            return Offered::Unwanted(delivery);
        }
        let method: Arc<str> = method.into();
        let work = Scoped::new(connection.id(), method.clone(), ask(wanting, delivery, connection));
        Offered::Running(Box::pin(async move {
            AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_panic| {
                tracing::error!(method = &*method, "a dynamic handler panicked");
                Err(panicked(&method))
            })
        }))
    }
}

/// What became of an offer.
pub(crate) enum Offered {
    /// Nobody wants it.
    Unwanted(Delivery),
    /// Somebody may: the handlers run in this future.
    Running(BoxFuture<'static, Result<Handled<Delivery>>>),
}

async fn ask<C: Role>(
    wanting: Vec<Arc<Added<C>>>,
    mut delivery: Delivery,
    connection: ConnectionTo<C>,
) -> Result<Handled<Delivery>> {
    let mut again = false;
    for added in wanting {
        // A handler before it may have removed it.
        if !added.active.load(Ordering::Acquire) {
            continue;
        }
        let plan = added.plan(&delivery);
        let mut handlers = added.handlers.lock().await;
        match handlers.handle(&plan, delivery, &connection).await? {
            Handled::Yes => return Ok(Handled::Yes),
            Handled::No { message, retry } => {
                delivery = message;
                again |= retry;
            }
        }
    }
    Ok(Handled::No { message: delivery, retry: again })
}

impl<C: Role> Added<C> {
    fn wants(&self, kind: Kind, method: &str, from: RemoteStyle) -> bool {
        self.interests.iter().any(|interest| interest.covers(kind, method, from))
    }

    fn plan(&self, delivery: &Delivery) -> Vec<usize> {
        let (kind, method, from) = (delivery.kind(), delivery.method(), delivery.peer());
        let wanted = |(position, interest): (usize, &Interest)| interest.covers(kind, method, from).then_some(position);
        self.interests.iter().enumerate().filter_map(wanted).collect()
    }
}

/// A registry of any role, as the untyped part of a connection keeps it.
pub(crate) trait AnyRegistry: Any + Send + Sync {
    /// A place behind everything that was added before.
    fn next_number(&self) -> u64;

    /// What was added can be found from now on: what was kept for it is offered again. Returns the
    /// generation that begins.
    fn announce(&self) -> u64;

    /// Drops the handlers and takes no more: they may hold what keeps the connection in memory.
    fn close(&self);

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<C: Role> AnyRegistry for Registry<C> {
    fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::AcqRel) + 1
    }

    fn announce(&self) -> u64 {
        self.generation.fetch_add(1, Ordering::AcqRel) + 1
    }

    fn close(&self) {
        let entries = {
            let mut entries = self.entries.lock();
            self.closed.store(true, Ordering::Release);
            self.count.store(0, Ordering::Release);
            std::mem::take(&mut *entries)
        };
        drop(entries);
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// Keeps a handler registered that was added to a running connection
/// ([`ConnectionTo::add_dynamic_handler`]).
///
/// Dropping the guard unregisters the handler: it gets no further message. A message that it is
/// working on right then is worked on to the end. The guard does not keep the connection alive; the
/// end of the connection drops the handler, guard or not.
#[must_use = "dropping the guard unregisters the handler; keep it, or detach it"]
pub struct DynamicHandlerGuard<R: Role> {
    registry: Weak<Registry<R>>,
    /// `None` once detached.
    added: Option<Arc<Added<R>>>,
}

impl<R: Role> DynamicHandlerGuard<R> {
    /// Leaves the handler registered for the rest of the connection.
    pub fn detach(mut self) {
        self.added = None;
    }
}

impl<R: Role> Drop for DynamicHandlerGuard<R> {
    fn drop(&mut self) {
        if let Some(added) = self.added.take()
            && let Some(registry) = self.registry.upgrade()
        {
            registry.remove(&added);
        }
    }
}

impl<R: Role> fmt::Debug for DynamicHandlerGuard<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicHandlerGuard").field("detached", &self.added.is_none()).finish_non_exhaustive()
    }
}
