//! Restart intensity and back-off, as a pure decision.

use std::collections::VecDeque;
use std::time::Duration;

/// How often an actor may die before its supervisor gives up on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartPolicy {
    /// Deaths that are forgiven within [`window`](Self::window); one more ends it. 0 forgives none.
    pub deaths: usize,
    /// The span of time in which deaths count.
    pub window: Duration,
}

impl Default for RestartPolicy {
    /// 5 deaths in 1 s: a bug that repeats itself fails within milliseconds, an accident now and
    /// then is forgiven for ever.
    fn default() -> Self {
        Self { deaths: 5, window: Duration::from_secs(1) }
    }
}

/// Waits before the first, second, … restart within the window. The first two cost nothing: most
/// deaths are single accidents.
const BACK_OFF: [Duration; 5] =
    [Duration::ZERO, Duration::ZERO, Duration::from_millis(1), Duration::from_millis(5), Duration::from_millis(20)];

/// What to do about a death. A pure decision: the caller waits and starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Start it again after this time.
    Restart(Duration),
    /// The budget is spent.
    GiveUp,
}

/// The recent deaths of one actor.
#[derive(Clone, Debug, Default)]
pub struct RestartBudget {
    policy: RestartPolicy,
    deaths: VecDeque<Duration>,
}

impl RestartBudget {
    /// A budget without deaths yet.
    #[must_use]
    pub fn new(policy: RestartPolicy) -> Self {
        Self { policy, deaths: VecDeque::new() }
    }

    /// Counts a death at `now` (time since any fixed moment).
    pub fn death(&mut self, now: Duration) -> Verdict {
        while self.deaths.front().is_some_and(|at| now.saturating_sub(*at) > self.policy.window) {
            self.deaths.pop_front();
        }
        self.deaths.push_back(now);
        if self.deaths.len() > self.policy.deaths {
            return Verdict::GiveUp;
        }
        let step = (self.deaths.len() - 1).min(BACK_OFF.len() - 1);
        Verdict::Restart(BACK_OFF[step])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    #[test]
    fn a_burst_backs_off_and_then_gives_up() {
        let mut budget = RestartBudget::new(RestartPolicy::default());
        let verdicts: Vec<_> = (0..6).map(|at| budget.death(ms(at))).collect();
        let restart = |time| Verdict::Restart(ms(time));
        assert_eq!(verdicts, [restart(0), restart(0), restart(1), restart(5), restart(20), Verdict::GiveUp]);
    }

    #[test]
    fn old_deaths_are_forgiven() {
        let mut budget = RestartBudget::new(RestartPolicy::default());
        for at in 0..100 {
            assert_eq!(budget.death(ms(at * 600)), Verdict::Restart(ms(0)), "death {at}");
        }
    }
}
