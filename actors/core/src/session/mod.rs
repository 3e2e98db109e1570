//! Sessions: opening, restoring, reading, commanding.
//!
//! Every session of a client of version 1 is an actor, its coordinator: it owns the order of the session's
//! updates, requests and ends of turns, and the deadlines of cancelled turns. What happens to one
//! session (nobody reads it, its coordinator dies, its agent floods it) stays in that session.

mod active;
mod builder;
#[cfg(feature = "unstable_protocol_v2")]
pub mod coordination;
mod coordinator;
mod entry;
mod member;
mod message;
mod queue;
mod restore;
mod setup;
mod supervisor;
mod table;
mod turns;
#[cfg(feature = "unstable_protocol_v2")]
mod v2;

pub use active::ActiveSession;
pub use builder::{Blocking, NonBlocking, SessionBlockState, SessionBuilder};
pub use message::SessionMessage;
pub use restore::{RestoreSessionBuilder, RestoredSession};

#[cfg(all(feature = "unstable_protocol_v2", feature = "unstable_session_fork"))]
pub use v2::V2ForkSessionBuilder;
#[cfg(feature = "unstable_protocol_v2")]
pub use v2::{OpenedV2Session, V2ResumeSessionBuilder, V2Session, V2SessionBuilder};

pub(crate) use coordinator::SessionItem;
pub(crate) use entry::SessionEntry;
pub(crate) use supervisor::SessionsSupervisor;
pub(crate) use table::SessionTable;
