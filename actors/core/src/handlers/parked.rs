//! Messages that wait for a handler which is not there yet.

use std::collections::VecDeque;

use super::delivery::Delivery;

/// How many messages may wait (spec §1.A A5).
const MESSAGES: usize = 1024;

/// How many bytes they may hold together. They hold no credit: that would stop the connection.
const BYTES: usize = 16 * 1024 * 1024;

/// Messages in the order of their arrival; the oldest make room for new ones.
#[derive(Default)]
pub(crate) struct Parked {
    messages: VecDeque<(Delivery, usize)>,
    bytes: usize,
}

impl Parked {
    /// Keeps a message, and gives back what had to go for it.
    #[must_use]
    pub(crate) fn push(&mut self, mut delivery: Delivery) -> Vec<Delivery> {
        delivery.release_credit();
        delivery.detach();
        let size = delivery.size();
        self.bytes += size;
        self.messages.push_back((delivery, size));
        let mut evicted = Vec::new();
        while self.messages.len() > MESSAGES || (self.bytes > BYTES && self.messages.len() > 1) {
            evicted.extend(self.pop());
        }
        evicted
    }

    /// The oldest message.
    pub(crate) fn pop(&mut self) -> Option<Delivery> {
        let (delivery, size) = self.messages.pop_front()?;
        self.bytes -= size;
        Some(delivery)
    }

    /// Puts messages before these that came before them. No more than were here once: nothing has to
    /// go for them.
    pub(crate) fn put_before(&mut self, older: Self) {
        self.bytes += older.bytes;
        let newer = std::mem::replace(&mut self.messages, older.messages);
        self.messages.extend(newer);
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::delivery::rebuilt;
    use super::*;

    fn note(number: usize, padding: usize) -> Delivery {
        let params = format!(r#"{{"number":{number},"padding":"{}"}}"#, "x".repeat(padding));
        Delivery::Notification(rebuilt("note", params.as_bytes()).expect("a notification"))
    }

    fn number(delivery: &Delivery) -> u64 {
        let Delivery::Notification(call) = delivery else { panic!("a notification") };
        serde_json::from_str::<serde_json::Value>(call.params_text()).expect("JSON")["number"]
            .as_u64()
            .expect("a number")
    }

    #[test]
    fn the_oldest_go_first_when_there_are_too_many() {
        let mut parked = Parked::default();
        for next in 0..MESSAGES {
            assert!(parked.push(note(next, 0)).is_empty());
        }
        let evicted = parked.push(note(MESSAGES, 0));
        assert_eq!(evicted.iter().map(number).collect::<Vec<_>>(), [0]);
        assert_eq!(parked.pop().as_ref().map(number), Some(1));
    }

    #[test]
    fn what_is_kept_has_memory_of_its_own() {
        let (mut parked, note) = (Parked::default(), note(0, 10));
        let Delivery::Notification(call) = &note else { panic!("a notification") };
        let neighbour = call.frame.text().clone();
        assert!(parked.push(note).is_empty());
        assert!(neighbour.is_unique());
    }

    #[test]
    fn what_is_put_before_comes_first() {
        let (mut parked, mut older) = (Parked::default(), Parked::default());
        assert!(older.push(note(0, 10)).is_empty() && older.push(note(1, 0)).is_empty());
        assert!(parked.push(note(2, 0)).is_empty());
        parked.put_before(older);
        for expected in 0..3 {
            assert_eq!(parked.pop().as_ref().map(number), Some(expected));
        }
        assert!(parked.is_empty() && parked.bytes == 0);
    }

    #[test]
    fn the_oldest_go_first_when_they_are_too_large() {
        let mut parked = Parked::default();
        assert!(parked.push(note(0, BYTES / 2)).is_empty());
        assert_eq!(parked.push(note(1, BYTES / 2)).len(), 1);
        // One message may be larger than everything: it is there until the next comes.
        assert_eq!(parked.push(note(2, 2 * BYTES)).len(), 1);
        assert_eq!(parked.pop().as_ref().map(number), Some(2));
        assert!(parked.is_empty() && parked.bytes == 0);
    }
}
