//! Whatever passes a connection, and however it fails: no log shows it.
//!
//! Everything here carries a marked secret. Alone in its program, because it listens to every log
//! of the process.

mod scenes;

use greenroom_testkit::capture::{Capture, Logged};
use tracing::Level;

/// Every secret starts like this. What follows says where it was hidden.
const MARK: &str = "hunter2";

fn leaks(logged: &[Logged], is_leak: impl Fn(&Logged) -> bool) -> Vec<&Logged> {
    logged.iter().filter(|line| is_leak(line)).collect()
}

#[test]
fn secrets_reach_no_log_and_a_trace_hides_environments_headers_and_what_is_no_message() {
    // The panics of the scenes are meant; their texts are what this is about.
    std::panic::set_hook(Box::new(|_| {}));
    let capture = Capture::install();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let panics = runtime.block_on(scenes::play());
    let _ = std::panic::take_hook();
    drop(runtime);
    assert!(panics.is_empty(), "scenes that did not play: {panics:?}");
    let logged = capture.all();

    let shown = leaks(&logged, |line| line.level <= Level::DEBUG && line.text.contains(MARK));
    assert!(shown.is_empty(), "{shown:#?}");
    let hidden = ["hunter2-env", "hunter2-header", "hunter2-noise", "hunter2-cut"];
    let shown = leaks(&logged, |line| hidden.iter().any(|secret| line.text.contains(secret)));
    assert!(shown.is_empty(), "{shown:#?}");

    // All of that would hold for a log that is empty, so: what must be there.
    let says = |level: Level, parts: &[&str]| {
        let found = logged.iter().any(|line| line.level == level && parts.iter().all(|part| line.text.contains(part)));
        assert!(found, "no {level} with {parts:?} in {logged:#?}");
    };
    for way in ["in", "out"] {
        let way = format!("way=\"{way}\"");
        says(Level::TRACE, &["greenroom::wire", &way, "hunter2-prompt"]);
        says(Level::TRACE, &["greenroom::wire", &way, "session/new", "TOKEN_NAME", "X-Header-Name", "[redacted]"]);
    }
    says(Level::TRACE, &["bytes that are no JSON message"]);
    says(Level::WARN, &["a malformed notification was ignored", "session/cancel", "-32602"]);
    says(Level::WARN, &["a malformed message was refused", "-32700", "parse error"]);
    says(Level::WARN, &["input that is not JSON was ignored"]);
    says(Level::WARN, &["a handler failed", "-32001"]);
    says(Level::ERROR, &["a handler panicked", "_test/panic"]);
    says(Level::WARN, &["a task failed"]);
}
