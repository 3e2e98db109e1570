//! Recordings of a chain: the logical messages between its components, as they pass.
//!
//! [`ConductorImpl::trace_to_path`](crate::ConductorImpl::trace_to_path) writes one JSON object a
//! line ([`TraceEvent`]); [`ConductorImpl::trace_to`](crate::ConductorImpl::trace_to) hands the
//! events to a [`WriteEvent`] of the application.
//!
//! What is recorded is the idealised flow: successor envelopes and `mcp/message` are unwrapped, a
//! proxy's initialize is called `initialize`, finding out the dialect of a proxy is not shown, and
//! ids are those of the sender. Each entry of a batch is an event of its own; on the wire the batch
//! stays whole.
//!
//! A recording never touches the chain. Events wait in a mailbox with a bound of bytes for an actor
//! that writes them on another thread; what does not fit is counted and shown as
//! [`TraceEvent::Lost`] at the place where it is missing. That actor may die (it is restarted, and
//! goes on where it stopped) or hang.
//!
//! # Privacy
//!
//! Recordings hold prompts, files and all other payloads. Hidden are only the values of
//! environments and of headers, and the credentials in HTTP URLs:
//! [`Redacted`](greenroom_protocol::Redacted) has the rules. Look through a recording before
//! sharing it.

mod event;
mod line;
mod sink;
mod stage;
mod tap;

pub use event::{LostEvent, NoiseEvent, NotificationEvent, Protocol, RequestEvent, ResponseEvent, TraceEvent};
pub use sink::{TraceWriter, WriteEvent};

pub(crate) use sink::WriteLines;
pub(crate) use stage::TraceStage;
pub(crate) use tap::{Record, Tap};
