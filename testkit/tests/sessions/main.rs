//! Sessions of protocol v1 between real connections; the agent is a script.

mod cancelling;
mod coordinator;
mod hostile;
mod opening;
mod proxied;
mod reading;
mod restoring;
mod support;
