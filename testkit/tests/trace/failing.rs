//! A recording that dies, hangs or fails: the chain goes on, and nothing is missing silently.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::channel::mpsc::{UnboundedSender, unbounded};
use greenroom::runtime::{Fault, Node};
use greenroom_conductor::trace::{TraceEvent, TraceWriter, WriteEvent};
use parking_lot::{Condvar, Mutex};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{SOON, Traced, brief, recording};

fn writer_of(traced: &Traced) -> Arc<Node> {
    let children = traced.chain.tree().children();
    children.into_iter().find(|node| node.path().ends_with("/trace")).expect("the trace's actor")
}

/// One notification through the chain.
async fn pass(traced: &mut Traced, number: usize, filling: &str) {
    let note = json!({ "jsonrpc": "2.0", "method": "_note", "params": { "n": number, "filling": filling } });
    traced.client.send(&note).await;
    assert_eq!(traced.agent.receive().await["params"]["n"], number);
}

fn numbers(events: &[Value]) -> Vec<usize> {
    let notes = events.iter().filter(|event| event["method"] == "_note");
    notes.map(|event| event["params"]["n"].as_u64().expect("a number") as usize).collect()
}

#[tokio::test]
async fn nothing_is_lost_when_its_actor_dies_again_and_again() {
    let (writer, recording) = recording();
    let mut traced = Traced::start(Vec::new(), writer).await;
    for number in 0..300 {
        if number % 75 == 10 {
            let node = writer_of(&traced);
            let deaths = node.restarts();
            match number / 75 {
                0 => assert!(node.kill()),
                1 => assert!(node.inject(Fault::Panic)),
                2 => assert!(node.inject(Fault::PanicInside)),
                _ => assert!(node.stop()),
            }
            pass(&mut traced, number, "").await;
            let restarted = async {
                while node.restarts() == deaths {
                    tokio::task::yield_now().await;
                }
            };
            timeout(SOON, restarted).await.expect("a restart");
        } else {
            pass(&mut traced, number, "").await;
        }
    }
    traced.end().await;
    assert_eq!(numbers(&recording.all().await), (0..300).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_chain_goes_on_when_its_actor_dies_too_often() {
    let (writer, recording) = recording();
    let mut traced = Traced::start(Vec::new(), writer).await;
    let node = writer_of(&traced);
    let gone = async {
        // Between two incarnations nobody is there to be killed.
        while node.restarts() < 5 || node.kill() {
            node.kill();
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, gone).await.expect("no more restarts");
    for number in 0..50 {
        pass(&mut traced, number, "").await;
    }
    traced.end().await;
    let events = recording.all().await;
    assert!(events.len() < 50, "nothing is recorded any more: {}", events.len());
}

/// Blocks its thread until it is let go.
struct Stuck {
    gate: Arc<(Mutex<bool>, Condvar)>,
    events: UnboundedSender<TraceEvent>,
}

impl WriteEvent for Stuck {
    fn write_event(&mut self, event: &TraceEvent) -> io::Result<()> {
        let mut open = self.gate.0.lock();
        while !*open {
            self.gate.1.wait(&mut open);
        }
        drop(open);
        self.events.write_event(event)
    }
}

#[tokio::test]
async fn a_writer_that_hangs_holds_nothing_up_and_what_is_missing_is_told() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let (events, recording) = unbounded();
    let writer = TraceWriter::new(Stuck { gate: gate.clone(), events });
    let mut traced = Traced::start(Vec::new(), writer).await;
    let filling = "x".repeat(100_000);
    for number in 0..200 {
        timeout(SOON, pass(&mut traced, number, &filling)).await.expect("the chain is not held up");
    }
    *gate.0.lock() = true;
    gate.1.notify_all();
    let node = writer_of(&traced);
    let caught_up = async {
        while node.snapshot().mailbox_depth > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, caught_up).await.expect("it goes on");
    pass(&mut traced, 200, "").await;
    traced.end().await;
    let events: Vec<TraceEvent> = futures::StreamExt::collect(recording).await;
    let events: Vec<Value> = events.iter().map(|event| serde_json::to_value(event).expect("JSON")).collect();
    let seen = numbers(&events);
    assert!(seen.len() > 50 && seen.len() < 150, "{} of 201 were kept", seen.len());
    assert_eq!(seen[..seen.len() - 1], (0..seen.len() - 1).collect::<Vec<_>>(), "in order, from the first");
    assert_eq!(seen.last(), Some(&200));
    let lost: Vec<&Value> = events.iter().filter(|event| event["type"] == "lost").collect();
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0]["events"], 201 - seen.len());
    assert!(lost[0]["bytes"].as_u64() > Some(100_000));
    let place = events.iter().position(|event| event["type"] == "lost").expect("there is one");
    assert_eq!(events[place + 1]["params"]["n"], 200, "told where it is missing");
}

/// Fails or panics while it is told to.
struct Moody {
    fails: Arc<AtomicBool>,
    panics: bool,
    events: UnboundedSender<TraceEvent>,
}

impl WriteEvent for Moody {
    fn write_event(&mut self, event: &TraceEvent) -> io::Result<()> {
        let bad = self.fails.load(Ordering::SeqCst);
        assert!(!(bad && self.panics), "a writer that panics");
        if bad { Err(io::ErrorKind::StorageFull.into()) } else { self.events.write_event(event) }
    }
}

#[tokio::test]
async fn what_a_writer_does_not_take_counts_as_lost() {
    for panics in [false, true] {
        let fails = Arc::new(AtomicBool::new(false));
        let (events, recording) = unbounded();
        let mut traced =
            Traced::start(Vec::new(), TraceWriter::new(Moody { fails: fails.clone(), panics, events })).await;
        let idle = async |traced: &Traced| {
            // Its actor is idle once it waits again behind what it has written.
            let node = writer_of(traced);
            let written = async {
                while node.snapshot().mailbox_depth > 0 {
                    tokio::task::yield_now().await;
                }
            };
            timeout(SOON, written).await.expect("it is written");
        };
        pass(&mut traced, 0, "").await;
        idle(&traced).await;
        fails.store(true, Ordering::SeqCst);
        for number in 1..=5 {
            pass(&mut traced, number, "").await;
        }
        idle(&traced).await;
        // One more, so that the last of the five is certainly tried before the mood changes.
        pass(&mut traced, 6, "").await;
        idle(&traced).await;
        fails.store(false, Ordering::SeqCst);
        pass(&mut traced, 7, "").await;
        traced.end().await;
        let events: Vec<TraceEvent> = futures::StreamExt::collect(recording).await;
        let events: Vec<Value> = events.iter().map(|event| serde_json::to_value(event).expect("JSON")).collect();
        let lost: u64 = events.iter().filter_map(|event| event["events"].as_u64()).sum();
        let shown: Vec<String> = events.iter().map(brief).collect();
        assert!(lost >= 5, "{shown:?}");
        assert_eq!(lost as usize + events.iter().filter(|event| event["type"] != "lost").count(), 2 + 8, "{shown:?}");
    }
}
