//! Saying on stderr what went wrong: stage, reason, exit status, last words of the process.

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
    if let Some(lines) = members.get("stderr").and_then(Value::as_str)
        && !lines.trim().is_empty()
    {
        text.push_str("\nlast lines of its stderr:\n");
        text.push_str(lines.trim_end());
    }
}
