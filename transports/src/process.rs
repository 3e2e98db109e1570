//! An agent that runs as a child process: how it is started, watched and ended.

mod agent;
mod config;
#[cfg(unix)]
mod group;
#[cfg(not(unix))]
#[path = "process/single.rs"]
mod group;
mod ladder;
mod raw;
mod spawn;
mod stderr;
mod stdin;
mod words;

pub use agent::AcpAgent;
pub use config::AcpAgentConfig;
pub use ladder::{Ladder, Rung};
pub use raw::{Child, ChildStderr, ChildStdin, ChildStdout};
pub use spawn::AgentProcess;
