//! Where the events of a viewer come from.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use crate::trace::WriteLines;

/// Bytes of one answer, about: a page asks again until it has everything.
const CHUNK: usize = 4 * 1024 * 1024;

/// Bytes of events that are kept in memory; the oldest go first.
const KEPT: usize = 128 * 1024 * 1024;

/// What a viewer shows.
#[derive(Clone, Debug)]
pub enum TraceSource {
    /// A recording, read anew for each poll from where the last one ended.
    File(PathBuf),
    /// Events in memory.
    Memory(TraceHandle),
}

/// Events in memory that a viewer shows. Clones share them. Keeps the newest 128 MiB.
#[derive(Clone, Default)]
pub struct TraceHandle {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    lines: VecDeque<Box<str>>,
    bytes: usize,
    /// The number of the first line that is kept.
    first: usize,
}

impl TraceHandle {
    /// Adds an event: an object as in [`TraceEvent`](crate::trace::TraceEvent).
    pub fn push(&self, event: Value) {
        self.push_line(&event.to_string());
    }

    /// Number of events so far.
    #[must_use]
    pub fn len(&self) -> usize {
        let kept = self.kept.lock();
        kept.first + kept.lines.len()
    }

    /// Whether nothing was pushed yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn push_line(&self, line: &str) {
        let mut kept = self.kept.lock();
        kept.bytes += line.len();
        kept.lines.push_back(line.into());
        while kept.bytes > KEPT && kept.lines.len() > 1 {
            let oldest = kept.lines.pop_front().map_or(0, |line| line.len());
            kept.bytes -= oldest;
            kept.first += 1;
        }
    }

    fn read(&self, cursor: &str) -> Page {
        let kept = self.kept.lock();
        let from: usize = cursor.parse().unwrap_or(0);
        let mut page = Page::default();
        if from < kept.first {
            let lost = kept.first - from;
            page.text.push_str(&format!("{{\"type\":\"lost\",\"events\":{lost},\"bytes\":0}}\n"));
        }
        let mut next = from.max(kept.first);
        while let Some(line) = kept.lines.get(next - kept.first) {
            page.text.push_str(line);
            page.text.push('\n');
            next += 1;
            if page.text.len() >= CHUNK {
                page.more = true;
                break;
            }
        }
        page.cursor = next.to_string();
        page
    }
}

impl WriteLines for TraceHandle {
    fn write_lines(&mut self, lines: &str) {
        lines.lines().for_each(|line| self.push_line(line));
    }
}

impl fmt::Debug for TraceHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceHandle").field("events", &self.len()).finish_non_exhaustive()
    }
}

/// What one poll gets.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// Whole lines.
    pub(super) text: String,
    /// Where the next poll goes on.
    pub(super) cursor: String,
    /// Whether there is more already.
    pub(super) more: bool,
    /// Whether this is another recording than the one that the cursor is of.
    pub(super) restarted: bool,
}

impl TraceSource {
    /// The lines behind a cursor; an empty cursor stands at the beginning. Blocks.
    pub(super) fn read(&self, cursor: &str) -> io::Result<Page> {
        match self {
            Self::File(path) => read_file(path, cursor),
            Self::Memory(handle) => Ok(handle.read(cursor)),
        }
    }
}

/// A cursor of a file is the hash of its first line, which tells recordings apart, and an offset.
fn read_file(path: &Path, cursor: &str) -> io::Result<Page> {
    let mut file = BufReader::new(File::open(path)?);
    let mut first = Vec::new();
    file.read_until(b'\n', &mut first)?;
    if first.last() != Some(&b'\n') {
        // Nothing whole yet: an empty recording, which is another one if something was there.
        return Ok(Page { restarted: !cursor.is_empty(), ..Page::default() });
    }
    let mut hasher = DefaultHasher::new();
    first.hash(&mut hasher);
    let identity = format!("{:x}", hasher.finish());
    let length = file.get_ref().metadata()?.len();
    let known = cursor.split_once('-').filter(|(hash, _)| *hash == identity);
    let offset = known.and_then(|(_, offset)| offset.parse().ok()).filter(|offset: &u64| *offset <= length);
    let restarted = offset.is_none() && !cursor.is_empty();
    let mut offset = offset.unwrap_or(0);
    file.seek(SeekFrom::Start(offset))?;
    let mut text = Vec::new();
    let mut more = false;
    loop {
        let before = text.len();
        let read = file.by_ref().take(16 * CHUNK as u64).read_until(b'\n', &mut text)?;
        if text.last() != Some(&b'\n') || read == 0 {
            // The end, perhaps in the middle of a line that is being written.
            text.truncate(before);
            break;
        }
        offset += read as u64;
        if text.len() >= CHUNK {
            more = true;
            break;
        }
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(Page { text, cursor: format!("{identity}-{offset}"), more, restarted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn memory_goes_on_behind_the_cursor() {
        let handle = TraceHandle::default();
        assert!(handle.is_empty());
        handle.push(serde_json::json!({ "n": 1 }));
        let page = handle.read("");
        assert_eq!((page.text.as_str(), page.cursor.as_str()), ("{\"n\":1}\n", "1"));
        handle.clone().write_lines("{\"n\":2}\n{\"n\":3}\n");
        let page = handle.read("1");
        assert_eq!((page.text.as_str(), page.cursor.as_str()), ("{\"n\":2}\n{\"n\":3}\n", "3"));
        assert_eq!(handle.len(), 3);
    }

    #[test]
    fn memory_is_bounded_and_says_what_is_gone() {
        let handle = TraceHandle::default();
        let line = "x".repeat(KEPT / 4);
        for _ in 0..6 {
            handle.push_line(&line);
        }
        assert_eq!(handle.len(), 6);
        let page = handle.read("1");
        assert!(page.text.starts_with("{\"type\":\"lost\",\"events\":1,\"bytes\":0}\n"), "{}", &page.text[..60]);
        assert!(page.more);
        assert_eq!(page.cursor, "3");
    }

    #[test]
    fn a_file_is_read_line_by_line_and_noticed_when_it_begins_anew() {
        let path = std::env::temp_dir().join(format!("greenroom-source-{}.jsons", std::process::id()));
        std::fs::write(&path, "").expect("a file");
        assert_eq!(read_file(&path, "").expect("readable").text, "");
        std::fs::write(&path, "{\"a\":1}\n{\"a\":").expect("a file");
        let first = read_file(&path, "").expect("readable");
        assert_eq!((first.text.as_str(), first.restarted, first.more), ("{\"a\":1}\n", false, false));
        File::options().append(true).open(&path).expect("a file").write_all(b"2}\n").expect("writable");
        let second = read_file(&path, &first.cursor).expect("readable");
        assert_eq!((second.text.as_str(), second.restarted), ("{\"a\":2}\n", false));
        assert_eq!(read_file(&path, &second.cursor).expect("readable").text, "");
        std::fs::write(&path, "{\"b\":1}\n{\"b\":2}\n{\"b\":3}\n").expect("a file");
        let third = read_file(&path, &second.cursor).expect("readable");
        assert_eq!((third.text.as_str(), third.restarted), ("{\"b\":1}\n{\"b\":2}\n{\"b\":3}\n", true));
        std::fs::remove_file(&path).expect("a file");
        assert_eq!(read_file(&path, "").expect_err("it is gone").kind(), io::ErrorKind::NotFound);
    }
}
