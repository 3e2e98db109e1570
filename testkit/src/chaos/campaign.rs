//! Many runs, one after the other.

use std::fmt;

use tokio::runtime::{Builder, Runtime};

use super::http::HttpSoak;
use super::report::Report;
use super::soak::{Fault, Protocol, Soak};

/// The kind of runtime that the runs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Everything on one thread.
    CurrentThread,
    /// Two worker threads.
    TwoThreads,
}

/// A number of runs, with seeds that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The seed of the first run.
    pub first_seed: u64,
    /// How many runs.
    pub runs: u64,
    /// Messages of each run.
    pub messages: usize,
    /// The version of the protocol that the runs speak.
    pub protocol: Protocol,
}

impl Campaign {
    /// The campaign that the environment asks for, with these numbers where it asks for nothing:
    /// `GREENROOM_CHAOS_SEED`, `GREENROOM_CHAOS_RUNS` and `GREENROOM_CHAOS_MESSAGES`.
    #[must_use]
    pub fn from_environment(runs: u64, messages: usize) -> Self {
        Self {
            first_seed: variable("GREENROOM_CHAOS_SEED").unwrap_or(1),
            runs: variable("GREENROOM_CHAOS_RUNS").unwrap_or(runs),
            messages: variable("GREENROOM_CHAOS_MESSAGES").unwrap_or(messages),
            protocol: Protocol::One,
        }
    }

    /// The same campaign with sessions of this version of the protocol.
    #[must_use]
    pub fn speaking(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Does the runs. Each has a runtime of its own, so that whatever a run leaves behind is its
    /// own. `before` is told each seed.
    ///
    /// # Errors
    /// The first run that goes wrong.
    ///
    /// # Panics
    /// When a runtime cannot be made.
    pub fn run(&self, flavour: Flavour, before: impl FnMut(u64)) -> Result<Report, Fault> {
        let (messages, protocol) = (self.messages, self.protocol);
        self.each(flavour, before, |seed| {
            let soak = Soak { protocol, ..Soak::new(seed, messages) };
            async move { soak.run().await }
        })
    }

    /// Does the same number of runs over real sockets, with a quarter of the messages: each is a
    /// request of its own over HTTP.
    ///
    /// # Errors
    /// The first run that goes wrong.
    ///
    /// # Panics
    /// When a runtime cannot be made.
    pub fn run_http(&self, flavour: Flavour, before: impl FnMut(u64)) -> Result<Report, Fault> {
        let messages = self.messages / 4;
        self.each(flavour, before, |seed| async move { HttpSoak::new(seed, messages).run().await })
    }

    fn each<F>(&self, flavour: Flavour, mut before: impl FnMut(u64), run: impl Fn(u64) -> F) -> Result<Report, Fault>
    where
        F: Future<Output = Result<Report, Fault>> + Send + 'static,
    {
        let mut report = Report::default();
        for seed in self.first_seed..self.first_seed + self.runs {
            before(seed);
            let (runtime, run) = (flavour.runtime(), run(seed));
            // On a worker, not beside them: that is where programs run.
            let run = runtime.block_on(async { tokio::spawn(run).await });
            report.add(&run.expect("a run reports what is wrong and does not panic")?);
        }
        Ok(report)
    }
}

impl Flavour {
    /// A new runtime of this kind.
    ///
    /// # Panics
    /// When the system has no threads left.
    #[must_use]
    pub fn runtime(self) -> Runtime {
        let mut builder = match self {
            Self::CurrentThread => Builder::new_current_thread(),
            Self::TwoThreads => Builder::new_multi_thread(),
        };
        builder.worker_threads(2).enable_all().build().expect("a runtime")
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CurrentThread => "one thread",
            Self::TwoThreads => "two threads",
        })
    }
}

fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}
