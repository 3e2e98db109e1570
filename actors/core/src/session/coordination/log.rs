//! What a shared session's agent said: an append-only log.

use std::fmt;
use std::sync::Arc;

use greenroom_protocol::schema::v2::SessionUpdate;
use greenroom_protocol::{Error, Origin, Result};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Every update of one session in wire order, from the first of its replay on: raw, nothing merged and
/// nothing left out. Clones show the same log.
///
/// It says nothing about prompts: an update of version 2 names none, and the next one that says idle
/// need not be the end of a particular prompt.
#[derive(Clone)]
pub struct SessionLog {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Notify,
    cap: usize,
}

#[derive(Default)]
struct State {
    updates: Vec<SessionUpdate>,
    bytes: usize,
    ended: Option<Error>,
}

impl SessionLog {
    /// An empty log of at most `cap` bytes.
    pub(super) fn new(cap: usize) -> Self {
        Self { shared: Arc::new(Shared { state: Mutex::default(), changed: Notify::new(), cap }) }
    }

    /// Adds an update of `size` bytes.
    ///
    /// # Errors
    /// When it does not fit: then the log has ended, and its readers are told behind what is in it.
    pub(super) fn append(&self, update: SessionUpdate, size: usize) -> Result<()> {
        let result = {
            let mut state = self.shared.state.lock();
            match &state.ended {
                Some(ended) => Err(ended.clone()),
                None if state.bytes + size > self.shared.cap => {
                    let error = Error::internal_error().with_origin(Origin::Overflow).data(serde_json::json!({
                        "reason": "session overflow: its log is larger than it may be",
                        "limit": self.shared.cap,
                    }));
                    state.ended = Some(error.clone());
                    Err(error)
                }
                None => {
                    state.bytes += size;
                    state.updates.push(update);
                    Ok(())
                }
            }
        };
        self.shared.changed.notify_waiters();
        result
    }

    /// Nothing more comes, for this reason. The first one stays.
    pub(super) fn end(&self, error: &Error) {
        self.shared.state.lock().ended.get_or_insert_with(|| error.clone());
        self.shared.changed.notify_waiters();
    }

    /// How many updates there are so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.state.lock().updates.len()
    }

    /// Whether there is none so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Update number `index`, counted from 0, if it is there.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<SessionUpdate> {
        self.shared.state.lock().updates.get(index).cloned()
    }

    /// All updates so far.
    #[must_use]
    pub fn updates(&self) -> Vec<SessionUpdate> {
        self.shared.state.lock().updates.clone()
    }

    /// Waits until update number `index` is there. Cancel-safe.
    ///
    /// # Errors
    /// Why it will never come: the connection or the coordination ended, or the log overflowed.
    pub async fn wait_for(&self, index: usize) -> Result<SessionUpdate> {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            {
                let state = self.shared.state.lock();
                match (state.updates.get(index), &state.ended) {
                    (Some(update), _) => return Ok(update.clone()),
                    (None, Some(ended)) => return Err(ended.clone()),
                    (None, None) => {}
                }
            }
            changed.await;
        }
    }
}

impl fmt::Debug for SessionLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionLog").field("updates", &self.len()).finish_non_exhaustive()
    }
}
