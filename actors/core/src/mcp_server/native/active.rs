//! Which operations of one registration are active: a state machine.

use std::collections::HashSet;
use std::sync::Arc;

/// How many operations of one server may be active. Each is a task; a peer must not make any number
/// of them.
pub(super) const MAX_ACTIVE: usize = 1024;

/// Why an operation is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Another operation with this id is not cleaned up yet.
    Duplicate,
    /// Nothing is admitted any more.
    Sealed,
    /// There are too many.
    Full,
}

/// The logical ids that are reserved.
#[derive(Default)]
pub(super) struct Active {
    ids: HashSet<Arc<str>>,
    sealed: bool,
}

impl Active {
    /// Reserves an id until [`end`](Self::end).
    pub(super) fn admit(&mut self, id: &Arc<str>) -> Result<(), Refused> {
        if self.sealed {
            return Err(Refused::Sealed);
        }
        if self.ids.contains(id) {
            return Err(Refused::Duplicate);
        }
        if self.ids.len() >= MAX_ACTIVE {
            return Err(Refused::Full);
        }
        self.ids.insert(id.clone());
        Ok(())
    }

    /// The operation is over, cleanup included.
    pub(super) fn end(&mut self, id: &str) {
        self.ids.remove(id);
    }

    /// Admits nothing from now on.
    pub(super) fn seal(&mut self) {
        self.sealed = true;
    }

    /// Whether nothing is active and nothing will be.
    pub(super) fn is_done(&self) -> bool {
        self.sealed && self.ids.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Arc<str> {
        text.into()
    }

    #[test]
    fn an_id_is_reserved_until_its_operation_is_over() {
        let mut active = Active::default();
        assert_eq!(active.admit(&id("a")), Ok(()));
        assert_eq!(active.admit(&id("a")), Err(Refused::Duplicate));
        assert_eq!(active.admit(&id("A")), Ok(()), "ids are compared exactly");
        active.end("a");
        assert_eq!(active.admit(&id("a")), Ok(()));
        active.end("unknown");
        assert_eq!(active.admit(&id("A")), Err(Refused::Duplicate));
    }

    #[test]
    fn a_sealed_registration_is_done_with_its_last_operation() {
        let mut active = Active::default();
        assert_eq!(active.admit(&id("a")), Ok(()));
        active.seal();
        assert_eq!(active.admit(&id("b")), Err(Refused::Sealed));
        assert_eq!(active.admit(&id("a")), Err(Refused::Sealed));
        assert!(!active.is_done());
        active.end("a");
        assert!(active.is_done());
        assert!(!Active::default().is_done(), "an open one waits for operations");
    }

    #[test]
    fn there_is_a_limit() {
        let mut active = Active::default();
        for number in 0..MAX_ACTIVE {
            assert_eq!(active.admit(&id(&number.to_string())), Ok(()));
        }
        assert_eq!(active.admit(&id("more")), Err(Refused::Full));
        active.end("0");
        assert_eq!(active.admit(&id("more")), Ok(()));
    }
}
