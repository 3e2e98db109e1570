//! What can be configured about a connection.

use greenroom_protocol::Batches;
use greenroom_protocol::handshake::ProxyVersions;
use tokio::time::Duration;

use crate::connection::DRAIN;
use crate::runtime::RestartPolicy;

/// What a request gets whose [`Responder`](crate::Responder) was dropped by a handler (spec §9,
/// decision 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponderDropPolicy {
    /// An error: `-32800` if the peer had cancelled, else `-32603` with data that names the method.
    #[default]
    Answer,
    /// Nothing, as the documented SDK does: the peer waits until the connection ends. An entry of
    /// a batch is answered all the same, because its siblings wait for it; so is a request whose
    /// handler panicked or was cut off.
    Silent,
}

/// Limits and policies of one connection. Begin with the default and set fields.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ConnectionOptions {
    /// Bytes that may be read and not yet worked off before the transport is read no further; the
    /// default is 512 KiB. Each frame counts with 256 bytes beside its text. A frame larger than
    /// all of it still passes, alone. Without effect where there is no byte stream.
    pub incoming_credit: usize,
    /// Bytes of unsent output above which [`ready`](crate::ConnectionTo::ready) waits; the default is
    /// 8 MiB.
    pub outgoing_high_mark: usize,
    /// Bytes of unsent output that end the connection: its peer does not read. The default is
    /// 256 MiB. Whoever sends beyond it gets an error with
    /// [`Origin::Overflow`](crate::Origin::Overflow).
    pub outgoing_cap: usize,
    /// How often each actor may die before the connection ends.
    pub restart: RestartPolicy,
    /// How long an actor of the connection has nothing to do before it ends, at least; the next
    /// message starts it again, which takes some ten microseconds. What it knows is kept. The default is
    /// 100 ms; [`Duration::MAX`] keeps every actor.
    pub passivate_after: Duration,
    /// Time for answers to accepted requests after the end of the input; the default is 5 s. Not
    /// used with `connect_with`, where the foreground decides.
    pub drain: Duration,
    /// Bytes of one session's messages that may wait for its reader. Above that the session fails,
    /// and only it.
    pub session_cap: usize,
    /// Bytes of the log of one session that is shared by
    /// [`coordinate_sessions`](crate::V2ConnectionTo::coordinate_sessions); the default is 64 MiB.
    /// Above that the log ends with an error, and no other.
    #[cfg(feature = "unstable_protocol_v2")]
    pub session_log_cap: usize,
    /// How often the coordinator of one session may die before that session fails, and only it. The
    /// default forgives three deaths in a minute.
    pub session_restart: RestartPolicy,
    /// Time that a cancelled turn has to end by itself.
    pub cancel_deadline: Duration,
    /// Whether JSON arrays are taken apart (the default) or refused as a whole.
    pub batches: Batches,
    /// What a proxy does about a protocol version that is not its own (spec §9, decision 5).
    pub proxy_versions: ProxyVersions,
    /// What a request gets whose responder was dropped (spec §9, decision 3).
    pub dropped_responder: ResponderDropPolicy,
    /// Whether a spawned task or an ordered response callback that fails ends the connection, as
    /// it does in the documented SDK. By default only its own request is affected.
    pub end_on_failure: bool,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            incoming_credit: 512 * 1024,
            outgoing_high_mark: 8 * 1024 * 1024,
            outgoing_cap: 256 * 1024 * 1024,
            restart: RestartPolicy::default(),
            passivate_after: Duration::from_millis(100),
            drain: DRAIN,
            session_cap: 16 * 1024 * 1024,
            #[cfg(feature = "unstable_protocol_v2")]
            session_log_cap: 64 * 1024 * 1024,
            session_restart: RestartPolicy { deaths: 3, window: Duration::from_secs(60) },
            cancel_deadline: Duration::from_secs(30),
            batches: Batches::Accept,
            proxy_versions: ProxyVersions::ByDialect,
            dropped_responder: ResponderDropPolicy::Answer,
            end_on_failure: false,
        }
    }
}
