//! Actors die and sockets break all the time, at a server and its clients, and whoever survives
//! notices nothing.
//!
//! `GREENROOM_CHAOS_RUNS`, `GREENROOM_CHAOS_MESSAGES` and `GREENROOM_CHAOS_SEED` make it more, or
//! do a run again.

use std::time::Duration;

use greenroom_testkit::chaos::{Campaign, FaultKind, Flavour, HttpSoak};

/// What a server and the clients' transports consist of, below their supervisors.
const ACTORS: [&str; 7] = ["listener", "agent", "router", "sse-stream", "websocket", "http", "web-socket"];

fn soak(flavour: Flavour) {
    let campaign = Campaign::from_environment(4, 8_000);
    let report = match campaign.run_http(flavour, |seed| eprintln!("seed {seed}")) {
        Ok(report) => report,
        Err(fault) => panic!("{fault}"),
    };
    eprintln!("{report}");
    for actor in ACTORS {
        assert!(FaultKind::ALL.iter().any(|fault| report.attacks(actor, *fault) > 0), "{actor} was spared");
        assert!(report.restarts(actor) > 0, "{actor} was never started again");
    }
    assert!(report.cuts > 0, "no stream was cut");
}

#[test]
fn nothing_is_lost_over_http_on_one_thread() {
    soak(Flavour::CurrentThread);
}

#[test]
fn nothing_is_lost_over_http_on_two_threads() {
    soak(Flavour::TwoThreads);
}

/// A mailbox that was empty whenever its actor was attacked loses nothing, and what is lost may keep a
/// connection from opening at all: then another run shows it.
#[test]
fn a_message_that_is_lost_over_http_is_noticed() {
    let shown = (1..=10).any(|seed| {
        let mut soak = HttpSoak::new(seed, 2_400);
        soak.durable = false;
        // A connection whose client vanished is forgotten after two seconds.
        soak.patience = Duration::from_secs(5);
        let text = Flavour::CurrentThread
            .runtime()
            .block_on(soak.run())
            .err()
            .map(|fault| fault.to_string())
            .unwrap_or_default();
        eprintln!("{text}");
        text.contains("lost:") || text.contains("without an outcome:")
    });
    assert!(shown, "mailboxes were thrown away");
}
