//! The events of one stream that a client can ask for again, within a bound. Pure.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use super::sse;

/// Numbers the events of a stream and keeps the last of them.
///
/// An id names its stream by a random tag, so that no id of another stream, session or connection
/// is ever taken for one of this.
pub(super) struct Replay {
    tag: String,
    /// The number of the next event.
    next: u64,
    kept: VecDeque<Bytes>,
    bytes: usize,
    limit: usize,
}

impl Replay {
    /// Keeps up to `limit` bytes of events.
    pub(super) fn new(limit: usize) -> Self {
        let tag = uuid::Uuid::new_v4().simple().to_string();
        Self { tag, next: 1, kept: VecDeque::new(), bytes: 0, limit }
    }

    /// Writes the next event, and keeps it.
    pub(super) fn event(&mut self, text: &[u8], out: &mut BytesMut) {
        let id = format!("{}-{}", self.tag, self.next);
        self.next += 1;
        let mut written = BytesMut::new();
        sse::event(Some(&id), text, &mut written);
        out.extend_from_slice(&written);
        self.bytes += written.len();
        self.kept.push_back(written.freeze());
        while self.bytes > self.limit {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }

    /// An event without a message: its id is that of the last event that was written.
    pub(super) fn beginning(&self) -> Bytes {
        format!("id: {}-{}\n\n", self.tag, self.next - 1).into()
    }

    /// The events after the one with this id. `None` when the id is not of this stream, or when
    /// some of those events are not kept any more.
    pub(super) fn after(&self, id: &str) -> Option<Bytes> {
        let (tag, number) = id.rsplit_once('-')?;
        let number: u64 = number.parse().ok().filter(|_| tag == self.tag)?;
        let wanted = self.next.checked_sub(number.checked_add(1)?)?;
        let skipped = self.kept.len().checked_sub(usize::try_from(wanted).ok()?)?;
        let mut all = BytesMut::new();
        for event in self.kept.iter().skip(skipped) {
            all.extend_from_slice(event);
        }
        Some(all.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &[u8]) -> Vec<String> {
        let text = std::str::from_utf8(text).expect("utf-8");
        text.lines().filter_map(|line| line.strip_prefix("id: ")).map(str::to_owned).collect()
    }

    #[test]
    fn what_is_kept_is_sent_again_and_what_is_not_is_no_silent_gap() {
        let mut replay = Replay::new(200);
        let mut out = BytesMut::new();
        for _ in 0..4 {
            replay.event(b"{}", &mut out);
        }
        let ids_sent = ids(&out);
        assert_eq!(ids_sent.len(), 4);
        assert_eq!(replay.kept.len(), 4, "each event is about 45 bytes");
        replay.event(b"{}", &mut out);
        let ids_sent = ids(&out);
        assert_eq!(ids(&replay.after(&ids_sent[1]).expect("kept")), ids_sent[2..]);
        assert!(ids(&replay.after(&ids_sent[4]).expect("nothing missed")).is_empty());
        assert_eq!(replay.after(&ids_sent[0]).is_some(), replay.kept.len() == 4, "event 2 is needed");
        for _ in 0..10 {
            replay.event(b"{}", &mut out);
        }
        assert_eq!(replay.after(&ids_sent[1]), None, "the next event is gone");
    }

    #[test]
    fn ids_of_other_streams_are_refused() {
        let mut replay = Replay::new(1000);
        let mut out = BytesMut::new();
        Replay::new(1000).event(b"{}", &mut out);
        let foreign = ids(&out).remove(0);
        replay.event(b"{}", &mut out);
        let future = format!("{}-{}", replay.tag, 99);
        let huge = format!("{}-{}", replay.tag, u64::MAX);
        for id in ["", "1", "-", "x-1", foreign.as_str(), future.as_str(), huge.as_str()] {
            assert_eq!(replay.after(id), None, "{id}");
        }
    }
}
