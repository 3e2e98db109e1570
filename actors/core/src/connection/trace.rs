//! The one place where the text of messages can get into a log: at `TRACE`, for the target
//! `greenroom::wire`, redacted.

use greenroom_protocol::Redacted;

/// The target under which messages are traced.
const TARGET: &str = "greenroom::wire";

/// Which way a line goes, seen from this process.
#[derive(Clone, Copy)]
pub(super) enum Way {
    In,
    Out,
}

/// Traces one line. Asks first whether anybody listens: then, and only then, it costs something.
pub(super) fn wire(way: Way, pieces: &[&[u8]]) {
    if !tracing::enabled!(target: TARGET, tracing::Level::TRACE) {
        return;
    }
    let way = match way {
        Way::In => "in",
        Way::Out => "out",
    };
    let joined;
    let line: &[u8] = match pieces {
        [line] => line,
        pieces => {
            joined = pieces.concat();
            &joined
        }
    };
    tracing::trace!(target: TARGET, way, bytes = line.len(), body = %Redacted(line));
}
