//! Looking at one member of an object inside a frame, without parsing the rest of it.

use std::borrow::Cow;
use std::ops::ControlFlow;

use crate::frame::Frame;
use crate::scan;
use crate::slow;
use crate::span::Span;

impl Frame {
    /// Where the member `name` of the object at `object` stands; absent when there is no such
    /// member, and when `object` is no object. Of a member that is said twice, the last one
    /// counts, as for `serde_json`. Reads the whole object.
    #[must_use]
    pub fn member(&self, object: Span, name: &str) -> Span {
        self.find(object, name, |_| ControlFlow::Continue(()))
    }

    /// As [`member`](Self::member), but stops at the first one: for large messages that this
    /// process wrote itself and whose members it says once.
    #[must_use]
    pub fn first_member(&self, object: Span, name: &str) -> Span {
        self.find(object, name, ControlFlow::Break)
    }

    /// The string at `span`; `None` when there is none or it is no string.
    #[must_use]
    pub fn string(&self, span: Span) -> Option<Cow<'_, str>> {
        let spelled = self.part(span);
        if !spelled.starts_with('"') {
            return None;
        }
        if spelled.contains('\\') { serde_json::from_str(spelled).ok() } else { Some(self.part(span.inner()).into()) }
    }

    fn find(&self, object: Span, name: &str, mut step: impl FnMut(Span) -> ControlFlow<Span>) -> Span {
        let text = object.of(self.text());
        let mut found = Span::ABSENT;
        let mut stopped = false;
        let fast = scan::members(text, |this, value| {
            if this == name.as_bytes() {
                found = value;
                stopped = step(value).is_break();
            }
            (!stopped).then_some(())
        });
        if fast.is_none() && !stopped {
            // An unusual spelling, or no object: start again, thoroughly.
            found = Span::ABSENT;
            let mut last = Span::ABSENT;
            if slow::members(text, |this, value| {
                if this == name {
                    last = value
                }
            })
            .is_ok()
            {
                found = last;
            }
        }
        found.shifted(object.start())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(text: &str) -> Option<String> {
        let frame = Frame::parse(text.to_owned().into());
        let span = frame.member(frame.envelope().params, "sessionId");
        frame.string(span).map(Cow::into_owned)
    }

    #[test]
    fn a_member_is_found_however_it_is_spelled() {
        for (params, expected) in [
            (r#"{"sessionId":"a"}"#, Some("a")),
            (r#"{"x":[{"sessionId":"no"}],"sessionId" : "b" , "y":1}"#, Some("b")),
            (r#"{"sessionId":"a\u0062"}"#, Some("ab")),
            (r#"{"session\u0049d":"esc"}"#, Some("esc")),
            (r#"{"sessionId":"one","sessionId":"two"}"#, Some("two")),
            (r#"{"sessionId":7}"#, None),
            (r#"{"other":"a"}"#, None),
            (r#"["sessionId"]"#, None),
            ("null", None),
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{params}}}"#);
            assert_eq!(session(&text).as_deref(), expected, "{params}");
        }
        assert_eq!(session(r#"{"jsonrpc":"2.0","method":"m"}"#), None);
    }

    #[test]
    fn the_first_member_is_enough_where_it_is_asked_for() {
        let frame = Frame::parse(r#"{"jsonrpc":"2.0","method":"m","params":{"a":1,"a":2}}"#.into());
        let params = frame.envelope().params;
        assert_eq!(frame.part(frame.first_member(params, "a")), "1");
        assert_eq!(frame.part(frame.member(params, "a")), "2");
        assert!(!frame.member(params, "b").is_present());
    }
}
