//! The fast path from bytes to an envelope: one validating pass, nothing copied, nothing decoded.
//!
//! Every physical frame goes through here once; later hops reuse the spans. The scanner accepts a
//! subset of what `serde_json` accepts and never more. Anything unusual (an array, a duplicate
//! envelope member, an escape inside a member name or the method, nesting beyond
//! [`FAST_DEPTH`](crate::limits::FAST_DEPTH), a syntax error) makes it return `None`, and the slow
//! path decides with the help of `serde_json`.

use crate::limits::FAST_DEPTH;
use crate::span::Span;

/// Where the members of a JSON-RPC envelope stand.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// The `jsonrpc` member.
    pub version: Span,
    /// The `id` member, absent for notifications.
    pub id: Span,
    /// The `method` member with its quotes.
    pub method: Span,
    /// The `params` member.
    pub params: Span,
    /// The `result` member.
    pub result: Span,
    /// The `error` member.
    pub error: Span,
}

impl Envelope {
    /// The slot of an envelope member, or `None` for members that the envelope does not know.
    pub(crate) fn slot(&mut self, name: &[u8]) -> Option<&mut Span> {
        Some(match name {
            b"jsonrpc" => &mut self.version,
            b"id" => &mut self.id,
            b"method" => &mut self.method,
            b"params" => &mut self.params,
            b"result" => &mut self.result,
            b"error" => &mut self.error,
            _ => return None,
        })
    }
}

/// Scans one JSON object. `None` means "take the slow path", not "invalid".
#[must_use]
pub fn scan(text: &[u8]) -> Option<Envelope> {
    // Spans count in 32 bits.
    u32::try_from(text.len()).ok()?;
    let mut envelope = Envelope::default();
    members(text, |name, value| match envelope.slot(name) {
        None => Some(()),
        // A duplicate member is ambiguous; the slow path names the problem.
        Some(slot) if slot.is_present() => None,
        Some(slot) => {
            *slot = value;
            Some(())
        }
    })?;
    // An escape inside the method needs decoding, which only the slow path does.
    if memchr::memchr(b'\\', envelope.method.of(text)).is_some() {
        return None;
    }
    std::str::from_utf8(text).ok()?;
    Some(envelope)
}

/// Walks the members of the one object in `text`, validating everything but UTF-8.
///
/// `visit` gets each raw member name (without quotes, never with an escape) and the span of its
/// value; it stops the walk by returning `None`.
pub(crate) fn members(text: &[u8], mut visit: impl FnMut(&[u8], Span) -> Option<()>) -> Option<()> {
    let mut at = blank(text, 0);
    if *text.get(at)? != b'{' {
        return None;
    }
    at = blank(text, at + 1);
    if *text.get(at)? == b'}' {
        return (blank(text, at + 1) == text.len()).then_some(());
    }
    loop {
        if *text.get(at)? != b'"' {
            return None;
        }
        let name_start = at + 1;
        at = string(text, name_start)?;
        let name = &text[name_start..at - 1];
        if memchr::memchr(b'\\', name).is_some() {
            return None;
        }
        at = blank(text, at);
        if *text.get(at)? != b':' {
            return None;
        }
        let start = blank(text, at + 1);
        at = value(text, start)?;
        visit(name, Span::new(start, at))?;
        at = blank(text, at);
        match *text.get(at)? {
            b',' => at = blank(text, at + 1),
            b'}' => break,
            _ => return None,
        }
    }
    (blank(text, at + 1) == text.len()).then_some(())
}

/// Skips JSON white space.
#[inline]
fn blank(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        at += 1;
    }
    at
}

/// Skips one value of any kind that starts at `at`; returns the index behind it.
#[inline]
fn value(text: &[u8], at: usize) -> Option<usize> {
    match *text.get(at)? {
        b'"' => string(text, at + 1),
        b'{' | b'[' => nested(text, at),
        _ => scalar(text, at),
    }
}

/// Skips a string whose opening quote stands just before `at`; returns the index behind the
/// closing quote.
#[inline]
fn string(text: &[u8], mut at: usize) -> Option<usize> {
    // Most member names and ids end within a few bytes, where a plain loop beats a vector search.
    const SHORT: usize = 24;
    loop {
        let short_end = (at + SHORT).min(text.len());
        let mut stop = at;
        while stop < short_end && text[stop] != b'"' && text[stop] != b'\\' {
            if text[stop] < 0x20 {
                return None;
            }
            stop += 1;
        }
        if stop == short_end {
            let rest = memchr::memchr2(b'"', b'\\', &text[stop..])?;
            if has_control(&text[stop..stop + rest]) {
                return None;
            }
            stop += rest;
        }
        if text[stop] == b'"' {
            return Some(stop + 1);
        }
        at = escape(text, stop + 1)?;
    }
}

/// Skips what follows a backslash at `at`.
fn escape(text: &[u8], at: usize) -> Option<usize> {
    match *text.get(at)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 1),
        b'u' => {
            let digits = text.get(at + 1..at + 5)?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(at + 5)
        }
        _ => None,
    }
}

/// Whether a control character stands unescaped in a string. Written without an early exit so
/// that the compiler vectorises it.
fn has_control(text: &[u8]) -> bool {
    text.iter().fold(false, |found, byte| found | (*byte < 0x20))
}

/// Skips `true`, `false`, `null` or a number.
fn scalar(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    match rest.first()? {
        b't' if rest.starts_with(b"true") => Some(at + 4),
        b'f' if rest.starts_with(b"false") => Some(at + 5),
        b'n' if rest.starts_with(b"null") => Some(at + 4),
        b'-' | b'0'..=b'9' => number(text, at),
        _ => None,
    }
}

fn number(text: &[u8], mut at: usize) -> Option<usize> {
    let digits = |from: usize| -> usize {
        let count = text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        from + count
    };
    if text[at] == b'-' {
        at += 1;
    }
    at = match text.get(at)? {
        b'0' => at + 1,
        b'1'..=b'9' => digits(at),
        _ => return None,
    };
    if text.get(at) == Some(&b'.') {
        let end = digits(at + 1);
        if end == at + 1 {
            return None;
        }
        at = end;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let start = at + 1 + sign;
        if start > text.len() {
            return None;
        }
        let end = digits(start);
        if end == start {
            return None;
        }
        at = end;
    }
    Some(at)
}

/// Which kinds of brackets are open: one bit a level, set for an object.
struct Open {
    bits: [u64; FAST_DEPTH / 64],
    depth: usize,
}

impl Open {
    fn push(&mut self, object: bool) -> Option<()> {
        if self.depth == FAST_DEPTH {
            return None;
        }
        let (word, bit) = (self.depth / 64, 1u64 << (self.depth % 64));
        if object {
            self.bits[word] |= bit;
        } else {
            self.bits[word] &= !bit;
        }
        self.depth += 1;
        Some(())
    }

    fn in_object(&self) -> bool {
        let top = self.depth - 1;
        self.bits[top / 64] >> (top % 64) & 1 == 1
    }
}

/// Skips an object or array with its whole content.
fn nested(text: &[u8], mut at: usize) -> Option<usize> {
    let mut open = Open { bits: [0; FAST_DEPTH / 64], depth: 0 };
    open.push(text[at] == b'{')?;
    at += 1;
    // Whether the innermost bracket has no entry yet: then no comma may come.
    let mut fresh = true;
    loop {
        let object = open.in_object();
        at = blank(text, at);
        let byte = *text.get(at)?;
        if byte == if object { b'}' } else { b']' } {
            at += 1;
            open.depth -= 1;
            if open.depth == 0 {
                return Some(at);
            }
            fresh = false;
            continue;
        }
        if !fresh {
            if byte != b',' {
                return None;
            }
            at = blank(text, at + 1);
        }
        if object {
            if *text.get(at)? != b'"' {
                return None;
            }
            at = blank(text, string(text, at + 1)?);
            if *text.get(at)? != b':' {
                return None;
            }
            at = blank(text, at + 1);
        }
        match *text.get(at)? {
            b'"' => at = string(text, at + 1)?,
            bracket @ (b'{' | b'[') => {
                open.push(bracket == b'{')?;
                at += 1;
                fresh = true;
                continue;
            }
            _ => at = scalar(text, at)?,
        }
        fresh = false;
    }
}
