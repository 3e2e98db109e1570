//! The supervised actors below greenroom.
pub mod link;
mod port;
