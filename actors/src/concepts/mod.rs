//! How to work with Greenroom, one chapter for each idea.
//!
//! | chapter | answers |
//! |---|---|
//! | [`connections`] | What is a connection, how does it start, and how does it end? |
//! | [`callbacks`] | How do handlers work, what must they not do, and who answers a request? |
//! | [`ordering`] | What comes before what? |
//! | [`cancellation`] | How is one request cancelled, on either side and through proxies? |
//! | [`error_handling`] | Where does an error go, and how do I tell a local failure from a peer's? |
//! | [`peers`] | Whom do I talk to, directly and through a conductor? |
//! | [`sessions`] | How do I open a session, read it, cancel it, and in which version? |
//! | [`mcp_servers`] | How do I offer tools to an agent through its own connection? |
//! | [`proxies`] | How do I stand between a client and an agent? |
//! | [`acp_basics`] | Which messages make a conversation? |
//! | [`supervision`] | Which actors are there, what survives what, and how do I break them? |
//!
//! The samples are programs. All of them are compiled, and all but those that would start another
//! program are run by the tests of this crate. Most join a client and an agent in one process: a
//! builder is a transport too.

pub mod acp_basics;
pub mod callbacks;
pub mod cancellation;
pub mod connections;
pub mod error_handling;
#[cfg(feature = "unstable_mcp_over_acp")]
pub mod mcp_servers;
pub mod ordering;
pub mod peers;
pub mod proxies;
pub mod sessions;
pub mod supervision;
