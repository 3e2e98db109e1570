//! A command line as a person types it, cut into words.

use std::iter::Peekable;
use std::str::CharIndices;

/// Why a command line cannot be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfinished {
    /// A quote is opened at this byte and never closed.
    Quote(char, usize),
    /// The last character is a backslash.
    Backslash,
}

impl std::fmt::Display for Unfinished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Quote(quote, at) => write!(f, "the quote {quote} at byte {at} is never closed"),
            Self::Backslash => f.write_str("the command line ends with a backslash"),
        }
    }
}

/// Cuts the line like a POSIX shell, without any expansion: single quotes keep everything, double
/// quotes know the escapes `\"`, `\\`, `\$`, `` \` `` and backslash-newline, and a backslash
/// outside quotes keeps the next character.
pub(super) fn split(line: &str) -> Result<Vec<String>, Unfinished> {
    let mut words = Vec::new();
    let mut chars = line.char_indices().peekable();
    // `None` between words; an empty pair of quotes is a word too.
    let mut word: Option<String> = None;
    while let Some((at, char)) = chars.next() {
        match char {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => single_quoted(&mut chars, word.get_or_insert_default(), at)?,
            '"' => double_quoted(&mut chars, word.get_or_insert_default(), at)?,
            '\\' => match chars.next() {
                Some((_, '\n')) => {}
                Some((_, escaped)) => word.get_or_insert_default().push(escaped),
                None => return Err(Unfinished::Backslash),
            },
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

type Chars<'a> = Peekable<CharIndices<'a>>;

fn single_quoted(chars: &mut Chars<'_>, word: &mut String, at: usize) -> Result<(), Unfinished> {
    for (_, char) in chars.by_ref() {
        if char == '\'' {
            return Ok(());
        }
        word.push(char);
    }
    Err(Unfinished::Quote('\'', at))
}

fn double_quoted(chars: &mut Chars<'_>, word: &mut String, at: usize) -> Result<(), Unfinished> {
    while let Some((_, char)) = chars.next() {
        match char {
            '"' => return Ok(()),
            '\\' => match chars.next_if(|(_, next)| matches!(next, '"' | '\\' | '$' | '`' | '\n')) {
                Some((_, '\n')) => {}
                Some((_, escaped)) => word.push(escaped),
                None => word.push('\\'),
            },
            other => word.push(other),
        }
    }
    Err(Unfinished::Quote('"', at))
}

/// `NAME=value` with a name that a shell would accept.
pub(super) fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let mut chars = name.chars();
    let first = chars.next()?;
    let starts = first == '_' || first.is_ascii_alphabetic();
    (starts && chars.all(|char| char == '_' || char.is_ascii_alphanumeric())).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::{Unfinished, assignment, split};

    #[test]
    fn cuts_a_line_like_a_shell() {
        let table: &[(&str, &[&str])] = &[
            ("", &[]),
            ("  \t ", &[]),
            ("a", &["a"]),
            ("a  b\tc\nd", &["a", "b", "c", "d"]),
            ("'a b' c", &["a b", "c"]),
            (r#""a b" c"#, &["a b", "c"]),
            (r#"a"b c"d'e f'g"#, &["ab cde fg"]),
            ("'' \"\"", &["", ""]),
            (r"a\ b", &["a b"]),
            (r#"\"a\'"#, &["\"a'"]),
            (r"'a\b'", &[r"a\b"]),
            (r#""a\b\"c\\d\$e""#, &[r#"a\b"c\d$e"#]),
            ("a\\\nb", &["ab"]),
            ("\\\n", &[]),
            ("\"a\\\nb\"", &["ab"]),
            ("$HOME ~ *.rs #x", &["$HOME", "~", "*.rs", "#x"]),
            ("中 '😀 é'", &["中", "😀 é"]),
            (r"\😀\中", &["😀中"]),
            (r#""C:\Program Files\x\npx.cmd" -y"#, &[r"C:\Program Files\x\npx.cmd", "-y"]),
        ];
        for (line, words) in table {
            assert_eq!(
                split(line).as_deref(),
                Ok(&words.iter().map(ToString::to_string).collect::<Vec<_>>()[..]),
                "{line:?}"
            );
        }
    }

    #[test]
    fn refuses_what_is_not_finished() {
        assert_eq!(split("a 'b"), Err(Unfinished::Quote('\'', 2)));
        assert_eq!(split(r#"a "b\""#), Err(Unfinished::Quote('"', 2)));
        assert_eq!(split(r"a\"), Err(Unfinished::Backslash));
    }

    #[test]
    fn knows_an_assignment() {
        assert_eq!(assignment("A=b"), Some(("A", "b")));
        assert_eq!(assignment("_a1=b=c"), Some(("_a1", "b=c")));
        assert_eq!(assignment("A="), Some(("A", "")));
        for word in ["", "A", "=b", "1A=b", "A-B=c", "./x=y", "--a=b", "é=b"] {
            assert_eq!(assignment(word), None, "{word:?}");
        }
    }
}
