//! The one member of an initialize that a router reads: `protocolVersion`.

use bytes::Bytes;
use greenroom_protocol::{Error, Span};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A protocol version and where it stands in the JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) number: u16,
    span: Span,
}

#[derive(Deserialize)]
struct Versioned<'a> {
    #[serde(borrow, rename = "protocolVersion")]
    version: &'a RawValue,
}

impl Version {
    /// Finds the version in the params or the result of an initialize. `None` when it is absent,
    /// occurs twice or is no integer within 0..=65535.
    pub(super) fn find(text: &[u8]) -> Option<Self> {
        // Serde would read an array as a struct, by position.
        let text = std::str::from_utf8(text).ok().filter(|text| text.starts_with('{'))?;
        let found = serde_json::from_str::<Versioned<'_>>(text).ok()?.version.get();
        let start = found.as_ptr() as usize - text.as_ptr() as usize;
        Some(Self { number: found.parse().ok()?, span: Span::new(start, start + found.len()) })
    }
}

/// The version that initialize params ask for, and the params to pass on.
///
/// Params stay as they are, except that version 0 becomes 1 in a chain that serves version 1.
///
/// # Errors
/// `-32602` without a valid version, `-32022` when it is too low for the chain.
pub(super) fn requested(params: Bytes, lowest: u16) -> Result<(u16, Bytes), Error> {
    let Some(asked) = Version::find(&params) else {
        return Err(Error::invalid_params().data("initialize.protocolVersion must be a valid ACP protocol version"));
    };
    if asked.number >= lowest {
        return Ok((asked.number, params));
    }
    if lowest > 1 {
        let data = serde_json::json!({ "requested": asked.number, "supported": [lowest] });
        return Err(Error::new(UNSUPPORTED_VERSION, "Unsupported protocol version").data(data));
    }
    let mut raised = Vec::with_capacity(params.len());
    raised.extend_from_slice(&params[..asked.span.start()]);
    raised.push(b'1');
    raised.extend_from_slice(&params[asked.span.end()..]);
    Ok((1, raised.into()))
}

/// Checks what the final agent selected: a lower version passes, a higher one or none does not.
///
/// # Errors
/// `-32603` that says which of the two it was.
pub(super) fn check_selected(result: &[u8], sent: u16) -> Result<(), Error> {
    match Version::find(result) {
        Some(selected) if selected.number <= sent => Ok(()),
        Some(selected) => Err(Error::internal_error().data(format!(
            "the agent selected protocol version {}, above the requested version {sent}",
            selected.number
        ))),
        None => Err(Error::internal_error().data("the agent's initialize result has no valid protocolVersion")),
    }
}

/// JSON-RPC code of a protocol version that the receiver does not serve.
const UNSUPPORTED_VERSION: i32 = -32022;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_integers_are_versions() {
        for (text, number) in [
            (r#"{"protocolVersion":1}"#, Some(1)),
            (r#"{"x":{"protocolVersion":9},"protocolVersion" : 2 }"#, Some(2)),
            (r#"{"protocolVersion":65535}"#, Some(65535)),
            (r#"{"protocol\u0056ersion":3}"#, Some(3)),
            (r#"{"protocolVersion":0}"#, Some(0)),
            (r#"{"protocolVersion":65536}"#, None),
            (r#"{"protocolVersion":-1}"#, None),
            (r#"{"protocolVersion":1.0}"#, None),
            (r#"{"protocolVersion":1e0}"#, None),
            (r#"{"protocolVersion":"1"}"#, None),
            (r#"{"protocolVersion":null}"#, None),
            (r#"{"protocolVersion":1,"protocolVersion":2}"#, None),
            ("{}", None),
            ("[1]", None),
            ("null", None),
            ("", None),
        ] {
            assert_eq!(Version::find(text.as_bytes()).map(|version| version.number), number, "{text}");
        }
    }

    #[test]
    fn version_zero_is_raised_in_place() {
        let text = r#"{"a":0, "protocolVersion" : 0 ,"b":[0]}"#;
        let (number, params) = requested(text.into(), 1).expect("served as version 1");
        assert_eq!((number, &params[..]), (1, &br#"{"a":0, "protocolVersion" : 1 ,"b":[0]}"#[..]));
        let error = requested(text.into(), 2).expect_err("too low");
        assert_eq!(i32::from(error.code), -32022);
        assert_eq!(error.data, Some(serde_json::json!({ "requested": 0, "supported": [2] })));
    }
}
