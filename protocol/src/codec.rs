//! How typed params and results become JSON text and back; shared by this crate's
//! implementations of the message traits and by the derived ones.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};

/// Refuses a method of another type.
///
/// # Errors
/// `-32601` with the method as data.
pub fn expect_method(method: &str, expected: &str) -> Result<()> {
    if method == expected { Ok(()) } else { Err(Error::method_not_found().data(method.to_owned())) }
}

/// Reads params text as a type; null stands for omitted params.
///
/// # Errors
/// `-32602` with the reason as data.
pub fn read_params<T: DeserializeOwned>(params: &str) -> Result<T> {
    read_text(params).map_err(|error| {
        Error::invalid_params().data(serde_json::json!({ "error": error.to_string(), "phase": "deserialization" }))
    })
}

/// Reads text as a type. For a type that takes no null, null stands for an object without members:
/// peers leave params out, or answer a request that has nothing to say with null.
fn read_text<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    match serde_json::from_str(text) {
        Err(_) if text.trim_ascii() == "null" => serde_json::from_str("{}"),
        read => read,
    }
}

/// Reads params that are still some other type.
///
/// # Errors
/// `-32603` when `params` cannot be serialised, else as [`read_params`].
pub fn reread_params<T: DeserializeOwned>(params: &impl Serialize) -> Result<T> {
    read_params(&serde_json::to_string(params).map_err(Error::into_internal_error)?)
}

/// The JSON text of params; empty for null, because JSON-RPC has no null params.
///
/// # Errors
/// `-32603` when the value cannot be serialised or is neither an object, an array nor null.
pub fn write_params(params: &impl Serialize) -> Result<Vec<u8>> {
    let text = serde_json::to_vec(params).map_err(Error::into_internal_error)?;
    match text.first() {
        Some(b'{' | b'[') => Ok(text),
        Some(b'n') => Ok(Vec::new()),
        _ => Err(Error::internal_error().data("params must serialise as an object or an array")),
    }
}

/// Reads a result from its text.
///
/// # Errors
/// `-32700` with the reason as data.
pub fn read_result<T: DeserializeOwned>(text: &str) -> Result<T> {
    read_text(text).map_err(|error| Error::parse_error().data(error.to_string()))
}

/// Reads a result from a value.
///
/// # Errors
/// As [`read_result`].
pub fn read_result_value<T: DeserializeOwned>(value: Value) -> Result<T> {
    let null = value.is_null();
    let read = match serde_json::from_value(value) {
        Err(_) if null => serde_json::from_value(Value::Object(serde_json::Map::new())),
        read => read,
    };
    read.map_err(|error| Error::parse_error().data(error.to_string()))
}

/// The JSON text of a result.
///
/// # Errors
/// `-32603` when it cannot be serialised.
pub fn write_result(result: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(result).map_err(Error::into_internal_error)
}

/// A result as a value.
///
/// # Errors
/// As [`write_result`].
pub fn result_value(result: &impl Serialize) -> Result<Value> {
    serde_json::to_value(result).map_err(Error::into_internal_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Optional {
        limit: Option<u8>,
    }

    #[test]
    fn omitted_params_are_an_empty_object_for_types_that_take_no_null() {
        assert_eq!(read_params::<Optional>("null").expect("optional"), Optional { limit: None });
        assert_eq!(read_params::<Option<Optional>>("null").expect("nullable"), None);
        let error = read_params::<[u8; 1]>("null").expect_err("needs an item");
        assert_eq!(i32::from(error.code), -32602);
    }

    #[test]
    fn a_null_result_is_success_for_types_without_required_members() {
        assert_eq!(read_result::<Optional>("null").expect("optional"), Optional { limit: None });
        assert_eq!(read_result_value::<Optional>(Value::Null).expect("optional"), Optional { limit: None });
        assert_eq!(read_result_value::<Value>(Value::Null).expect("nullable"), Value::Null);
        assert_eq!(i32::from(read_result::<[u8; 1]>("null").expect_err("needs an item").code), -32700);
        assert_eq!(i32::from(read_result_value::<[u8; 1]>(Value::Null).expect_err("needs an item").code), -32700);
    }

    #[test]
    fn params_are_structured_or_left_out() {
        assert_eq!(write_params(&()).expect("null"), b"");
        assert_eq!(write_params(&[1]).expect("array"), b"[1]");
        assert_eq!(write_params(&serde_json::json!({"a": 1})).expect("object"), br#"{"a":1}"#);
        for scalar in [serde_json::json!(1), serde_json::json!(true), serde_json::json!("n")] {
            assert_eq!(i32::from(write_params(&scalar).expect_err("scalar").code), -32603, "{scalar}");
        }
    }
}
