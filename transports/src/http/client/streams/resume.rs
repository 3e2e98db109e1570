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

/// Where each stream can go on.
pub(super) struct Resumption {
    attempts: u32,
    points: HashMap<Scope, Point>,
}

struct Point {
    last: HeaderValue,
    /// Attempts since that event.
    tried: u32,
}

impl Resumption {
    /// Tries this often in a row; with 0 never.
    pub(super) fn new(attempts: u32) -> Self {
        Self { attempts, points: HashMap::new() }
    }

    /// An event with this id came.
    pub(super) fn heard(&mut self, scope: &Scope, id: &str) {
        if self.attempts == 0 {
            return;
        }
        // An empty id says that there is no place to go on from any more; so does one that no
        // header can carry.
        match HeaderValue::from_str(id).ok().filter(|id| !id.is_empty()) {
            Some(last) => drop(self.points.insert(scope.clone(), Point { last, tried: 0 })),
            None => drop(self.points.remove(scope)),
        }
    }

    /// The stream is not wanted any more.
    pub(super) fn forget(&mut self, scope: &Scope) {
        self.points.remove(scope);
    }

    /// How to go on after this failure: behind which event, and after which pause. `None` when there
    /// is no way, or no use.
    pub(super) fn next(&mut self, scope: &Scope, failure: &Failure) -> Option<(HeaderValue, Duration)> {
        if !is_passing(failure) {
            return None;
        }
        let point = self.points.get_mut(scope).filter(|point| point.tried < self.attempts)?;
        let pause = PAUSE.saturating_mul(1 << point.tried.min(16)).min(LONGEST_PAUSE);
        point.tried += 1;
        Some((point.last.clone(), pause))
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
        let pauses: Vec<_> = pauses.map(|(_, pause)| pause.as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400]);
        resumption.heard(&scope, "a-2");
        let (last, pause) = resumption.next(&scope, &Failure::StreamEnded).expect("a new row");
        assert_eq!((last.as_bytes(), pause), (&b"a-2"[..], PAUSE));
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
    fn nothing_is_resumed_by_default() {
        let mut resumption = Resumption::new(0);
        resumption.heard(&Scope::Connection, "a-1");
        assert!(resumption.next(&Scope::Connection, &Failure::StreamEnded).is_none());
    }
}
