//! The ACP connections of one server, by id.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::answer::Refusal;
use super::connection::Connection;

/// Which connections there are.
#[derive(Default)]
pub(super) struct Registry {
    connections: Mutex<HashMap<Box<str>, Arc<Connection>>>,
    /// No connection is opened any more.
    closing: AtomicBool,
    /// A connection was removed.
    removed: Notify,
}

impl Registry {
    /// Adds a connection.
    pub(super) fn insert(&self, connection: &Arc<Connection>) -> Result<(), Refusal> {
        let mut connections = self.connections.lock();
        if self.closing.load(Ordering::Acquire) {
            return Err(Refusal::text(503, "the server shuts down"));
        }
        if connections.len() >= connection.options.limits.connections {
            return Err(Refusal::text(503, "too many connections"));
        }
        connections.insert(connection.id.clone(), connection.clone());
        Ok(())
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Connection>> {
        self.connections.lock().get(id).cloned()
    }

    /// Removes a connection; from then on its id is unknown.
    pub(super) fn remove(&self, id: &str) -> Option<Arc<Connection>> {
        let removed = self.connections.lock().remove(id);
        self.removed.notify_waiters();
        removed
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.connections.lock().len()
    }

    /// Opens no more connections, and asks all of them to end.
    pub(super) fn finish(&self) {
        let all: Vec<_> = {
            let connections = self.connections.lock();
            self.closing.store(true, Ordering::Release);
            connections.values().cloned().collect()
        };
        for connection in all {
            connection.finish();
        }
    }

    /// Waits until there is none. Cancel-safe.
    pub(super) async fn none(&self) {
        loop {
            let mut removed = std::pin::pin!(self.removed.notified());
            removed.as_mut().enable();
            if self.len() == 0 {
                return;
            }
            removed.await;
        }
    }
}
