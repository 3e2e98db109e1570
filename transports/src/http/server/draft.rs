//! The next chunk of an SSE stream while it is being filled. Pure.

use bytes::BytesMut;
use greenroom_actors::runtime::Permit;

use super::answer::Chunk;
use super::sse;

/// What the next chunk consists of so far.
#[derive(Default)]
pub(super) struct Draft {
    bytes: BytesMut,
    permits: Vec<Permit>,
    /// Whether it holds events, and not only comments.
    has_events: bool,
    /// Why nothing comes after this; written behind everything else.
    end: Option<&'static str>,
}

impl Draft {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.end.is_none()
    }

    /// Nothing comes after this. What a new client is sent instead of what the draft holds ends so
    /// too.
    pub(super) fn end(&mut self, reason: &'static str) {
        self.end = Some(reason);
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds an event by the function that writes it.
    pub(super) fn event(&mut self, permits: &mut Vec<Permit>, write: impl FnOnce(&mut BytesMut)) {
        write(&mut self.bytes);
        self.permits.append(permits);
        self.has_events = true;
    }

    /// Adds a comment, or what else no id belongs to.
    pub(super) fn comment(&mut self, write: impl FnOnce(&mut BytesMut)) {
        write(&mut self.bytes);
    }

    /// Puts first where a new client begins. Events that were filled for a socket that left say so
    /// themselves; and the id of the last of them would be wrong in front of the first.
    pub(super) fn begin(&mut self, beginning: &[u8]) {
        if self.has_events {
            return;
        }
        let rest = self.bytes.split();
        self.bytes.extend_from_slice(beginning);
        self.bytes.extend_from_slice(&rest);
    }

    /// These events instead, which were sent before; their credit was given back then. The credit
    /// of what they replace is given back with the next chunk: all of it was written and kept.
    pub(super) fn again(&mut self, events: &[u8]) {
        self.bytes = BytesMut::from(events);
        self.has_events = !events.is_empty();
    }

    /// The chunk, complete.
    pub(super) fn take(&mut self) -> Chunk {
        self.has_events = false;
        if let Some(reason) = self.end.take() {
            sse::comment(reason, &mut self.bytes);
        }
        Chunk { bytes: self.bytes.split().freeze(), permits: std::mem::take(&mut self.permits) }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// The bytes of the next chunk.
    fn text(draft: &mut Draft) -> Bytes {
        draft.take().bytes
    }

    fn comment(text: &[u8]) -> Draft {
        let mut draft = Draft::default();
        draft.comment(|out| out.extend_from_slice(text));
        draft
    }

    fn event(draft: &mut Draft, text: &[u8]) {
        draft.event(&mut Vec::new(), |out| out.extend_from_slice(text));
    }

    #[test]
    fn a_new_client_begins_with_an_id_although_a_comment_was_left_behind() {
        let mut draft = comment(b":\n\n");
        draft.begin(b"id: t-4\n\n");
        event(&mut draft, b"id: t-5\ndata: x\n\n");
        assert_eq!(text(&mut draft), "id: t-4\n\n:\n\nid: t-5\ndata: x\n\n");
        draft.begin(b"id: t-5\n\n");
        assert_eq!(text(&mut draft), "id: t-5\n\n", "nothing is left of the chunk before");
    }

    #[test]
    fn the_end_is_told_to_whoever_comes_last() {
        let mut draft = Draft::default();
        event(&mut draft, b"id: t-5\ndata: x\n\n");
        draft.end("over");
        // The client went, and comes again with the last event.
        draft.again(b"");
        assert!(!draft.is_empty());
        draft.again(b"id: t-5\ndata: x\n\n");
        assert_eq!(text(&mut draft), "id: t-5\ndata: x\n\n: over\n\n");
        assert!(draft.is_empty());
    }

    #[test]
    fn events_that_were_left_behind_are_their_own_beginning() {
        let mut draft = Draft::default();
        event(&mut draft, b"id: t-5\ndata: x\n\n");
        draft.begin(b"id: t-5\n\n");
        assert_eq!(text(&mut draft), "id: t-5\ndata: x\n\n");
        draft.again(b"id: t-5\ndata: x\n\n");
        draft.begin(b"id: t-5\n\n");
        assert_eq!(text(&mut draft), "id: t-5\ndata: x\n\n", "nor those that were sent again");
        draft.again(b"");
        draft.begin(b"id: t-5\n\n");
        assert_eq!(text(&mut draft), "id: t-5\n\n");
    }
}
