//! Paths below a session's working directory.

use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use greenroom::{Error, Result};
use serde_json::json;

/// The working directory of a session. Every path that leaves the agent is made here, so none can
/// lead out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Root {
    folder: PathBuf,
}

impl Root {
    /// # Errors
    /// `-32602` if the path is not absolute or has a `..` in it.
    pub(super) fn new(folder: PathBuf) -> Result<Self> {
        let refused = |reason: &str| Err(Error::invalid_params().data(json!({ "field": "cwd", "reason": reason })));
        if !folder.is_absolute() {
            return refused("must be an absolute path");
        }
        if folder.components().any(|part| part == Component::ParentDir) {
            return refused("must not contain `..`");
        }
        Ok(Self { folder })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A file in the folder, whether or not it exists.
    ///
    /// # Errors
    /// `-32602` if the name leads out of the folder: by being absolute, by `..`, or because a
    /// symbolic link of this machine stands in its way.
    pub(super) fn file(&self, name: &str) -> Result<PathBuf> {
        let refused = |reason: &str| Err(Error::invalid_params().data(json!({ "file": name, "reason": reason })));
        let relative = Path::new(name);
        let mut parts = relative.components().peekable();
        if parts.peek().is_none() || !parts.all(|part| matches!(part, Component::Normal(_))) {
            return refused("must be a plain relative path");
        }
        let path = self.folder.join(relative);
        match leads_out(&self.folder, &path) {
            Ok(false) => Ok(path),
            Ok(true) => refused("a symbolic link leads out of the session's working directory"),
            Err(_) => refused("cannot be checked for symbolic links"),
        }
    }

    /// The same as a `file:` URI.
    ///
    /// # Errors
    /// As for [`file`](Self::file).
    pub(super) fn uri(&self, name: &str) -> Result<String> {
        self.file(name).map(|path| file_uri(&path))
    }
}

/// Whether the path, as this machine has it, is outside the folder. What does not exist cannot
/// lead anywhere; the folder may well be on another machine, with the client.
fn leads_out(folder: &Path, path: &Path) -> io::Result<bool> {
    let folder = match folder.canonicalize() {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    for part in path.ancestors() {
        match part.canonicalize() {
            Ok(real) => return Ok(!real.starts_with(&folder)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // It does not resolve, but it is there: a link to nothing, which a write would follow.
        if fs::symlink_metadata(part).is_ok() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn file_uri(path: &Path) -> String {
    use std::fmt::Write as _;

    let text = path.as_os_str().as_encoded_bytes();
    let mut uri = String::from("file://");
    if !text.starts_with(b"/") {
        uri.push('/');
    }
    for byte in text {
        match byte {
            b'\\' if cfg!(windows) => uri.push('/'),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(*byte)),
            b':' if cfg!(windows) => uri.push(':'),
            _ => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests;
