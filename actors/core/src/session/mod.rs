//! Sessions of protocol v1: building, restoring, reading.
//!
//! Every session of a client is an actor, its coordinator: it owns the order of the session's
//! updates, requests and ends of turns, and the deadlines of cancelled turns. What happens to one
//! session (nobody reads it, its coordinator dies, its agent floods it) stays in that session.

mod active;
mod builder;
mod coordinator;
mod message;
mod queue;
mod restore;
mod setup;
mod supervisor;
mod table;
mod turns;

pub use active::ActiveSession;
pub use builder::{Blocking, NonBlocking, SessionBlockState, SessionBuilder};
pub use message::SessionMessage;
pub use restore::{RestoreSessionBuilder, RestoredSession};

pub(crate) use coordinator::SessionItem;
pub(crate) use supervisor::SessionsSupervisor;
pub(crate) use table::{SessionEntry, SessionTable};
