//! What an endpoint says to input that is no valid JSON-RPC, and how often.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use crate::frame::{Frame, FrameKind};
use crate::id::RawId;
use crate::limits::MALFORMED_REPLIES_PER_MINUTE;
use crate::outbound::Outbound;

const MINUTE: Duration = Duration::from_secs(60);

/// The answer to a malformed frame: its error with `id: null` (JSON-RPC 2.0 §5; spec §9, decision
/// 23).
///
/// `None` for everything that is never answered: noise, malformed responses, and of course every
/// valid frame. Ask [`ReplyLimit`] before sending it.
#[must_use]
pub fn malformed_reply(frame: &Frame) -> Option<Outbound> {
    if frame.kind() != FrameKind::Malformed {
        return None;
    }
    let malformed = frame.malformation().filter(|malformed| !malformed.response_shaped)?;
    let error = Bytes::from(malformed.error.to_wire().get().to_owned());
    Some(Outbound::error(&RawId::Text("null".into()), error))
}

/// Limits the answers to malformed input of one connection: at most
/// [`MALFORMED_REPLIES_PER_MINUTE`] in any sixty seconds, wherever the minute starts.
///
/// Without it two peers that each find the other's errors malformed would never stop.
#[derive(Clone, Debug, Default)]
pub struct ReplyLimit {
    /// When the replies of the last minute were allowed, oldest first; never longer than the limit.
    allowed: VecDeque<Duration>,
    refused: u64,
}

impl ReplyLimit {
    /// Whether one more reply may be sent at `now`, the time since any fixed moment; if so it
    /// counts as sent. A `now` that lies before an earlier one is taken as that earlier one.
    pub fn allow(&mut self, now: Duration) -> bool {
        let now = self.allowed.back().map_or(now, |last| now.max(*last));
        while self.allowed.front().is_some_and(|oldest| now - *oldest >= MINUTE) {
            self.allowed.pop_front();
        }
        if self.allowed.len() >= MALFORMED_REPLIES_PER_MINUTE as usize {
            self.refused += 1;
            return false;
        }
        self.allowed.push_back(now);
        true
    }

    /// How many replies were not allowed, for one summary line in the log.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str) -> Option<String> {
        let frame = Frame::parse(Bytes::copy_from_slice(text.as_bytes()));
        let reply = malformed_reply(&frame)?;
        Some(String::from_utf8(reply.into_text().to_vec()).expect("utf-8"))
    }

    #[test]
    fn call_shaped_input_is_answered_and_the_rest_is_not() {
        for (text, code) in [
            ("{", -32700),
            ("[", -32700),
            ("{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\"error\":", -32700),
            ("{\"jsonrpc\":\"2.0\",\"params\":{\"result\":1},\"method\":\"x", -32700),
            ("{}", -32600),
            ("[]", -32600),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
            (r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","result":1}"#, -32600),
        ] {
            let reply = reply(text).unwrap_or_else(|| panic!("no reply to {text}"));
            let start = format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"#);
            assert!(reply.starts_with(&start), "{text}: {reply}");
            assert!(malformed_reply(&Frame::parse(reply.into())).is_none(), "a reply is never answered");
        }
        for text in [
            "",
            "  ",
            "hello",
            "\u{1b}[?2004hWelcome",
            "\"{\"",
            "1",
            "null",
            r#"{"jsonrpc":"2.0","method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
            r#"{"jsonrpc":"2.0","result":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":"text"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#,
            r#"{"id":1,"result":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"\"method\":"#,
            r#"[{"jsonrpc":"2.0","method":"x"}]"#,
        ] {
            assert_eq!(reply(text), None, "{text}");
        }
    }

    #[test]
    fn sixty_replies_fit_into_any_minute() {
        let mut limit = ReplyLimit::default();
        let at = Duration::from_millis;
        assert!((0..60).all(|n| limit.allow(at(59_000 + n))));
        assert!(!limit.allow(at(59_100)));
        assert!(!limit.allow(at(60_100)), "no second helping at the turn of a minute");
        assert!(!limit.allow(at(118_999)));
        assert!(limit.allow(at(119_000)), "the oldest reply is a minute old");
        assert!(!limit.allow(at(119_000)));
        assert!(limit.allow(at(119_001)));
        assert_eq!(limit.refused(), 4);
    }

    #[test]
    fn a_clock_that_runs_backwards_frees_nothing() {
        let mut limit = ReplyLimit::default();
        assert!((0..60).all(|_| limit.allow(MINUTE * 10)));
        assert!(!limit.allow(Duration::ZERO));
        assert!(!limit.allow(MINUTE * 10));
        assert!(limit.allow(MINUTE * 11));
        assert!(limit.allow(Duration::ZERO), "counts as sent at the latest time seen");
        assert!((0..58).all(|_| limit.allow(MINUTE * 11)));
        assert!(!limit.allow(MINUTE * 11 + Duration::from_secs(59)));
    }
}
