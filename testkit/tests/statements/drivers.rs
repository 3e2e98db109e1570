//! Statements 52 to 56: what drives a transport, and how it is asked to finish.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{FutureExt as _, StreamExt as _};
use greenroom::{Channel, ConnectTo, ConnectionDriver, ConnectionTo, Error, Result, UntypedRole};
use greenroom_testkit::scripted::Local;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Duration, sleep};

use crate::adapter::BufferedAdapter;
use crate::support::*;

const NOTES: u64 = 50;

/// A peer that is done after it sent some notifications.
struct Finite;

impl ConnectTo<UntypedRole> for Finite {
    async fn connect_to(self, other: impl ConnectTo<UntypedRole>) -> Result<()> {
        UntypedRole.builder().connect_with(other, send_notes).await
    }
}

async fn send_notes(cx: ConnectionTo<UntypedRole>) -> Result<()> {
    (0..NOTES).try_for_each(|n| cx.send_notification(with_params("_note", json!({ "n": n }))))
}

/// Runs a finite foreground over the adapter, through either of its entry points.
fn run_finite(adapter: BufferedAdapter, direct: bool) -> JoinHandle<Result<()>> {
    if direct {
        tokio::spawn(adapter.connect_to(Finite))
    } else {
        tokio::spawn(UntypedRole.builder().connect_with(adapter, send_notes))
    }
}

#[tokio::test(start_paused = true)]
async fn statement_52_a_cooperative_driver_is_asked_once_and_waited_for() {
    for direct in [false, true] {
        let (log, mut said) = log();
        let (far, near) = tokio::io::duplex(64);
        let mut peer = Local::over(far);
        let (reader, writer) = tokio::io::split(near);
        let run = run_finite(BufferedAdapter::over(reader, writer, log), direct);
        said.expect("asked").await;
        // Nobody reads the output, and the input stays open. It may even bring something.
        sleep(Duration::from_secs(24 * 3600)).await;
        let late = format!("{}\n", note("_late"));
        assert!(peer.flood(late.as_bytes(), 1 << 14).await >= 1 << 14);
        settled().await;
        assert!(!run.is_finished());
        assert_eq!(said.so_far(), Vec::<String>::new());
        for n in 0..NOTES {
            soon(peer.expect(note_with("_note", json!({ "n": n })))).await;
        }
        soon(peer.expect_end()).await;
        soon(run).await.expect("no panic").expect("flushed");
        assert_eq!(said.so_far(), ["flushed"], "asked once, and no end of the input was needed");
        drop(peer);

        // An error of the drain is the result.
        let (log, mut said) = crate::support::log();
        let (far, writer) = tokio::io::duplex(64);
        let (break_it, broken) = oneshot::channel();
        let adapter = BufferedAdapter::over(breaking(broken), writer, log);
        let run = run_finite(adapter, direct);
        said.expect("asked").await;
        settled().await;
        assert!(!run.is_finished());
        break_it.send(()).expect("a reader");
        let error = soon(run).await.expect("no panic").expect_err("reading failed");
        assert!(error.to_string().contains("the cable was cut"), "{error}");
        drop(far);
    }
}

/// A driver that can be asked, and how often it was.
fn cooperative(work: impl Future<Output = Result<()>> + Send + 'static) -> (ConnectionDriver, Arc<AtomicUsize>) {
    let asked: Arc<AtomicUsize> = Arc::default();
    let hook = asked.clone();
    let driver = ConnectionDriver::with_finish(work, move || {
        hook.fetch_add(1, Ordering::SeqCst);
    });
    (driver, asked)
}

#[tokio::test(start_paused = true)]
async fn statement_53_request_finish_is_true_each_time_for_those_who_can() {
    let (mut driver, asked) = cooperative(async { Ok(()) });
    assert!(driver.request_finish() && driver.request_finish() && driver.request_finish());
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    driver.await.expect("the work itself");
    let mut opaque = ConnectionDriver::new(pending());
    assert!(!opaque.request_finish() && !opaque.request_finish());
}

#[tokio::test(start_paused = true)]
async fn statement_54_a_dropped_driver_or_hook_asks_for_nothing() {
    let (driver, asked) = cooperative(pending());
    drop(driver);
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    // The hook is gone with the rest of the driver; the work was moved out of it and goes on.
    let (goes_on, mut work) = oneshot::channel();
    let (driver, asked) = cooperative(async { Ok(()) });
    let driver = driver.map_future(move |future| {
        let _ = goes_on.send(future);
        async { Ok(()) }
    });
    drop(driver);
    work.try_recv().expect("the work").await.expect("it was not stopped");
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn statement_55_map_future_keeps_what_a_driver_can_and_whether_it_was_asked() {
    let noted: Arc<AtomicUsize> = Arc::default();
    let note = |noted: &Arc<AtomicUsize>| {
        let noted = noted.clone();
        move |work: greenroom::BoxFuture<'static, Result<()>>| {
            work.inspect(move |_| {
                noted.fetch_add(1, Ordering::SeqCst);
            })
        }
    };
    let (driver, asked) = cooperative(async { Ok(()) });
    let mut driver = driver.map_future(note(&noted));
    assert!(driver.request_finish());
    // Already asked: the capability stays, the hook does not run again.
    let mut driver = driver.map_future(note(&noted));
    assert!(driver.request_finish());
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    driver.await.expect("the work itself");
    assert_eq!(noted.load(Ordering::SeqCst), 2);
    assert!(!ConnectionDriver::new(async { Ok(()) }).map_future(note(&noted)).request_finish());
}

/// A component of a channel and this driver.
struct Driven(Channel, ConnectionDriver);

impl ConnectTo<UntypedRole> for Driven {
    async fn connect_to(self, _peer: impl ConnectTo<UntypedRole>) -> Result<()> {
        unreachable!("these tests use the other entry point")
    }

    fn into_channel_and_future(self) -> (Channel, Option<ConnectionDriver>) {
        (self.0, Some(self.1))
    }
}

/// Says when it is dropped.
struct Dropped(Log);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.say("dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn statement_56_an_opaque_driver_is_cancelled_after_the_foreground_and_joined_after_the_end_of_the_input() {
    // Cancelled, after everything was handed over to it.
    let (log, mut said) = log();
    let (ours, mut far) = Channel::duplex();
    let guard = Dropped(log.clone());
    let driver = ConnectionDriver::new(async move {
        let _guard = guard;
        pending().await
    });
    soon(UntypedRole.builder().connect_with(Driven(ours, driver), send_notes)).await.expect("a clean end");
    said.expect("dropped").await;
    assert_eq!(far.rx.by_ref().count().await as u64, NOTES);

    // An error that is there already is not lost.
    let (ours, far) = Channel::duplex();
    let driver = ConnectionDriver::new(async move {
        let handed_over = far.rx.count().await as u64;
        assert_eq!(handed_over, NOTES);
        Err(Error::internal_error().data("not flushed"))
    });
    let error =
        soon(UntypedRole.builder().connect_with(Driven(ours, driver), send_notes)).await.expect_err("its error");
    assert_eq!(error.data, Some(json!("not flushed")));

    // Joined: the input ended, the work goes on.
    for fails in [false, true] {
        let (ours, far) = Channel::duplex();
        let (go, gone) = oneshot::channel();
        let driver = ConnectionDriver::new(async move {
            drop(far.tx);
            gone.await.expect("the test goes on")
        });
        let serving = tokio::spawn(UntypedRole.builder().connect_to(Driven(ours, driver)));
        sleep(Duration::from_secs(24 * 3600)).await;
        assert!(!serving.is_finished(), "its driver works");
        go.send(if fails { Err(Error::internal_error().data("late")) } else { Ok(()) }).expect("a driver");
        let result = soon(serving).await.expect("no panic");
        assert_eq!(result.err().and_then(|error| error.data), fails.then(|| json!("late")));
    }
}
