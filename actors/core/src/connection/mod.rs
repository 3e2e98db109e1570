//! The actors of one connection, and how they are put together.

mod batch;
mod call;
mod dispatch;
mod drain;
mod driver;
mod guard;
mod idleness;
mod incoming;
mod last_words;
mod message;
mod open_calls;
mod outgoing;
mod pending;
mod raw;
mod reader;
mod shared;
mod start;
mod supervisor;
mod tasks;
mod trace;
mod writer;

pub(crate) use call::OpenCall;
pub(crate) use dispatch::panicked;
pub use message::Wire;
pub(crate) use message::{InboundCall, MethodText, Step};
pub use raw::{OnEnd, RawConnection};
pub use reader::{Outlet, outlet_to};
pub(crate) use shared::{Shared, Waiter};
pub(crate) use start::{DRAIN, Prepared, Spec, Started};
pub(crate) use supervisor::{ConnectionMessage, End};
pub(crate) use tasks::TaskItem;
