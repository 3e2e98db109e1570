//! Counting input that is no JSON: the greeting of a shell, a debug print on the wrong stream.

use std::time::Duration;

use crate::malformed::ReplyLimit;

/// The noise of one connection: how much came, and how much of it was reported (spec §9, decision
/// 23).
///
/// Lines that come together are one report, which tells their number and length and nothing of what
/// they say. There are as many reports as there would be replies if the noise were JSON
/// ([`ReplyLimit`]); what exceeds that is part of a later report, at the latest of the last.
#[derive(Clone, Debug, Default)]
pub struct Noise {
    pending: NoiseReport,
    total: u64,
    limit: ReplyLimit,
}

/// Lines of noise that were not reported before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoiseReport {
    /// How many.
    pub lines: u64,
    /// Their length together, without line ends.
    pub bytes: u64,
    /// How many there have been so far, these included.
    pub total: u64,
}

impl Noise {
    /// One more line, of this length.
    pub fn add(&mut self, bytes: usize) {
        self.total += 1;
        self.pending.lines += 1;
        self.pending.bytes += bytes as u64;
    }

    /// What is to be reported at `now`, the time since any fixed moment. Costs nothing when there is
    /// nothing.
    pub fn report(&mut self, now: impl FnOnce() -> Duration) -> Option<NoiseReport> {
        let due = self.pending.lines > 0 && self.limit.allow(now());
        if due { self.last_report() } else { None }
    }

    /// What has not been reported when the input ends.
    pub fn last_report(&mut self) -> Option<NoiseReport> {
        let pending = std::mem::take(&mut self.pending);
        (pending.lines > 0).then_some(NoiseReport { total: self.total, ..pending })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MALFORMED_REPLIES_PER_MINUTE;

    #[test]
    fn what_comes_together_is_reported_once() {
        let mut noise = Noise::default();
        assert_eq!(noise.report(|| unreachable!("nothing is due")), None);
        noise.add(3);
        noise.add(4);
        assert_eq!(noise.report(|| Duration::ZERO), Some(NoiseReport { lines: 2, bytes: 7, total: 2 }));
        assert_eq!(noise.last_report(), None);
        noise.add(1);
        assert_eq!(noise.last_report(), Some(NoiseReport { lines: 1, bytes: 1, total: 3 }));
    }

    #[test]
    fn a_flood_is_counted_and_not_reported_line_by_line() {
        let mut noise = Noise::default();
        let mut reported = 0;
        let mut reports = 0;
        for second in 0..600 {
            for _ in 0..10 {
                noise.add(1);
                if let Some(report) = noise.report(|| Duration::from_secs(second)) {
                    reported += report.lines;
                    reports += 1;
                }
            }
        }
        assert_eq!(reports, 10 * MALFORMED_REPLIES_PER_MINUTE);
        reported += noise.last_report().map_or(0, |report| report.lines);
        assert_eq!(reported, 6_000);
    }
}
