//! The programs of this workspace, for tests that start them.
//!
//! Cargo builds the programs of a package for that package's own tests. Tests of other packages
//! build them first: `cargo build -p greenroom-testkit --bins`.

use std::path::{Path, PathBuf};

use greenroom::AcpAgent;

/// The agent [`testy`](crate::testy()).
///
/// # Panics
/// If the program was not built, with the command that builds it.
#[must_use]
pub fn testy() -> AcpAgent {
    program("testy")
}

/// The proxy [`arrow`](crate::arrow).
///
/// # Panics
/// As [`testy`].
#[must_use]
pub fn arrow_proxy() -> AcpAgent {
    program("arrow_proxy")
}

/// The proxy [`pass_through`](crate::pass_through()).
///
/// # Panics
/// As [`testy`].
#[must_use]
pub fn pass_through_proxy() -> AcpAgent {
    program("pass-through-proxy")
}

fn program(name: &str) -> AcpAgent {
    let own = std::env::current_exe().unwrap_or_default();
    let Some(path) = find(&own, name) else {
        panic!("the program {name} is missing: cargo build -p greenroom-testkit --bin {name}");
    };
    // Its path is one word of a command, whatever it contains.
    AcpAgent::from_args([path.to_string_lossy()]).expect("a path is a command")
}

/// Looks beside a test, and in the folder above, where Cargo puts programs.
fn find(own: &Path, name: &str) -> Option<PathBuf> {
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    own.ancestors().skip(1).take(2).map(|folder| folder.join(&name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_where_cargo_puts_them() {
        let folder = std::env::temp_dir().join(format!("test-binaries-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("debug/deps")).expect("a folder");
        let built = folder.join("debug").join(format!("testy{}", std::env::consts::EXE_SUFFIX));
        std::fs::write(&built, "").expect("a file");
        assert_eq!(find(&folder.join("debug/deps/some_test"), "testy").as_ref(), Some(&built));
        assert_eq!(find(&folder.join("debug/other"), "testy").as_ref(), Some(&built));
        assert_eq!(find(&folder.join("debug/deps/deeper/some_test"), "testy"), None);
        assert_eq!(find(&folder.join("debug/deps/some_test"), "other"), None);
        std::fs::remove_dir_all(&folder).expect("our folder");
    }
}
