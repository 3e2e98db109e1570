//! How server-sent events look on the wire. Pure.

use bytes::{BufMut as _, BytesMut};

/// One event with this text. A line end inside of it starts another `data` line, which is what
/// readers join again.
pub(super) fn event(id: Option<&str>, text: &[u8], out: &mut BytesMut) {
    out.reserve(text.len() + 16);
    if let Some(id) = id {
        out.put_slice(b"id: ");
        out.put_slice(id.as_bytes());
        out.put_u8(b'\n');
    }
    // CR LF, CR and LF all end a line for the reader; between tokens of JSON they are the same.
    let mut rest = text;
    loop {
        out.put_slice(b"data: ");
        match memchr::memchr2(b'\n', b'\r', rest) {
            None => {
                out.put_slice(rest);
                out.put_slice(b"\n\n");
                return;
            }
            Some(at) => {
                out.put_slice(&rest[..at]);
                out.put_u8(b'\n');
                let end = if rest[at..].starts_with(b"\r\n") { at + 2 } else { at + 1 };
                rest = &rest[end..];
            }
        }
    }
}

/// A comment, which readers ignore; empty, it only shows that the stream is alive.
pub(super) fn comment(text: &str, out: &mut BytesMut) {
    out.put_u8(b':');
    if !text.is_empty() {
        out.put_u8(b' ');
        out.put_slice(text.as_bytes());
    }
    out.put_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(id: Option<&str>, text: &str) -> String {
        let mut out = BytesMut::new();
        event(id, text.as_bytes(), &mut out);
        String::from_utf8(out.to_vec()).expect("utf-8")
    }

    #[test]
    fn an_event_is_one_value_however_many_lines_it_has() {
        assert_eq!(written(None, "{}"), "data: {}\n\n");
        assert_eq!(written(Some("7"), "{}"), "id: 7\ndata: {}\n\n");
        assert_eq!(written(None, "{\n}\r\n[\r]"), "data: {\ndata: }\ndata: [\ndata: ]\n\n");
    }

    #[test]
    fn comments_carry_no_data() {
        let mut out = BytesMut::new();
        comment("", &mut out);
        comment("bye", &mut out);
        assert_eq!(&out[..], b":\n\n: bye\n\n");
    }
}
