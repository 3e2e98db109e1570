//! Sessions of protocol version 2: opening them and commanding them.
//!
//! A handle of version 2 owns nothing: updates and requests of the session go to the handlers of
//! the connection, whoever holds a handle.

mod builder;
mod command;

#[cfg(feature = "unstable_session_fork")]
pub use builder::V2ForkSessionBuilder;
pub use builder::{V2ResumeSessionBuilder, V2SessionBuilder};
pub use command::{OpenedV2Session, V2Session};
