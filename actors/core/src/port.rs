//! placeholder
pub struct Port;
