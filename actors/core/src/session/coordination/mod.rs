//! Sharing sessions of protocol version 2 between parts of one program.
//!
//! Two views of the same session, a view that is closed and opened again, a load that nobody waits for
//! any more: who resumes, who closes, and when? [`coordinate_sessions`] gives one answer, as an actor of
//! the connection:
//!
//! - **Shared loads.** Loads of one session share one `session/resume` (from the start of its history,
//!   in the one working directory of the coordination) and one [`SessionLog`]. It is shown when the
//!   resume was answered, never in part; live updates are appended afterwards.
//! - **Leases.** Each load counts until it is dropped, whether its session was taken or not. Dropping
//!   some leaves the others alone; with the last, the session is closed.
//! - **Abandonment.** When every load is dropped while the resume is under way, the replay is discarded
//!   at once. The resume is neither cancelled nor forgotten: its answer is waited for, then the session
//!   is closed.
//! - **Replacement.** A load that comes during abandonment or close waits for the old resume and for a
//!   successful close, then starts a fresh replay.
//! - **Failure.** A refused resume fails its own loads; one that waits, or a later one, tries again. A
//!   refused close fails those that wait, and blocks that session, and no other, until the next
//!   connection. Nothing is retried by itself.
//!
//! Handlers of the connection only put what they see into one queue: updates, answers and the end of the
//! input, in wire order. The actor works it off; what the application decided before (a load, a dropped
//! lease) goes first, so that an answer is never shown to somebody who left.
//!
//! ```
//! use greenroom_actors::coordination::with_sessions;
//! use greenroom_actors::schema::{ProtocolVersion, v2};
//! use greenroom_actors::{Agent, Responder, on_receive_request};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> greenroom_actors::Result<()> {
//! let info = v2::Implementation::new("example", "1");
//! let initialize = v2::InitializeRequest::new(ProtocolVersion::V2, info.clone());
//! # let agent = Agent
//! #     .v2()
//! #     .on_receive_request(
//! #         async move |_: v2::InitializeRequest, responder: Responder<v2::InitializeResponse>, _cx| {
//! #             responder.respond(v2::InitializeResponse::new(ProtocolVersion::V2, info.clone()))
//! #         },
//! #         on_receive_request!(),
//! #     )
//! #     .on_receive_request(
//! #         async |_: v2::ResumeSessionRequest, responder: Responder<v2::ResumeSessionResponse>, _cx| {
//! #             responder.respond(v2::ResumeSessionResponse::new())
//! #         },
//! #         on_receive_request!(),
//! #     );
//! with_sessions(agent, initialize, "/work", async |sessions| {
//!     // Two views, one `session/resume`.
//!     let (left, right) = (sessions.load("existing"), sessions.load("existing"));
//!     let (left, right) = (left.await?, right.await?);
//!     assert_eq!(left.log().len(), right.log().len());
//!     Ok(())
//! })
//! .await
//! # }
//! ```
//!
//! There are no timeouts, retries, prompts or new sessions in this: those are the application's. A log
//! holds at most [`session_log_cap`](crate::ConnectionOptions::session_log_cap) bytes.
//!
//! [`coordinate_sessions`]: crate::V2ConnectionTo::coordinate_sessions

mod actor;
mod handle;
mod log;
mod observer;
mod policy;
mod start;

pub use handle::{SessionLoad, SharedSession, SharedSessions};
pub use log::SessionLog;
pub use start::with_sessions;
