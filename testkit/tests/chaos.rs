//! Actors die all the time, on both sides, and nobody notices.
//!
//! `GREENROOM_CHAOS_RUNS`, `GREENROOM_CHAOS_MESSAGES` and `GREENROOM_CHAOS_SEED` make it more, or
//! do a run again.

use std::sync::Arc;
use std::time::Duration;

use greenroom::runtime::RestartPolicy;
use greenroom::{
    Agent, Client, ConnectionOptions, ConnectionTo, Responder, UntypedMessage, on_receive_notification,
    on_receive_request,
};
use greenroom_testkit::chaos::{Campaign, FaultKind, Flavour, Ledger, Monkey, Protocol, Report, Soak};
use serde_json::{Value, json};

/// What a connection over a byte stream consists of, below its supervisor.
const ACTORS: [&str; 9] =
    ["reader", "writer", "incoming", "dispatch", "outgoing", "pending", "tasks", "sessions", "session"];

/// The same with sessions of version 2: those that are shared have an actor.
#[cfg(feature = "unstable_protocol_v2")]
const ACTORS_OF_TWO: [&str; 9] =
    ["reader", "writer", "incoming", "dispatch", "outgoing", "pending", "tasks", "sessions", "coordination"];

fn soak(flavour: Flavour, protocol: Protocol, actors: &[&str]) {
    let campaign = Campaign::from_environment(6, 2_000).speaking(protocol);
    let report = match campaign.run(flavour, |seed| eprintln!("seed {seed}")) {
        Ok(report) => report,
        Err(fault) => panic!("{fault}"),
    };
    eprintln!("{report}");
    for actor in actors {
        assert!(FaultKind::ALL.iter().any(|fault| report.attacks(actor, *fault) > 0), "{actor} was spared");
        assert!(report.restarts(actor) > 0, "{actor} was never started again");
    }
    for fault in FaultKind::ALL {
        let fault_happened = actors.iter().any(|actor| report.attacks(actor, fault) > 0);
        assert!(fault_happened, "nobody suffered a {}", fault.name());
    }
    assert!(report.failed_sessions > 0, "no session failed while the others went on");
}

#[test]
fn nothing_is_lost_on_one_thread() {
    soak(Flavour::CurrentThread, Protocol::One, &ACTORS);
}

#[test]
fn nothing_is_lost_on_two_threads() {
    soak(Flavour::TwoThreads, Protocol::One, &ACTORS);
}

#[cfg(feature = "unstable_protocol_v2")]
#[test]
fn nothing_is_lost_in_sessions_of_version_2() {
    for flavour in [Flavour::CurrentThread, Flavour::TwoThreads] {
        soak(flavour, Protocol::Two, &ACTORS_OF_TWO);
    }
}

/// Actors are attacked while they end because they have nothing to do, and while they are called for.
#[test]
fn nothing_is_lost_while_actors_end_for_want_of_work() {
    let mut report = Report::default();
    for protocol in Protocol::ALL {
        for flavour in [Flavour::CurrentThread, Flavour::TwoThreads] {
            for seed in 1..=3 {
                let mut soak = Soak::new(seed, 1_000);
                (soak.protocol, soak.passivate_after) = (*protocol, Duration::from_micros(100));
                match flavour.runtime().block_on(soak.run()) {
                    Ok(run) => report.add(&run),
                    Err(fault) => panic!("{flavour}: {fault}"),
                }
            }
        }
    }
    eprintln!("{report}");
    for actor in ["incoming", "dispatch", "outgoing"] {
        assert!(FaultKind::ALL.iter().any(|fault| report.attacks(actor, *fault) > 0), "{actor} was spared");
        assert!(report.restarts(actor) > 0, "{actor} was never started again");
    }
}

/// What runs say that lose the mailboxes of these actors. A mailbox that was empty whenever its actor was
/// attacked loses nothing: then another run shows it.
fn lossy(protocol: Protocol, targets: Option<Vec<&'static str>>) -> impl Iterator<Item = String> {
    (1..=10).filter_map(move |seed| {
        let mut soak = Soak::new(seed, 3_000);
        soak.durable = false;
        soak.protocol = protocol;
        soak.targets = targets.clone();
        soak.patience = Duration::from_secs(2);
        Flavour::CurrentThread.runtime().block_on(soak.run()).err().map(|fault| fault.to_string())
    })
}

/// What the first of them says.
fn first_of(mut runs: impl Iterator<Item = String>) -> String {
    runs.next().expect("mailboxes were thrown away")
}

#[test]
fn a_lost_message_is_noticed() {
    let text = first_of(lossy(Protocol::One, None));
    assert!(text.contains("lost:") || text.contains("without an outcome:"), "{text}");
}

/// Expects that one of them says this in a line. What a run loses first may keep it from losing more.
fn expect_line(mut runs: impl Iterator<Item = String>, says: impl Fn(&str) -> bool) {
    let mut said = String::new();
    let noticed = runs.any(|text| {
        said = text;
        said.lines().any(|line| says(line.trim_start()))
    });
    assert!(noticed, "{said}");
}

#[test]
fn what_a_coordinator_loses_is_noticed() {
    // The end of a turn that is lost is no proof: it never passes the coordinator by, and messages do.
    let runs = lossy(Protocol::One, Some(vec!["session"]));
    expect_line(runs, |line| line.starts_with("session s") && line.contains(" lost:"));
}

#[cfg(feature = "unstable_protocol_v2")]
#[test]
fn what_a_coordination_loses_is_noticed() {
    let runs = lossy(Protocol::Two, Some(vec!["coordination"]));
    expect_line(runs, |line| line.contains("shared sessions: ") || line.contains("hung"));
}

#[cfg(feature = "unstable_protocol_v2")]
#[test]
fn what_sessions_of_version_2_lose_is_noticed() {
    expect_line(lossy(Protocol::Two, Some(vec!["dispatch"])), |line| {
        (line.starts_with("session s") && line.contains("of version 2") && line.contains("lost:"))
            || (line.starts_with("requests of session") && line.contains("without an outcome:"))
    });
}

/// Two trees of one process that pass messages by value: no reader, no writer, no bytes.
async fn in_process(seed: u64) -> Report {
    let mut options = ConnectionOptions::default();
    options.restart = RestartPolicy { deaths: usize::MAX, window: Duration::from_micros(1) };
    let ledger = Arc::new(Ledger::new("client to agent"));
    let (for_requests, for_notes) = (ledger.clone(), ledger.clone());
    let (tell, told) = tokio::sync::oneshot::channel();
    let agent = Agent
        .builder()
        .options(options)
        .on_receive_request(
            async move |request: UntypedMessage, responder: Responder<Value>, _cx| {
                for_requests.arrived(request.params["n"].as_u64().unwrap());
                tokio::task::yield_now().await;
                responder.respond(request.params)
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, _cx| {
                for_notes.arrived(note.params["n"].as_u64().unwrap());
                Ok(())
            },
            on_receive_notification!(),
        )
        .with_spawned(async move |cx: ConnectionTo<Client>| {
            let _ = tell.send(cx.tree());
            Ok(())
        });
    let client = Client.builder().options(options).connect_with(agent, async |cx: ConnectionTo<Agent>| {
        let trees = vec![cx.tree(), told.await.unwrap()];
        let attack = Monkey::new(seed).pace(10).attack(trees);
        for _ in 0..200 {
            for _ in 0..3 {
                let number = ledger.sending(false);
                cx.send_notification(UntypedMessage::new("note", json!({ "n": number }))?)?;
            }
            let number = ledger.sending(true);
            let request = UntypedMessage::new("ask", json!({ "n": number }))?;
            ledger.settled(number, &cx.send_request(request).block_task().await);
        }
        Ok(attack.stop().await)
    });
    let report = tokio::time::timeout(Duration::from_secs(30), client).await.expect("nothing hangs").unwrap();
    assert_eq!(ledger.check(), Vec::<String>::new());
    report
}

#[test]
fn nothing_is_lost_between_trees_of_one_process() {
    let mut report = Report::default();
    for flavour in [Flavour::CurrentThread, Flavour::TwoThreads] {
        for seed in 1..=4 {
            eprintln!("{flavour}, seed {seed}");
            report.add(&flavour.runtime().block_on(in_process(seed)));
        }
    }
    eprintln!("{report}");
    for actor in ["component", "incoming", "dispatch", "outgoing"] {
        assert!(FaultKind::ALL.iter().any(|fault| report.attacks(actor, *fault) > 0), "{actor} was spared");
    }
}
