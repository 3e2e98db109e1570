//! The inbound requests of one connection that have no answer yet.

use std::collections::HashMap;
use std::sync::Arc;

use greenroom_protocol::RequestId;

use super::call::CallState;

/// Requests by the id that their sender gave them.
///
/// A peer may use an id again before it has the answer. Then the id means the newer request, and the
/// older one is still owed its answer.
#[derive(Default)]
pub(crate) struct OpenCalls {
    by_id: HashMap<RequestId, Arc<CallState>>,
    /// Those whose id was used again, by their address.
    shadowed: HashMap<usize, Arc<CallState>>,
}

impl OpenCalls {
    pub(crate) fn insert(&mut self, call: &Arc<CallState>) {
        if let Some(older) = self.by_id.insert(call.id().clone(), call.clone()) {
            self.shadowed.insert(address(&older), older);
        }
    }

    /// Forgets this very request.
    pub(crate) fn remove(&mut self, call: &Arc<CallState>) {
        if self.by_id.get(call.id()).is_some_and(|known| Arc::ptr_eq(known, call)) {
            self.by_id.remove(call.id());
        } else if !self.shadowed.is_empty() {
            self.shadowed.remove(&address(call));
        }
    }

    /// The request that an id means.
    pub(crate) fn find(&self, id: &RequestId) -> Option<Arc<CallState>> {
        self.by_id.get(id).cloned()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<CallState>> {
        self.by_id.values().chain(self.shadowed.values())
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len() + self.shadowed.len()
    }
}

fn address(call: &Arc<CallState>) -> usize {
    Arc::as_ptr(call).addr()
}
