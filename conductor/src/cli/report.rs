//! Saying on stderr what went wrong: stage, reason, exit status, last words of the process.

use std::error::Error as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use greenroom::Error;
use serde_json::Value;

/// Reports a failure and gives the exit status for it.
pub(super) fn failure(stage: &str, error: &Error) -> ExitCode {
    let mut text = format!("greenroom: {stage}: {}", error.message);
    match &error.data {
        Some(Value::String(reason)) => text.push_str(&format!(": {reason}")),
        Some(Value::Object(members)) => describe(members, &mut text),
        Some(other) => text.push_str(&format!(": {other}")),
        None => {}
    }
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(&format!("\n  because: {said}"));
        }
        next = cause.source();
    }
    // A terminal that is gone is no reason to panic.
    let _ = writeln!(io::stderr(), "{text}");
    ExitCode::FAILURE
}

fn describe(members: &serde_json::Map<String, Value>, text: &mut String) {
    for name in ["reason", "limit", "error", "exit", "status", "details"] {
        if let Some(value) = members.get(name) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            // The message may have said it already.
            if text.contains(&value) {
                continue;
            }
            text.push_str(&format!(": {value}"));
        }
    }
}
