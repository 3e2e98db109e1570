//! Sessions of protocol v1 between real connections; the agent is a script.

mod cancelling;
mod coordinator;
mod dropping;
mod hostile;
mod leaving;
mod opening;
mod proxied;
mod reading;
mod restoring;
mod support;
