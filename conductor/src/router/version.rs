//! What a chain does about the protocol version of an initialize.

use bytes::Bytes;
use greenroom_protocol::Error;
use greenroom_protocol::negotiate::{invalid_version, unsupported_version};

pub(super) use greenroom_protocol::negotiate::Version;

/// The version that initialize params ask for, and the params to pass on.
///
/// Params stay as they are, except that version 0 becomes 1 in a chain that serves version 1.
///
/// # Errors
/// `-32602` without a valid version, `-32022` when it is too low for the chain.
pub(super) fn requested(params: Bytes, lowest: u16) -> Result<(u16, Bytes), Error> {
    let Some(asked) = Version::find(&params) else {
        return Err(invalid_version());
    };
    if asked.number >= lowest {
        return Ok((asked.number, params));
    }
    if lowest > 1 {
        return Err(unsupported_version(asked.number, &[lowest]));
    }
    Ok((1, asked.replaced(&params, 1)))
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

#[cfg(test)]
mod tests {
    use super::*;

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
