//! Small functions of the documented interface, free of state.
//!
//! The module keeps its documented name, so that programs compile unchanged.

pub use crate::matching::{MatchDispatch, MatchDispatchFrom, TypeNotification};

use std::pin::pin;

use futures_util::future::{Either, select};
use greenroom_protocol::schema::ProtocolVersion;
use greenroom_protocol::{__private as codec, Error};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads one JSON-shaped type as another.
///
/// # Errors
/// `-32603` when `value` cannot be serialised, `-32700` when it does not fit `M`. The reason in the
/// data may quote a value.
pub fn json_cast<N: Serialize, M: DeserializeOwned>(value: N) -> Result<M, Error> {
    codec::read_result_value(codec::result_value(&value)?)
}

/// Reads params of one type as params of another.
///
/// # Errors
/// `-32603` when `params` cannot be serialised, `-32602` when they do not fit `M`.
pub fn json_cast_params<N: Serialize, M: DeserializeOwned>(params: N) -> Result<M, Error> {
    codec::reread_params(&params)
}

/// `-32603` with this text as data. The text travels to the peer.
#[must_use]
pub fn internal_error(text: impl ToString) -> Error {
    Error::internal_error().data(text.to_string())
}

/// `-32700` with this text as data. The text travels to the peer.
#[must_use]
pub fn parse_error(text: impl ToString) -> Error {
    Error::parse_error().data(text.to_string())
}

/// The answer to an `initialize` that asks for a version below every supported one: `-32022` with
/// `requested` and `supported` as data.
#[must_use]
pub fn unsupported_protocol_version(requested: ProtocolVersion, supported: &[ProtocolVersion]) -> Error {
    Error::new(-32022, "Unsupported protocol version")
        .data(serde_json::json!({ "requested": requested, "supported": supported }))
}

/// Runs `foreground` to its end, with `background` beside it for as long as that lasts.
///
/// A background that ends with `Ok` lets the foreground go on. If both are ready, the foreground
/// wins. As cancel-safe as its parts: dropping the future drops both.
///
/// # Errors
/// The error of the foreground, or the error of the background if it came first.
pub async fn run_until<T, E>(
    background: impl Future<Output = Result<(), E>>,
    foreground: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    // The foreground is asked first: if both are ready, its value is not lost.
    match select(pin!(foreground), pin!(background)).await {
        Either::Left((done, _)) => done,
        Either::Right((Ok(()), foreground)) => foreground.await,
        Either::Right((Err(error), _)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::{Value, json};
    use std::future::{pending, ready};

    use super::*;

    #[test]
    fn casts_name_the_side_that_does_not_fit() {
        assert_eq!(json_cast::<_, Vec<u8>>(json!([1, 2])).expect("fits"), [1, 2]);
        assert_eq!(i32::from(json_cast::<_, Vec<u8>>(json!("x")).expect_err("no list").code), -32700);
        assert_eq!(json_cast_params::<_, Value>(json!({"a": 1})).expect("fits"), json!({"a": 1}));
        assert_eq!(i32::from(json_cast_params::<_, Vec<u8>>(json!("x")).expect_err("no list").code), -32602);
    }

    #[test]
    fn errors_carry_their_text_as_data() {
        assert_eq!(internal_error("disk full"), Error::internal_error().data("disk full"));
        assert_eq!(parse_error("line 1"), Error::parse_error().data("line 1"));
    }

    #[test]
    fn a_refused_version_names_both_sides() {
        let error = unsupported_protocol_version(ProtocolVersion::V0, &[ProtocolVersion::V1]);
        assert_eq!(i32::from(error.code), -32022);
        assert_eq!(error.data, Some(json!({ "requested": 0, "supported": [1] })));
    }

    #[test]
    fn the_foreground_decides_and_a_failed_background_interrupts() {
        let now = |future: futures_util::future::BoxFuture<'_, Result<u8, &'static str>>| future.now_or_never();
        assert_eq!(now(run_until(pending(), ready(Ok(1))).boxed()), Some(Ok(1)));
        assert_eq!(now(run_until(ready(Ok(())), ready(Ok(2))).boxed()), Some(Ok(2)));
        assert_eq!(now(run_until(ready(Err("late")), ready(Ok(3))).boxed()), Some(Ok(3)));
        assert_eq!(now(run_until(ready(Err("gone")), pending()).boxed()), Some(Err("gone")));
        assert_eq!(now(run_until(ready(Ok(())), pending()).boxed()), None);
    }
}
