//! Requests that this side sends, and cancelling them in either direction.

mod cancellation;
mod prepared;
mod reply;
mod sent;

pub(crate) use cancellation::{CancelFlag, CancelTarget};
pub use cancellation::{RequestCancellation, RequestCancellationHandle};
pub use prepared::PreparedRequest;
pub(crate) use reply::{Decode, Reply, StepGuard, would_deadlock};
pub use sent::SentRequest;
