//! What a trace may show of a message: everything but the values of environments and headers, and
//! the credentials of headers and URLs wherever they stand.

mod url;

use std::fmt;

use serde::de::IgnoredAny;

/// Arrays and objects inside each other that are shown; what lies deeper is left out.
const DEPTH: usize = 100;

/// Stands where a value was.
const HIDDEN: &str = "\"[redacted]\"";

/// A message as a trace may show it.
///
/// JSON keeps its text, except that every value below a member `env` or `headers` (in any case and
/// any spelling) is replaced; the names stay, be it as the keys of an object or as the `name` of a
/// list's entries. The values of credential headers (`Authorization`, `Proxy-Authorization`,
/// `Cookie`, `Set-Cookie`, `X-Api-Key`) are replaced wherever they stand, as a member or as an entry
/// of `name` and `value`. A member `url` with an HTTP URL loses its user, its password and the
/// values of query parameters that are called like a credential; one that cannot be taken apart is
/// replaced. Of anything that is no JSON object or array only the length is shown: a line
/// that lost its end may be cut in the middle of a secret, and noise may be anything.
///
/// Costs nothing until it is shown.
#[derive(Clone, Copy)]
pub struct Redacted<'a>(pub &'a [u8]);

/// The same, so that no way of showing it shows more.
impl fmt::Debug for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match message(self.0) {
            Some(text) => redacted_json(text, f),
            None => write!(f, "({} bytes that are no JSON message)", self.0.len()),
        }
    }
}

/// Writes one JSON value as a trace may show it: see [`Redacted`], which is for messages. The text
/// has to be valid JSON; of anything else nothing useful comes out, but no secret either.
///
/// # Errors
/// Those of `out`.
pub fn redacted_json(text: &str, out: &mut impl fmt::Write) -> fmt::Result {
    if is_harmless(text.as_bytes()) {
        return out.write_str(text);
    }
    Walk { text, at: 0, out }.value(Show::All, 0)
}

/// Whether certainly nothing has to be hidden: no escape in which a name could hide, no word that
/// ends like one of the names, no white space that could be a line end, and no great depth. Nearly
/// all traffic is of this kind.
fn is_harmless(text: &[u8]) -> bool {
    // Three simple passes: each is many times faster than one that does everything.
    let odd = |byte: &u8| *byte < b' ' || *byte == b'\\';
    let opening = |byte: &&u8| matches!(byte, b'{' | b'[');
    if text.iter().filter(|byte| odd(byte)).count() > 0 || text.iter().filter(opening).count() >= DEPTH {
        return false;
    }
    memchr::memchr_iter(b'"', text).all(|end| {
        let Some(&[a, b, c]) = text.get(end.saturating_sub(3)..end) else { return true };
        // env, headers, authorization, cookie, x-api-key, url. The bit that tells small letters from
        // capitals is set in all three at once; what else that makes equal is looked at closely.
        !matches!(last(a, b, c) | last(b' ', b' ', b' '), ENV | ERS | ION | KIE | KEY | URL)
    })
}

const fn last(a: u8, b: u8, c: u8) -> u32 {
    u32::from_le_bytes([a, b, c, 0])
}

const ENV: u32 = last(b'e', b'n', b'v');
const ERS: u32 = last(b'e', b'r', b's');
const ION: u32 = last(b'i', b'o', b'n');
const KIE: u32 = last(b'k', b'i', b'e');
const KEY: u32 = last(b'k', b'e', b'y');
const URL: u32 = last(b'u', b'r', b'l');

/// The text, if it is JSON that could be a message: a lone string is just a line with quotes.
fn message(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    let nested = text.trim_start().starts_with(['{', '[']);
    (nested && serde_json::from_str::<IgnoredAny>(text).is_ok()).then_some(text)
}

/// How much of a value is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    All,
    /// The value of `env` or `headers`: an object of values, or a list of entries.
    Names,
    /// An entry of such a list: its `name` is shown.
    Entry,
    /// The value of `url`: as everything, but a string without its credentials.
    Url,
    /// Only its shape.
    Nothing,
}

impl Show {
    /// How much is shown of the value of this member.
    fn member(self, key: &str) -> Self {
        match self {
            Self::All if is_secret(key) => Self::Names,
            Self::All if is_credential_header(key) => Self::Nothing,
            Self::All if key.eq_ignore_ascii_case("url") => Self::Url,
            Self::All | Self::Url => Self::All,
            // A nested header would not be one: whatever it is, it is hidden.
            Self::Entry if key == "name" => Self::All,
            Self::Names | Self::Entry | Self::Nothing => Self::Nothing,
        }
    }

    /// How much is shown of the elements of an array.
    fn element(self) -> Self {
        match self {
            Self::All | Self::Url => self,
            Self::Names => Self::Entry,
            Self::Entry | Self::Nothing => Self::Nothing,
        }
    }
}

fn is_secret(key: &str) -> bool {
    key.eq_ignore_ascii_case("env") || key.eq_ignore_ascii_case("headers")
}

fn is_credential_header(name: &str) -> bool {
    ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
}

/// Copies a JSON text that is known to be valid.
struct Walk<'a, 'o, W> {
    text: &'a str,
    at: usize,
    out: &'o mut W,
}

impl<'a, W: fmt::Write> Walk<'a, '_, W> {
    fn value(&mut self, show: Show, depth: usize) -> fmt::Result {
        self.skip_space();
        match self.peek() {
            b'{' if depth < DEPTH => self.members(show, depth),
            b'[' if depth < DEPTH => self.elements(show, depth),
            b'{' | b'[' => {
                self.skip_nested();
                self.out.write_str("\"[too deep]\"")
            }
            _ => {
                let text = self.scalar();
                match show {
                    Show::All => self.out.write_str(text),
                    Show::Url => self.url(text),
                    Show::Names | Show::Entry | Show::Nothing => self.out.write_str(HIDDEN),
                }
            }
        }
    }

    fn members(&mut self, show: Show, depth: usize) -> fmt::Result {
        let start = self.at;
        self.open("{")?;
        while self.goes_on(b'}')? {
            let spelled = self.scalar();
            self.out.write_str(spelled)?;
            self.skip_space();
            self.at += 1;
            self.out.write_str(":")?;
            // The key decides, so it is read as a receiver reads it.
            let key: Option<String> = serde_json::from_str(spelled).ok();
            let mut shown = key.as_ref().map_or(Show::Nothing, |key| show.member(key));
            if show == Show::All && key.is_some_and(|key| key == "value") && self.names_credential(start) {
                shown = Show::Nothing;
            }
            self.value(shown, depth + 1)?;
        }
        self.out.write_str("}")
    }

    fn elements(&mut self, show: Show, depth: usize) -> fmt::Result {
        self.open("[")?;
        while self.goes_on(b']')? {
            self.value(show.element(), depth + 1)?;
        }
        self.out.write_str("]")
    }

    fn url(&mut self, spelled: &str) -> fmt::Result {
        let Ok(text) = serde_json::from_str::<String>(spelled) else { return self.out.write_str(spelled) };
        match url::redacted(&text) {
            clean if clean == text => self.out.write_str(spelled),
            clean => write!(self.out, "{}", serde_json::Value::from(clean)),
        }
    }

    /// Whether the object that starts here has a `name` that is a credential header's.
    fn names_credential(&self, start: usize) -> bool {
        let mut ahead = Walk { text: self.text, at: start + 1, out: &mut String::new() };
        while let Ok(true) = ahead.goes_on(b'}') {
            let key = ahead.scalar();
            ahead.skip_space();
            ahead.at += 1;
            ahead.skip_space();
            let value = match ahead.peek() {
                b'{' | b'[' => {
                    ahead.skip_nested();
                    continue;
                }
                _ => ahead.scalar(),
            };
            let read = |spelled| serde_json::from_str::<String>(spelled).unwrap_or_default();
            if read(key) == "name" && is_credential_header(&read(value)) {
                return true;
            }
        }
        false
    }

    fn open(&mut self, bracket: &str) -> fmt::Result {
        self.at += 1;
        self.out.write_str(bracket)
    }

    /// Moves to the next member or element; false behind the closing bracket.
    fn goes_on(&mut self, close: u8) -> Result<bool, fmt::Error> {
        self.skip_space();
        match self.peek() {
            byte if byte == close => {
                self.at += 1;
                Ok(false)
            }
            b',' => {
                self.at += 1;
                self.skip_space();
                self.out.write_str(",")?;
                Ok(true)
            }
            // Past the end: never in a valid text, and no reason to go on for ever.
            0 => Err(fmt::Error),
            _ => Ok(true),
        }
    }

    /// A string, number or word, as it is spelled.
    fn scalar(&mut self) -> &'a str {
        let start = self.at;
        if self.peek() == b'"' {
            self.skip_string();
        } else {
            let rest = &self.text.as_bytes()[start..];
            let length = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'));
            self.at += length.unwrap_or(rest.len());
        }
        &self.text[start..self.at]
    }

    fn skip_string(&mut self) {
        self.at += 1;
        while !matches!(self.peek(), b'"' | 0) {
            self.at += if self.peek() == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
    }

    /// Skips an array or object without recursion.
    fn skip_nested(&mut self) {
        let mut open = 0usize;
        loop {
            match self.peek() {
                b'"' => {
                    self.skip_string();
                    continue;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' => open -= 1,
                0 => return,
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return;
            }
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
    }

    /// The next byte; 0, which valid JSON never has, at the end.
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        Redacted(text.as_bytes()).to_string()
    }

    #[test]
    fn values_of_environments_and_headers_are_hidden_and_names_stay() {
        for (text, expected) in [
            (r#"{"env":[{"name":"A","value":"s1"}]}"#, r#"{"env":[{"name":"A","value":"[redacted]"}]}"#),
            (r#"{"env":{"A":"s1","name":"s2"}}"#, r#"{"env":{"A":"[redacted]","name":"[redacted]"}}"#),
            (
                r#"{"headers":[{"name":"X","value":"s1","_meta":{"name":"s2"}}]}"#,
                r#"{"headers":[{"name":"X","value":"[redacted]","_meta":{"name":"[redacted]"}}]}"#,
            ),
            (r#"{"headers":{"Authorization":"s1"}}"#, r#"{"headers":{"Authorization":"[redacted]"}}"#),
            (r#"{"headers":{"Cookie":["s1","s2"]}}"#, r#"{"headers":{"Cookie":["[redacted]","[redacted]"]}}"#),
            (r#"{"Headers":{"a":1},"ENV":{"b":true}}"#, r#"{"Headers":{"a":"[redacted]"},"ENV":{"b":"[redacted]"}}"#),
            (r#"{"\u0065nv":{"A":"s1"}}"#, r#"{"\u0065nv":{"A":"[redacted]"}}"#),
            (r#"{"env":"A=s1"}"#, r#"{"env":"[redacted]"}"#),
            (r#"{"env":["A=s1",7,null]}"#, r#"{"env":["[redacted]","[redacted]","[redacted]"]}"#),
            (r#"{"env":[[{"name":"s1"}]]}"#, r#"{"env":[[{"name":"[redacted]"}]]}"#),
            (r#"{"env":{"A":{"env":{"name":"s1"}}}}"#, r#"{"env":{"A":{"env":{"name":"[redacted]"}}}}"#),
            (r#"{"a":{"Set-Cookie":["s1"]}}"#, r#"{"a":{"Set-Cookie":["[redacted]"]}}"#),
            (
                r#"[{"name":"X-Api-Key","value":"s1"},{"name":"X","value":"shown"}]"#,
                r#"[{"name":"X-Api-Key","value":"[redacted]"},{"name":"X","value":"shown"}]"#,
            ),
            (
                r#"{"value":"s1","deep":[{}],"name":"authorization"}"#,
                r#"{"value":"[redacted]","deep":[{}],"name":"authorization"}"#,
            ),
            (r#"{"url":"https://u:s1@h/?token=s2&a=b"}"#, r#"{"url":"https://h/?token=[REDACTED]&a=b"}"#),
            (r#"{"URL":["http:s1"],"curl":"http:shown"}"#, r#"{"URL":["[REDACTED]"],"curl":"http:shown"}"#),
            (r#"{"\u0075rl":"https:\/\/s1@h"}"#, r#"{"\u0075rl":"https://h"}"#),
            (r#"{"env":{},"env":{"A":"s1"}}"#, r#"{"env":{},"env":{"A":"[redacted]"}}"#),
            (r#"[{"params":{"env":{"A":"s1"}}},7]"#, r#"[{"params":{"env":{"A":"[redacted]"}}},7]"#),
        ] {
            assert_eq!(shown(text), expected, "{text}");
            serde_json::from_str::<IgnoredAny>(&shown(text)).expect("still JSON");
        }
    }

    #[test]
    fn everything_else_keeps_its_spelling() {
        for text in [
            "[0,-1.50e+3,null,false]",
            r#"["a\"b\\"]"#,
            "[]",
            "{}",
            r#"{"a":[1,2.0,{"b":"\u00e9中😀"}],"a":null,"":"\\"}"#,
            r#"{"environment":{"A":"shown"},"env_":1,"header":"shown","value":"shown","name":"shown"}"#,
        ] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(shown(" { \"a\" : [ 1 , 2 ] ,\t\"env\" : \"s\" }\r"), r#"{"a":[1,2],"env":"[redacted]"}"#);
    }

    #[test]
    fn what_is_no_json_is_shown_by_its_length() {
        for text in [
            "",
            "token=hunter2",
            r#""hunter2""#,
            "7",
            r#"{"env":{"A":"s1""#,
            r#"{"env":{"A":"s1"}} {"#,
            r#"{"env":{"A":"s1"},}"#,
            r#"{'env':1}"#,
            "\u{1b}[1mhello",
        ] {
            assert_eq!(shown(text), format!("({} bytes that are no JSON message)", text.len()));
        }
        assert_eq!(Redacted(b"{\"a\":\"\xff\"}").to_string(), "(9 bytes that are no JSON message)");
    }

    #[test]
    fn a_deep_text_ends_in_time_and_hides_what_is_deepest() {
        let secret = r#"{"env":{"A":"s1}]"}}"#;
        let text = format!("{}{secret}{},1]", "[".repeat(100_000), "]".repeat(99_999));
        let shown = shown(&text);
        assert!(shown.contains("[too deep]") && !shown.contains("s1"), "{} bytes", shown.len());
        serde_json::from_str::<IgnoredAny>(&shown).expect("still JSON");
    }

    /// However a valid message is cut or spelled, no marked value shows.
    #[test]
    fn no_cut_shows_a_secret() {
        let text = r#"{"id":1,"method":"m","params":{"mcpServers":[{"env":[{"name":"A","value":"SECRET\"x"}],"headers":{"H":"SECRET"}}]}}"#;
        for end in 0..=text.len() {
            assert!(!shown(&text[..end]).contains("SECRET"), "..{end}");
            assert!(end == 0 || !shown(&text[end..]).contains("SECRET"), "{end}..");
        }
    }
}
