//! What the reader of a session gets.

use greenroom_protocol::schema::StopReason;

use crate::dispatch::Dispatch;

/// One thing that happened in a session.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "the documented shape; how large it is depends on features")]
#[non_exhaustive]
pub enum SessionMessage {
    /// The agent sent a notification or a request of this session.
    ///
    /// Match it with [`MatchDispatch`](crate::util::MatchDispatch). Dropping a request answers it
    /// with an error.
    SessionMessage(Dispatch),
    /// A prompt turn ended.
    StopReason(StopReason),
}
