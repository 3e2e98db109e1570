//! What the seed documents promise about cancellation, closing and order, one test a statement.
//!
//! The numbers are those of the list that the project keeps of these promises: `statement_09_…`
//! tests the ninth. Where a binding decision of the project overrides a promise, the test says so
//! and shows what the decision says.

mod adapter;
#[cfg(all(feature = "unstable_protocol_v2", feature = "unstable_mcp_over_acp", feature = "unstable_session_fork"))]
mod attaching;
mod batches;
mod cancelling;
mod cancelling_inbound;
mod cancelling_through;
mod closing;
mod drivers;
mod driving;
mod dynamic;
mod ending;
mod ordering;
mod sending;
mod shutdown;
mod support;
mod wire;
