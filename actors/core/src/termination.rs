//! How a connection ended, and what that means for requests that were still waiting.

use greenroom_protocol::{CONNECTION_TERMINATED_REASON, Error, INCOMING_TRANSPORT_CLOSED_REASON, Origin};

use crate::link::Exit;

/// Why a connection is over. The first cause stays (spec §6.2, 63).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ConnectionTermination {
    /// The peer closed its side, and nobody worked in the foreground. Also the end of a connection
    /// that [`Connection::finish`](crate::Connection::finish) was called on.
    IncomingClosed,
    /// The foreground of `connect_with` was done.
    LocalShutdown,
    /// The foreground of `connect_with` failed.
    ForegroundError(Error),
    /// The transport did not open or broke, the peer did not read, or an actor died too often.
    TransportError(Error),
    /// A runner or close callback failed, or, with
    /// [`end_on_failure`](crate::Builder::end_on_failure), a task or an ordered callback.
    HandlerError(Error),
    /// The connection was dropped, or its supervisor died, while it ran.
    Dropped,
}

impl ConnectionTermination {
    /// The error behind it, if there is one.
    #[must_use]
    pub fn error(&self) -> Option<&Error> {
        match self {
            Self::ForegroundError(error) | Self::TransportError(error) | Self::HandlerError(error) => Some(error),
            Self::IncomingClosed | Self::LocalShutdown | Self::Dropped => None,
        }
    }

    /// Whether it ended without a failure: `IncomingClosed` or `LocalShutdown`.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        matches!(self, Self::IncomingClosed | Self::LocalShutdown)
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::IncomingClosed => "incoming_closed",
            Self::LocalShutdown => "local_shutdown",
            Self::ForegroundError(_) => "foreground_error",
            Self::TransportError(_) => "transport_error",
            Self::HandlerError(_) => "handler_error",
            Self::Dropped => "dropped",
        }
    }
}

/// Why requests fail that have no answer yet.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    /// The peer closed its side; with the end of its process, when that is known.
    IncomingClosed(Option<Exit>),
    /// The connection ended.
    Terminated(ConnectionTermination),
}

impl Cause {
    /// The error of a request with this method.
    pub(crate) fn to_error(&self, method: &str) -> Error {
        let mut data = serde_json::Map::new();
        let origin = match self {
            Self::IncomingClosed(exit) => {
                data.insert("reason".into(), INCOMING_TRANSPORT_CLOSED_REASON.into());
                if let Some(exit) = exit {
                    data.insert("exit".into(), exit.summary().into());
                }
                Origin::IncomingClosed
            }
            Self::Terminated(termination) => {
                data.insert("reason".into(), CONNECTION_TERMINATED_REASON.into());
                data.insert("termination".into(), termination.kind().into());
                // Only what this crate family wrote: the words of an application, which a
                // component of this process may have ended with, are for the local caller.
                if let ConnectionTermination::TransportError(error) = termination
                    && error.origin() != Origin::Ordinary
                    && let Some(detail) = &error.data
                {
                    data.insert("cause".into(), detail.clone());
                }
                Origin::Terminated
            }
        };
        if !method.is_empty() {
            data.insert("method".into(), method.into());
        }
        let error = Error::internal_error().data(serde_json::Value::Object(data)).with_origin(origin);
        match self {
            Self::IncomingClosed(Some(exit)) => error.with_source(exit.clone()),
            Self::Terminated(termination) => match termination.error() {
                Some(cause) => error.with_source(cause.clone()),
                None => error,
            },
            Self::IncomingClosed(None) => error,
        }
    }
}
