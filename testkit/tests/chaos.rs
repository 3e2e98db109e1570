//! Actors die all the time, on both sides, and nobody notices.
//!
//! `GREENROOM_CHAOS_RUNS`, `GREENROOM_CHAOS_MESSAGES` and `GREENROOM_CHAOS_SEED` make it more, or
//! do a run again.

use std::time::Duration;

use greenroom_testkit::chaos::{Campaign, FaultKind, Flavour, Soak};

/// What a connection over a byte stream consists of, below its supervisor.
const ACTORS: [&str; 7] = ["reader", "writer", "incoming", "dispatch", "outgoing", "pending", "tasks"];

fn soak(flavour: Flavour) {
    let campaign = Campaign::from_environment(6, 2_000);
    let report = match campaign.run(flavour, |seed| println!("seed {seed}")) {
        Ok(report) => report,
        Err(fault) => panic!("{fault}"),
    };
    println!("{report}");
    for actor in ACTORS {
        for fault in FaultKind::ALL {
            assert!(report.attacks(actor, fault) > 0, "{actor} was spared {}", fault.name());
        }
        assert!(report.restarts(actor) > 0, "{actor} was never started again");
    }
}

#[test]
fn nothing_is_lost_on_one_thread() {
    soak(Flavour::CurrentThread);
}

#[test]
fn nothing_is_lost_on_two_threads() {
    soak(Flavour::TwoThreads);
}

#[test]
fn a_lost_message_is_noticed() {
    let mut soak = Soak::new(1, 3_000);
    soak.durable = false;
    soak.patience = Duration::from_secs(2);
    let fault = Flavour::CurrentThread.runtime().block_on(soak.run()).expect_err("mailboxes were thrown away");
    let text = fault.to_string();
    assert!(text.contains("lost:") || text.contains("without an outcome:"), "{text}");
}
