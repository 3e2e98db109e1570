//! Request ids: the typed one that applications see, and the exact one that relays keep.

pub use agent_client_protocol_schema::rpc::RequestId;

/// An id as it was spelled on one hop, for restoring it in the answer.
///
/// `1`, `"1"` and `1.0` are three different ids. Small integers, the usual case, need no
/// allocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RawId {
    /// An integer in its canonical spelling.
    Int(i64),
    /// Any other JSON value, as text: a string with its quotes, `null`, an unusual number.
    Text(Box<str>),
}

impl RawId {
    /// Reads the JSON text of an id. Returns `None` for text that is not UTF-8.
    #[must_use]
    pub fn from_json(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        // "007" or "+7" or "-0" parse too; only the spelling that we would write may be shortened.
        if is_canonical(text)
            && let Ok(number) = text.parse::<i64>()
        {
            return Some(Self::Int(number));
        }
        Some(Self::Text(text.into()))
    }

    /// Appends the JSON text of the id.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Int(number) => {
                let mut buffer = [0; LONGEST];
                out.extend_from_slice(spell(*number, &mut buffer));
            }
            Self::Text(text) => out.extend_from_slice(text.as_bytes()),
        }
    }
}

/// The length of the longest integer, in digits and sign.
const LONGEST: usize = 20;

/// The decimal digits of a number. Every message has an id: the way through the formatting of the
/// standard library is long.
fn spell(number: i64, buffer: &mut [u8; LONGEST]) -> &[u8] {
    let mut rest = number.unsigned_abs();
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        buffer[at] = b'-';
    }
    &buffer[at..]
}

/// Whether an integer is spelled as we would write it: no plus, no zero in front.
fn is_canonical(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    match digits {
        [b'0'] => text.len() == 1,
        [first, ..] => (b'1'..=b'9').contains(first),
        [] => false,
    }
}

impl From<&RequestId> for RawId {
    fn from(id: &RequestId) -> Self {
        match id {
            RequestId::Null => Self::Text("null".into()),
            RequestId::Number(number) => Self::Int(*number),
            RequestId::Str(text) => Self::Text(Box::from(serde_json::Value::from(text.as_str()).to_string())),
        }
    }
}

/// Reads the JSON text of an id as an endpoint understands it: null, an integer or a string.
#[must_use]
pub fn request_id(text: &[u8]) -> Option<RequestId> {
    // Every request and response comes through here. The general way tries one variant after the
    // other and formats an error for each that does not fit, so the usual spellings are read by
    // hand.
    match RawId::from_json(text)? {
        RawId::Int(number) => Some(RequestId::Number(number)),
        RawId::Text(text) if &*text == "null" => Some(RequestId::Null),
        RawId::Text(text) => match plain_string(&text) {
            Some(inner) => Some(RequestId::Str(inner.to_owned())),
            None => serde_json::from_str(&text).ok(),
        },
    }
}

/// Whether the JSON text is an id that an endpoint understands, without building it.
pub(crate) fn is_request_id(text: &[u8]) -> bool {
    match text.first() {
        Some(b'n') => true,
        // An escape may stand for half a character, which no string can hold.
        Some(b'"') => memchr::memchr(b'\\', text).is_none() || request_id(text).is_some(),
        Some(b'-' | b'0'..=b'9') => {
            // JSON has no leading zeros, so few enough digits are an integer in range.
            let short = text.len() < 19 && text != b"-0";
            (short && text[1..].iter().all(u8::is_ascii_digit)) || request_id(text).is_some()
        }
        _ => false,
    }
}

/// What stands between the quotes of a string without escapes.
fn plain_string(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    (!inner.contains(['\\', '"'])).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_is_kept_and_kinds_stay_apart() {
        for text in [
            "1",
            "-1",
            "0",
            "\"1\"",
            "null",
            "1.5",
            "9007199254740993",
            "-0",
            "007",
            "+7",
            "-",
            "10",
            "-9223372036854775808",
            "9223372036854775807",
            "9223372036854775808",
            "1e3",
            "\"a\\u0041\"",
            "99999999999999999999",
        ] {
            let id = RawId::from_json(text.as_bytes()).expect("utf-8");
            let mut out = Vec::new();
            id.write_json(&mut out);
            assert_eq!(String::from_utf8(out).expect("utf-8"), text);
        }
        assert_ne!(RawId::from_json(b"1"), RawId::from_json(b"\"1\""));
        assert_eq!(RawId::from_json(b"1"), Some(RawId::Int(1)));
        assert_eq!(RawId::from_json(b"-9223372036854775808"), Some(RawId::Int(i64::MIN)));
        for text in ["-0", "007", "-07", "+7", "-", "", "1x"] {
            assert!(matches!(RawId::from_json(text.as_bytes()), Some(RawId::Text(_))), "{text}");
        }
    }

    #[test]
    fn endpoints_take_null_integers_and_strings_only() {
        assert_eq!(request_id(b"null"), Some(RequestId::Null));
        assert_eq!(request_id(b"-7"), Some(RequestId::Number(-7)));
        assert_eq!(request_id(b"\"x\""), Some(RequestId::Str("x".into())));
        for text in ["1.5", "true", "[1]", "{}"] {
            assert_eq!(request_id(text.as_bytes()), None, "{text}");
        }
    }
}
