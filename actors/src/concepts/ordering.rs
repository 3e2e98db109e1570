//! Ordering: what comes before what, and where no order is promised.
//!
#![doc = include_str!("ordering.md")]
