//! Handlers: from a message to the code that takes it.

mod delivery;
mod dynamic;
mod entries;
mod host;
mod interest;
mod parked;
mod port;

#[cfg(all(test, feature = "unstable_mcp_over_acp"))]
pub(crate) use delivery::rebuilt;
pub(crate) use delivery::{Delivery, session_of};
pub use dynamic::DynamicHandlerGuard;
pub(crate) use dynamic::{AnyRegistry, Offered, Registry};
#[cfg(any(feature = "unstable_mcp_over_acp", feature = "unstable_protocol_v2"))]
pub(crate) use entries::Entry;
pub(crate) use entries::{DispatchEntry, NotificationEntry, RequestEntry};
pub use entries::{HandleDispatchFrom, Handlers, NullHandler};
pub(crate) use host::{Host, gone};
#[cfg(any(feature = "unstable_mcp_over_acp", feature = "unstable_protocol_v2"))]
pub(crate) use interest::Interest;
pub(crate) use interest::Plans;
pub(crate) use parked::Parked;
pub(crate) use port::{Called, HandlerPort, Verdict};
