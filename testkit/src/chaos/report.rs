//! What was done to whom.

use std::collections::BTreeMap;
use std::fmt;

use super::monkey::FaultKind;

/// Counts of attacks and restarts. Reports of several runs add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Runs that this report covers.
    pub runs: u64,
    /// Messages that were sent, each way.
    pub messages: u64,
    /// Requests whose handler was cut off: their callers got an error that says so.
    pub interrupted: u64,
    /// Sessions whose coordinators were broken until they failed, and nothing else with them.
    pub failed_sessions: u64,
    /// Sockets that were cut while their connection went on.
    pub cuts: u64,
    attacks: BTreeMap<&'static str, BTreeMap<FaultKind, u64>>,
    restarts: BTreeMap<&'static str, u64>,
    endings: BTreeMap<String, u64>,
}

impl Report {
    /// Counts an attack on an actor of this kind.
    pub fn attacked(&mut self, actor: &'static str, fault: FaultKind) {
        *self.attacks.entry(actor).or_default().entry(fault).or_default() += 1;
    }

    /// Counts restarts of an actor of this kind.
    pub fn restarted(&mut self, actor: &'static str, times: u64) {
        *self.restarts.entry(actor).or_default() += times;
    }

    /// Counts a way in which a run ended.
    pub fn ended(&mut self, ending: impl Into<String>) {
        *self.endings.entry(ending.into()).or_default() += 1;
    }

    /// How often actors of this kind were attacked in this way.
    #[must_use]
    pub fn attacks(&self, actor: &str, fault: FaultKind) -> u64 {
        self.attacks.get(actor).and_then(|faults| faults.get(&fault)).copied().unwrap_or(0)
    }

    /// All attacks.
    #[must_use]
    pub fn total_attacks(&self) -> u64 {
        self.attacks.values().flat_map(BTreeMap::values).sum()
    }

    /// How often actors of this kind were started again.
    #[must_use]
    pub fn restarts(&self, actor: &str) -> u64 {
        self.restarts.get(actor).copied().unwrap_or(0)
    }

    /// Adds another report to this one.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.messages += other.messages;
        self.interrupted += other.interrupted;
        self.failed_sessions += other.failed_sessions;
        self.cuts += other.cuts;
        for (actor, faults) in &other.attacks {
            for (fault, count) in faults {
                *self.attacks.entry(actor).or_default().entry(*fault).or_default() += count;
            }
        }
        for (actor, count) in &other.restarts {
            self.restarted(actor, *count);
        }
        for (ending, count) in &other.endings {
            *self.endings.entry(ending.clone()).or_default() += count;
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} runs, {} messages, {} attacks, {} handlers interrupted, {} sessions failed on purpose, {} streams cut",
            self.runs,
            self.messages,
            self.total_attacks(),
            self.interrupted,
            self.failed_sessions,
            self.cuts
        )?;
        write!(f, "{:<15}", "actor")?;
        for fault in FaultKind::ALL {
            write!(f, "{:>13}", fault.name())?;
        }
        writeln!(f, "{:>10}", "restarts")?;
        for actor in self.attacks.keys() {
            write!(f, "{actor:<15}")?;
            for fault in FaultKind::ALL {
                write!(f, "{:>13}", self.attacks(actor, fault))?;
            }
            writeln!(f, "{:>10}", self.restarts(actor))?;
        }
        for (ending, count) in &self.endings {
            writeln!(f, "ended by {ending}: {count}")?;
        }
        Ok(())
    }
}
