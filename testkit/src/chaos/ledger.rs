//! The books of one direction: what was sent, what arrived, what was settled.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use greenroom::{Error, Origin, Result};
use parking_lot::Mutex;
use serde_json::Value;

use super::ending::is_over;

/// Knows every numbered message from one side to the other. Shared by both sides.
#[derive(Debug, Default)]
pub struct Ledger {
    name: Cow<'static, str>,
    books: Mutex<Books>,
    interrupted: AtomicU64,
    ended: AtomicU64,
}

#[derive(Debug, Default)]
struct Books {
    /// One entry for each message sent: whether it wants an answer.
    sent: Vec<bool>,
    /// Numbers in the order in which their handlers began.
    arrived: Vec<u64>,
    /// How often each message was settled.
    settled: Vec<u32>,
    /// Outcomes that nobody can explain.
    wrong: Vec<String>,
}

impl Ledger {
    /// Empty books; `name` says which direction they are about.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The next message is about to be sent; returns its number.
    pub fn sending(&self, wants_answer: bool) -> u64 {
        let mut books = self.books.lock();
        books.sent.push(wants_answer);
        books.settled.push(0);
        books.sent.len() as u64 - 1
    }

    /// The handler of a message has begun.
    pub fn arrived(&self, number: u64) {
        self.books.lock().arrived.push(number);
    }

    /// Somebody who waited for the answer to this message got it. A good answer repeats the number;
    /// the only error that may come is that the handler was cut off.
    pub fn settled(&self, number: u64, outcome: &Result<Value>) {
        let mut books = self.books.lock();
        if let Some(count) = usize::try_from(number).ok().and_then(|index| books.settled.get_mut(index)) {
            *count += 1;
        }
        match outcome {
            Ok(answer) if answer["n"] == number => {}
            Ok(answer) => books.wrong.push(format!("{number} got the answer {answer}")),
            Err(error) if is_interrupted(error) => drop(self.interrupted.fetch_add(1, Ordering::Relaxed)),
            Err(error) => books.wrong.push(format!("{number} got the error {error:?}")),
        }
    }

    /// The same on a connection that may be ended meanwhile: then that is the outcome.
    pub fn settled_or_ended(&self, number: u64, outcome: &Result<Value>) {
        if !outcome.as_ref().is_err_and(is_over) {
            return self.settled(number, outcome);
        }
        self.ended.fetch_add(1, Ordering::Relaxed);
        let mut books = self.books.lock();
        if let Some(count) = usize::try_from(number).ok().and_then(|index| books.settled.get_mut(index)) {
            *count += 1;
        }
    }

    /// Something else is not as it must be.
    pub fn wrong(&self, what: impl Into<String>) {
        self.books.lock().wrong.push(what.into());
    }

    /// Requests whose handler was cut off.
    #[must_use]
    pub fn interrupted(&self) -> u64 {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Messages sent so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.books.lock().sent.len() as u64
    }

    /// Whether every message has arrived and every request has its answer.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let books = self.books.lock();
        books.arrived.len() >= books.sent.len()
            && books.sent.iter().zip(&books.settled).all(|(wants, count)| !wants || *count > 0)
    }

    /// Everything that is wrong with the books, one line each; none when nothing is.
    #[must_use]
    pub fn check(&self) -> Vec<String> {
        let ended = self.ended.load(Ordering::Relaxed);
        let mut faults = self.faults(|books| books.sent.len());
        if ended > 0 {
            faults.push(format!("{}: {ended} requests ended with their connection", self.name));
        }
        faults
    }

    /// The same for a connection that was ended in the middle: what was under way may be missing, but
    /// nothing before something that came.
    #[must_use]
    pub fn check_ended(&self) -> Vec<String> {
        self.faults(|books| books.arrived.iter().max().map_or(0, |last| usize::try_from(*last).unwrap_or(0)))
    }

    /// What is wrong, when so many messages must have come.
    fn faults(&self, must: impl Fn(&Books) -> usize) -> Vec<String> {
        let books = self.books.lock();
        let mut faults = books.wrong.clone();
        let mut times = vec![0_u32; books.sent.len()];
        for number in &books.arrived {
            if let Some(count) = usize::try_from(*number).ok().and_then(|index| times.get_mut(index)) {
                *count += 1;
            }
        }
        faults.extend(numbers("lost", times.iter().take(must(&books)).map(|count| *count == 0)));
        faults.extend(numbers("delivered more than once", times.iter().map(|count| *count > 1)));
        if let Some(pair) = books.arrived.windows(2).find(|pair| pair[0] > pair[1]) {
            faults.push(format!("{} came before {}", pair[0], pair[1]));
        }
        let counts = || books.sent.iter().zip(&books.settled);
        faults.extend(numbers("without an outcome", counts().map(|(wants, count)| *wants && *count == 0)));
        faults.extend(numbers("settled more than once", counts().map(|(_, count)| *count > 1)));
        faults.into_iter().map(|fault| format!("{}: {fault}", self.name)).collect()
    }
}

pub(super) fn is_interrupted(error: &Error) -> bool {
    // The origin is local; what came over the wire is told by its data.
    error.origin() == Origin::Interrupted || error.data.as_ref().is_some_and(|data| data["reason"] == "interrupted")
}

/// Names the numbers for which something is true, the first few of them.
fn numbers(what: &str, which: impl Iterator<Item = bool>) -> Option<String> {
    let found: Vec<usize> = which.enumerate().filter(|(_, it)| *it).map(|(number, _)| number).collect();
    if found.is_empty() {
        return None;
    }
    let mut text = format!("{} {what}:", found.len());
    for number in found.iter().take(8) {
        let _ = write!(text, " {number}");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn three() -> Ledger {
        let ledger = Ledger::new("test");
        for wants_answer in [true, false, true] {
            ledger.sending(wants_answer);
        }
        ledger
    }

    #[test]
    fn complete_books_are_in_order() {
        let ledger = three();
        (0..3).for_each(|number| ledger.arrived(number));
        assert!(!ledger.is_complete());
        ledger.settled(0, &Ok(json!({ "n": 0 })));
        ledger.settled(2, &Err(Error::internal_error().data(json!({ "reason": "interrupted" }))));
        assert!(ledger.is_complete());
        assert_eq!(ledger.check(), Vec::<String>::new());
        assert_eq!(ledger.interrupted(), 1);
    }

    #[test]
    fn a_connection_that_ends_may_lose_the_last_messages_only() {
        let ended = || Err(Error::internal_error().with_origin(Origin::Terminated));
        let ledger = three();
        (0..2).for_each(|number| ledger.arrived(number));
        ledger.settled(0, &Ok(json!({ "n": 0 })));
        ledger.settled_or_ended(2, &ended());
        assert_eq!(ledger.check_ended(), Vec::<String>::new());
        assert!(ledger.check().iter().any(|fault| fault.contains("1 requests ended")), "not where nothing ends");
        let ledger = three();
        ledger.arrived(2);
        ledger.settled_or_ended(0, &ended());
        let faults = ledger.check_ended();
        for expected in ["2 lost: 0 1", "without an outcome: 2"] {
            assert!(faults.iter().any(|fault| fault.contains(expected)), "{expected}: {faults:?}");
        }
    }

    #[test]
    fn every_fault_has_a_name() {
        let ledger = three();
        for number in [1, 0, 1] {
            ledger.arrived(number);
        }
        ledger.settled(0, &Ok(json!({ "n": 1 })));
        ledger.settled(0, &Err(Error::internal_error()));
        let faults = ledger.check();
        for expected in [
            "got the answer",
            "got the error",
            "1 lost: 2",
            "delivered more",
            "came before",
            "without an outcome: 2",
            "settled more than once: 0",
        ] {
            assert!(faults.iter().any(|fault| fault.contains(expected)), "{expected}: {faults:?}");
        }
    }
}
