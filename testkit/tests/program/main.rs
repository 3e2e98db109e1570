//! The `greenroom` program, started as users start it, with real processes around it.

mod agent;
mod memory;
mod options;
mod privacy;
mod processes;
mod prompt;
mod support;
