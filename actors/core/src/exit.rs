//! How the end of a process reads: in full for this process, in short for everybody.

use std::fmt;

use greenroom_protocol::{Error, LocalError, Origin};

use crate::link::Exit;

/// Bytes of stderr that [`Exit`] shows. The whole tail stands in [`Exit::stderr_tail`].
const SHOWN: usize = 4 * 1024;

impl Exit {
    /// Program and status in words that a peer may see: no folder, nothing that the process said.
    #[must_use]
    pub fn summary(&self) -> String {
        format!("{}: {}", program_name(&self.program), self.status)
    }

    /// The error for an exit that nobody asked for. Peers see program and status; the exit itself
    /// is its source.
    #[must_use]
    pub fn to_error(&self) -> Error {
        let program = program_name(&self.program);
        let mut error = Error::internal_error()
            .with_origin(Origin::Process)
            .with_source(self.clone())
            .data(serde_json::json!({ "reason": Origin::Process.reason(), "program": program, "status": self.status }));
        error.message = format!("agent process {program:?} ended: {}", self.status);
        error
    }
}

/// Everything: the program as it was started, the status, and the last lines of its stderr.
impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent process {:?} ended: {} ({})", self.program, self.status, self.rung)?;
        let tail = last_lines(&self.stderr_tail, SHOWN);
        if tail.trim().is_empty() { Ok(()) } else { write!(f, "\nlast lines of its stderr:\n{}", tail.trim_end()) }
    }
}

impl std::error::Error for Exit {}

/// The last component of a path, however this platform spells paths: what a program is called.
#[must_use]
pub fn program_name(program: &str) -> &str {
    std::path::Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or("the program")
}

/// A failure of the operating system as an error. Peers learn what was done and what kind of
/// failure it was; its own words, which may name paths, stand in the source.
pub(crate) fn io_error(kind: Origin, action: &str, failure: std::io::Error) -> Error {
    let reason = format!("{action} failed: {}", failure.kind());
    Error::from(LocalError::new(kind, format!("{action} failed")).with_source(failure))
        .data(serde_json::json!({ "reason": reason }))
}

/// At most `limit` bytes from the end of the text, in whole lines where possible.
fn last_lines(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let mut from = text.len() - limit;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let tail = &text[from..];
    match tail.find('\n') {
        Some(end) if end + 1 < tail.len() => &tail[end + 1..],
        _ => tail,
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    fn exit(stderr_tail: &str) -> Exit {
        Exit {
            program: "/home/me/bin/agent".into(),
            status: "exit status: 3".into(),
            success: false,
            requested: false,
            rung: "own exit",
            stderr_tail: stderr_tail.into(),
        }
    }

    #[test]
    fn peers_see_program_and_status_and_the_caller_sees_everything() {
        let error = exit("one\ntwo\n").to_error();
        let wire = error.to_wire();
        assert!(wire.get().contains("exit status: 3") && wire.get().contains("\"agent\""), "{wire}");
        assert!(!wire.get().contains("/home") && !wire.get().contains("two"), "{wire}");
        let source = error.source().expect("the exit");
        assert_eq!(
            source.to_string(),
            "agent process \"/home/me/bin/agent\" ended: exit status: 3 (own exit)\nlast lines of its stderr:\none\ntwo"
        );
        assert_eq!(source.downcast_ref::<Exit>().map(|exit| exit.rung), Some("own exit"));
        assert!(!exit(" \n").to_string().contains("stderr"));
    }

    #[test]
    fn the_words_of_the_operating_system_stay_here() {
        let failure = std::io::Error::other("/etc/shadow is secret");
        let error = io_error(Origin::Transport, "transport read", failure);
        assert_eq!(
            error.to_wire().get(),
            r#"{"code":-32603,"message":"Internal error","data":{"reason":"transport read failed: other error"}}"#
        );
        let local = error.source().expect("a local error");
        assert_eq!(local.to_string(), "transport read failed");
        assert_eq!(local.source().map(ToString::to_string).as_deref(), Some("/etc/shadow is secret"));
    }

    #[test]
    fn shortens_a_text() {
        assert_eq!(last_lines("one\ntwo\nthree", 9), "three");
        assert_eq!(last_lines("one", 9), "one");
        assert_eq!(last_lines("中中中", 4), "中");
        assert_eq!(last_lines("0123456789\n", 4), "789\n");
    }
}
