//! Matching a notification that was received without a type.

use greenroom_protocol::{JsonRpcNotification, Result, UntypedMessage};

use super::typed::{is_foreign, log_malformed};

/// Tries one type after the other on a notification; the first that fits takes it.
///
/// A notification whose method fits and whose params do not is logged and ignored: nothing can
/// answer it. After an error of a handler nothing more is tried; [`otherwise`](Self::otherwise)
/// returns it.
#[derive(Debug)]
#[must_use = "end the chain with `otherwise`"]
pub struct TypeNotification {
    /// `None` once somebody took it.
    state: Result<Option<UntypedMessage>>,
}

impl TypeNotification {
    /// Begins with a notification that nobody took yet.
    pub fn new(message: UntypedMessage) -> Self {
        Self { state: Ok(Some(message)) }
    }

    /// Takes a notification of a type.
    pub async fn handle_if<N: JsonRpcNotification>(self, op: impl AsyncFnOnce(N) -> Result<()>) -> Self {
        let Ok(Some(message)) = self.state else { return self };
        if !N::matches_method(&message.method) {
            return Self { state: Ok(Some(message)) };
        }
        let state = match N::parse_message(&message.method, &message.params) {
            Ok(notification) => op(notification).await.map(|()| None),
            Err(_) if is_foreign::<N>(&message) => Ok(Some(message)),
            Err(error) => {
                log_malformed(&message.method, &error);
                Ok(None)
            }
        };
        Self { state }
    }

    /// Takes whatever is left.
    ///
    /// # Errors
    /// The error of the handler that took it, or of `op`.
    pub async fn otherwise(self, op: impl AsyncFnOnce(UntypedMessage) -> Result<()>) -> Result<()> {
        match self.state? {
            Some(message) => op(message).await,
            None => Ok(()),
        }
    }
}
