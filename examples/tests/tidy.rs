//! What the compiler does not check: which crate may know which, and how files look.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a crate may depend on, among our own. The macros are known to the protocol only.
const EDGES: [(&str, &[&str]); 9] = [
    ("protocol/derive", &[]),
    ("protocol", &["greenroom-derive"]),
    ("actors/core", &["greenroom-protocol"]),
    ("transports", &["greenroom-actors", "greenroom-protocol"]),
    ("actors", &["greenroom-actors", "greenroom-protocol", "greenroom-transports"]),
    ("conductor", &["greenroom", "greenroom-protocol"]),
    ("polyfill", &["greenroom", "greenroom-protocol"]),
    ("testkit", &["greenroom", "greenroom-protocol", "greenroom-conductor", "greenroom-polyfill"]),
    ("examples", &["greenroom", "greenroom-conductor", "greenroom-polyfill"]),
];

/// The names of our own crates in one section of a manifest.
fn own_dependencies(manifest: &str, section: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line == format!("[{section}]");
        } else if inside && line.starts_with("greenroom") {
            let end = line.find(['.', ' ', '=']).expect("a dependency has a value");
            found.push(line[..end].to_owned());
        }
    }
    found
}

#[test]
fn crates_know_only_what_is_below_them() {
    for (folder, allowed) in EDGES {
        let manifest = read(&root().join(folder).join("Cargo.toml"));
        assert!(manifest.contains("[lints]\nworkspace = true"), "{folder} does not take the workspace's lints");
        for dependency in own_dependencies(&manifest, "dependencies") {
            assert!(allowed.contains(&dependency.as_str()), "{folder} must not depend on {dependency}");
        }
    }
}

#[test]
fn every_member_is_known_here() {
    let manifest = read(&root().join("Cargo.toml"));
    let members = manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']')).expect("members").0;
    let members = members.lines().map(str::trim).filter_map(|line| line.strip_prefix('"')?.strip_suffix("\","));
    for member in members.filter(|member| *member != "examples/renamed") {
        assert!(EDGES.iter().any(|(folder, _)| *folder == member), "say what {member} may depend on");
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, found);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

#[test]
fn files_are_small_finished_and_say_what_they_are() {
    let mut files = Vec::new();
    sources(&root(), &mut files);
    assert!(files.len() > 100, "the search found {} files only", files.len());
    // Written in two parts, so that this file may say them.
    let unfinished =
        [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("#[ig", "nore"), concat!("dbg", "!(")];
    let mut faults = Vec::new();
    for file in files {
        let text = read(&file);
        let name = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
        let lines = text.lines().count();
        if lines > 600 {
            faults.push(format!("{name} has {lines} lines; 600 are the most"));
        }
        let tests_of_a_module = name.ends_with("/tests.rs");
        if !tests_of_a_module && !text.starts_with("//!") && !text.starts_with("#!") {
            faults.push(format!("{name} does not say what it is for (//!)"));
        }
        for word in unfinished.iter().filter(|word| text.contains(**word)) {
            faults.push(format!("{name} has {word}"));
        }
        if name.starts_with("examples/src") && lines > 120 {
            faults.push(format!("{name} is an example of {lines} lines; 120 are the most"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_documents_name_files_that_exist() {
    let mut missing = Vec::new();
    for document in ["README.md", "ARCHITECTURE.md"] {
        let text = read(&root().join(document));
        for path in text.split('`').skip(1).step_by(2).filter(|word| word.contains('/') && word.ends_with(".rs")) {
            if !path.starts_with("src/") && !root().join(path).exists() {
                missing.push(format!("{document}: {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
