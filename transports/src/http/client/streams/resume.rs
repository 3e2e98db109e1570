//! Which event streams can go on behind their last event, and how often that was tried. Pure.

use std::collections::HashMap;

use reqwest::StatusCode;
use reqwest::header::HeaderValue;
use tokio::time::Duration;

use super::super::failure::Failure;
use super::message::Scope;

/// The pause before the first attempt; each further one waits twice as long.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Longest id that is sent back, in bytes: servers limit their headers.
const LONGEST_ID: usize = 1024;

/// Where each stream can go on.
pub(super) struct Resumption {
    attempts: u32,
    points: HashMap<Scope, Point>,
    /// Numbers the attempts, so that one that was overtaken is recognised.
    tries: u64,
}

struct Point {
    last: HeaderValue,
    /// Attempts since that event.
    tried: u32,
    /// The attempt under way.
    current: Option<u64>,
}

/// How to go on with a stream.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) number: u64,
    /// The last event that came.
    pub(super) behind: HeaderValue,
    pub(super) pause: Duration,
}

impl Resumption {
    /// Tries this often in a row; with 0 never.
    pub(super) fn new(attempts: u32) -> Self {
        Self { attempts, points: HashMap::new(), tries: 0 }
    }

    /// An event with this id came.
    pub(super) fn heard(&mut self, scope: &Scope, id: &str) {
        if self.attempts == 0 {
            return;
        }
        // An empty id says that there is no place to go on from any more.
        if id.is_empty() {
            return self.forget(scope);
        }
        // One that cannot be sent back is as good as none: the one before it still holds.
        if id.len() > LONGEST_ID {
            return;
        }
        if let Ok(last) = HeaderValue::from_str(id) {
            self.points.insert(scope.clone(), Point { last, tried: 0, current: None });
        }
    }

    /// The stream is not wanted any more.
    pub(super) fn forget(&mut self, scope: &Scope) {
        self.points.remove(scope);
    }

    /// Whether this attempt came to its end and is still wanted.
    pub(super) fn arrived(&mut self, scope: &Scope, number: u64) -> bool {
        self.points.get_mut(scope).is_some_and(|point| point.current.take_if(|current| *current == number).is_some())
    }

    /// How to go on after this failure. `None` when there is no way, or no use.
    pub(super) fn next(&mut self, scope: &Scope, failure: &Failure) -> Option<Attempt> {
        if !is_passing(failure) {
            return None;
        }
        let point = self.points.get_mut(scope).filter(|point| point.tried < self.attempts)?;
        let pause = PAUSE.saturating_mul(1 << point.tried.min(16)).min(LONGEST_PAUSE);
        point.tried += 1;
        self.tries += 1;
        point.current = Some(self.tries);
        Some(Attempt { number: self.tries, behind: point.last.clone(), pause })
    }
}

/// Whether the same may work another time: the network failed, or a server that is busy.
fn is_passing(failure: &Failure) -> bool {
    match failure {
        Failure::StreamEnded | Failure::StreamBroken(_) | Failure::Request(..) | Failure::Deadline(..) => true,
        Failure::Status(_, status) => {
            matches!(*status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::failure::Action;
    use super::*;

    #[test]
    fn attempts_are_counted_in_a_row_and_each_waits_longer() {
        let mut resumption = Resumption::new(3);
        let scope = Scope::Connection;
        assert!(resumption.next(&scope, &Failure::StreamEnded).is_none(), "no event had an id");
        resumption.heard(&scope, "a-1");
        let pauses = std::iter::from_fn(|| resumption.next(&scope, &Failure::StreamEnded));
        let pauses: Vec<_> = pauses.map(|attempt| attempt.pause.as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400]);
        resumption.heard(&scope, "a-2");
        resumption.heard(&scope, &"x".repeat(LONGEST_ID + 1));
        resumption.heard(&scope, "no\r\nheader");
        let attempt = resumption.next(&scope, &Failure::StreamEnded).expect("a new row");
        assert_eq!((attempt.behind.as_bytes(), attempt.pause), (&b"a-2"[..], PAUSE));
        resumption.heard(&scope, "");
        assert!(resumption.next(&scope, &Failure::StreamEnded).is_none(), "the place is taken back");
    }

    #[test]
    fn what_the_server_refuses_for_good_is_not_asked_for_again() {
        let mut resumption = Resumption::new(9);
        resumption.heard(&Scope::Connection, "a-1");
        for (status, passing) in [(410, false), (404, false), (401, false), (500, false), (502, true), (503, true)] {
            let status = StatusCode::from_u16(status).expect("a status");
            let failure = Failure::Status(Action::OpenConnectionStream, status);
            assert_eq!(resumption.next(&Scope::Connection, &failure).is_some(), passing, "{status}");
        }
        assert!(resumption.next(&Scope::Connection, &Failure::BadEvent).is_none());
        assert!(resumption.next(&Scope::Connection, &Failure::TooLong(1)).is_none());
    }

    #[test]
    fn an_attempt_that_was_overtaken_is_none() {
        let mut resumption = Resumption::new(9);
        let scope = Scope::Connection;
        resumption.heard(&scope, "a-1");
        let first = resumption.next(&scope, &Failure::StreamEnded).expect("an attempt");
        resumption.forget(&scope);
        assert!(!resumption.arrived(&scope, first.number), "not wanted any more");
        resumption.heard(&scope, "b-1");
        let second = resumption.next(&scope, &Failure::StreamEnded).expect("an attempt");
        assert!(!resumption.arrived(&scope, first.number), "of another stream");
        assert!(resumption.arrived(&scope, second.number));
        assert!(!resumption.arrived(&scope, second.number), "once");
    }

    #[test]
    fn nothing_is_resumed_by_default() {
        let mut resumption = Resumption::new(0);
        resumption.heard(&Scope::Connection, "a-1");
        assert!(resumption.next(&Scope::Connection, &Failure::StreamEnded).is_none());
    }
}
