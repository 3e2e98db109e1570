//! Matching a message by type, one `if_…` after the other.
//!
//! For handlers that look at everything. A builder's typed handlers are cheaper: their table finds
//! the one handler of a method, where a chain of `if_…` asks each in turn.

mod dispatch;
mod from_peer;
mod notification;
mod typed;

pub use dispatch::MatchDispatch;
pub use from_peer::MatchDispatchFrom;
pub use notification::TypeNotification;
