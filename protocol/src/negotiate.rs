//! Protocol versions in the params and results of `initialize`: finding, replacing, translating.
//!
//! Pure functions on JSON text. What is not touched keeps its exact spelling.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::schema::v1;
use crate::span::Span;

/// JSON-RPC code of a protocol version that the receiver does not serve.
pub const UNSUPPORTED_VERSION: i32 = -32022;

/// A protocol version and where it stands in the JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The version.
    pub number: u16,
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
    #[must_use]
    pub fn find(text: &[u8]) -> Option<Self> {
        // Serde would read an array as a struct, by position.
        let text = std::str::from_utf8(text).ok()?;
        let found = serde_json::from_str::<Versioned<'_>>(text).ok().filter(|_| text.trim_start().starts_with('{'))?;
        let found = found.version.get();
        let start = found.as_ptr() as usize - text.as_ptr() as usize;
        Some(Self { number: found.parse().ok()?, span: Span::new(start, start + found.len()) })
    }

    /// The same text with another version.
    #[must_use]
    pub fn replaced(self, text: &Bytes, number: u16) -> Bytes {
        if self.number == number {
            return text.clone();
        }
        let mut replaced = Vec::with_capacity(text.len() + 5);
        replaced.extend_from_slice(&text[..self.span.start()]);
        replaced.extend_from_slice(number.to_string().as_bytes());
        replaced.extend_from_slice(&text[self.span.end()..]);
        replaced.into()
    }
}

/// `-32602`: the version is absent or no version.
#[must_use]
pub fn invalid_version() -> Error {
    Error::invalid_params().data("initialize.protocolVersion must be a valid ACP protocol version")
}

/// `-32022`: none of the versions that this side serves fits.
#[must_use]
pub fn unsupported_version(requested: u16, supported: &[u16]) -> Error {
    Error::new(UNSUPPORTED_VERSION, "Unsupported protocol version")
        .data(json!({ "requested": requested, "supported": supported }))
}

/// What an initialize of a later version says to an agent of version 1: identity, and the
/// capabilities that both versions have. File system and terminals are never switched on by it
/// (spec §5.1).
#[must_use]
pub fn to_v1(params: &[u8]) -> Bytes {
    let params: Map<String, Value> = serde_json::from_slice(params).unwrap_or_default();
    let mut request = v1::InitializeRequest::new(v1_version());
    request.client_info = params.get("info").and_then(read);
    request.meta = params.get("_meta").and_then(read);
    let mut shared = Map::new();
    if let Some(Value::Object(capabilities)) = params.get("capabilities") {
        if let Some(Value::Object(auth)) = capabilities.get("auth") {
            let mut kept =
                Map::from_iter([("terminal".to_owned(), auth.get("terminal").is_some_and(Value::is_object).into())]);
            kept.extend(
                auth.get("_meta").filter(|meta| meta.is_object()).map(|meta| ("_meta".to_owned(), meta.clone())),
            );
            shared.insert("auth".into(), kept.into());
        }
        for name in ["elicitation", "_meta"] {
            shared.extend(capabilities.get(name).map(|value| (name.to_owned(), value.clone())));
        }
    }
    shared.insert("session".into(), json!({ "configOptions": { "boolean": {} } }));
    request.client_capabilities = readable(shared);
    serde_json::to_vec(&request).unwrap_or_default().into()
}

/// What an initialize of a later version says to an agent of version 2: the parts that do not fit
/// are dropped, an identity that cannot be read is `unknown`.
#[cfg(feature = "unstable_protocol_v2")]
#[must_use]
pub fn to_v2(params: &[u8]) -> Bytes {
    use crate::schema::v2;
    let params: Map<String, Value> = serde_json::from_slice(params).unwrap_or_default();
    let info = params.get("info").and_then(read).unwrap_or_else(|| v2::Implementation::new("unknown", "unknown"));
    let mut request = v2::InitializeRequest::new(crate::schema::ProtocolVersion::V2, info);
    request.meta = params.get("_meta").and_then(read);
    if let Some(Value::Object(capabilities)) = params.get("capabilities") {
        request.capabilities = readable(capabilities.clone());
    }
    serde_json::to_vec(&request).unwrap_or_default().into()
}

fn v1_version() -> crate::schema::ProtocolVersion {
    crate::schema::ProtocolVersion::V1
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> Option<T> {
    // `null` and everything of the wrong type count as absent.
    serde_json::from_value(value.clone()).ok()
}

/// Reads an object, member by member if it has to be: what does not fit is left out.
fn readable<T: serde::de::DeserializeOwned + Default>(members: Map<String, Value>) -> T {
    if let Ok(whole) = serde_json::from_value(Value::Object(members.clone())) {
        return whole;
    }
    let fits = |(name, value): &(String, Value)| {
        serde_json::from_value::<T>(Value::Object(Map::from_iter([(name.clone(), value.clone())]))).is_ok()
    };
    let fitting: Map<String, Value> = members.into_iter().filter(fits).collect();
    serde_json::from_value(Value::Object(fitting)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_integers_are_versions() {
        for (text, number) in [
            (r#"{"protocolVersion":1}"#, Some(1)),
            (r#" {"protocolVersion":1}"#, Some(1)),
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
    fn a_version_is_replaced_in_place() {
        let text = Bytes::from_static(br#"{"a":0, "protocolVersion" : 10 ,"b":[0]}"#);
        let found = Version::find(&text).expect("there is one");
        assert_eq!(&found.replaced(&text, 2)[..], br#"{"a":0, "protocolVersion" : 2 ,"b":[0]}"#);
        assert_eq!(found.replaced(&text, 10), text);
    }

    fn v1_of(params: Value) -> Value {
        serde_json::from_slice(&to_v1(params.to_string().as_bytes())).expect("JSON")
    }

    #[test]
    fn a_later_version_says_to_version_one_what_both_have() {
        let told = v1_of(json!({
            "protocolVersion": 3,
            "info": { "name": "client", "version": "9" },
            "capabilities": {
                "auth": { "terminal": {}, "future": 1 },
                "elicitation": { "form": {} },
                "session": { "configOptions": { "other": {} } },
                "fs": { "readTextFile": true },
                "terminal": true,
                "_meta": { "k": [1] },
            },
            "_meta": { "m": null },
            "future": 1,
        }));
        let plain = v1_of(json!({ "protocolVersion": 2 }));
        assert_eq!(told["protocolVersion"], 1);
        assert_eq!(told["clientInfo"], json!({ "name": "client", "version": "9" }));
        assert_eq!(told["_meta"], json!({ "m": null }));
        let capabilities = &told["clientCapabilities"];
        assert_eq!(capabilities["auth"]["terminal"], true);
        assert_eq!(capabilities["elicitation"], json!({ "form": {} }));
        assert_eq!(capabilities["session"], json!({ "configOptions": { "boolean": {} } }));
        assert_eq!(capabilities["_meta"], json!({ "k": [1] }));
        assert_eq!(capabilities["fs"], plain["clientCapabilities"]["fs"], "never switched on");
        assert_eq!(capabilities["terminal"], plain["clientCapabilities"]["terminal"], "never switched on");
        assert!(told.get("future").is_none());
    }

    #[test]
    fn parts_that_do_not_fit_are_left_out() {
        let told = v1_of(json!({
            "protocolVersion": 2,
            "info": "me",
            "capabilities": { "auth": { "terminal": true, "_meta": 1 }, "elicitation": 3, "_meta": "x" },
            "_meta": [],
        }));
        assert!(told.get("clientInfo").is_none() && told.get("_meta").is_none());
        let capabilities = &told["clientCapabilities"];
        assert_ne!(capabilities["auth"]["terminal"], true, "only an object means yes");
        assert!(capabilities.get("elicitation").is_none() && capabilities.get("_meta").is_none(), "{capabilities}");
        assert_eq!(capabilities["session"], json!({ "configOptions": { "boolean": {} } }));
    }

    #[cfg(feature = "unstable_protocol_v2")]
    #[test]
    fn a_later_version_is_made_readable_for_version_two() {
        let told =
            |params: Value| -> Value { serde_json::from_slice(&to_v2(params.to_string().as_bytes())).expect("JSON") };
        let bad = told(json!({ "protocolVersion": 7, "info": 1, "capabilities": { "elicitation": 3 }, "_meta": 1 }));
        assert_eq!(bad["protocolVersion"], 2);
        assert_eq!((&bad["info"]["name"], &bad["info"]["version"]), (&json!("unknown"), &json!("unknown")));
        assert!(bad.get("_meta").is_none());
        let good = told(json!({ "protocolVersion": 7, "info": { "name": "n", "version": "v" }, "_meta": { "k": 1 } }));
        assert_eq!((&good["info"]["name"], &good["_meta"]), (&json!("n"), &json!({ "k": 1 })));
    }
}
